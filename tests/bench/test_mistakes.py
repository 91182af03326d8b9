"""Files that are not what a command wants: a sentence, before anything is measured or changed."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xyntra_bench import cli
from xyntra_bench.errors import BenchError

FILES = {
    "empty.onnx": "",
    "garbage.onnx": "garbage",
    "cut.json": '{"schema": "xyntra-bench/7", "cas',
    "deep.json": "[" * 100_000,
    "list.json": "[]",
    "lacking.json": '{"schema": "xyntra-bench/7"}',
    "device.json": '{"schema": "xyntra-device/2"}',
}
MEASURED = ("no such file", "cannot be read (Is a directory)", "not JSON (", "not JSON (", "schema None", "Run: fields differ")
RESULTS = dict(zip(("absent.json", "folder", "cut.json", "deep.json", "list.json", "lacking.json"), MEASURED, strict=True))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mistake(*arguments: str) -> str:
    error = CliRunner().invoke(cli.app, list(arguments)).exception
    assert isinstance(error, BenchError), repr(error)
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("absent.onnx", "absent.onnx: no such file"),
        ("folder", "folder: a folder. give the model's file in it"),
        ("empty.onnx", "empty.onnx: not an ONNX model. export one"),
        ("garbage.onnx", "garbage.onnx: not an ONNX model. export one"),
    ],
)
def test_a_model_that_is_none(here: Path, file: str, message: str) -> None:
    assert message in mistake("run", "model", file, "-e", "CPUExecutionProvider")
    assert not (here / "results").exists()


@pytest.mark.parametrize(("file", "message"), RESULTS.items())
def test_results_that_are_none(here: Path, file: str, message: str) -> None:
    for command in (("compare", file, file), ("gate", file), ("bars", file), ("report", "--show", "zoo", "--results", file)):
        if command[0] == "report" and file == "folder":
            assert "folder: no stored results" in mistake(*command)
            continue
        told = mistake(*command)
        assert told.startswith(f"{file}: {message}"), command


def test_results_of_a_device_that_are_damaged(here: Path) -> None:
    assert mistake("bars", "device.json").startswith("device.json: DeviceRun: fields differ")
    assert mistake("compare", "device.json", "device.json").startswith(
        "device.json: schema 'xyntra-device/2', this version reads"
    )


def test_a_folder_of_results_that_is_misspelt_changes_no_document(here: Path) -> None:
    document = here / "README.md"
    document.write_text("<!-- bench:zoo -->\nkept\n<!-- /bench:zoo -->\n")
    assert mistake("report", "--readme", "README.md", "--results", "reslts") == (
        "reslts: no such file or folder. `bench run zoo --json` writes results"
    )
    assert "kept" in document.read_text()
    assert mistake("report", "--readme", "folder", "--results", "folder").startswith("folder: cannot be read (IsADirectoryError")


def test_a_gate_for_somebody_who_is_not_there_says_who_is() -> None:
    stored = min((Path(__file__).parents[2] / "reports" / "results").glob("zoo-*.json"))
    assert mistake("gate", str(stored), "--provider", "NoSuchEP") == (
        f"{stored}: nothing of NoSuchEP in it, so nothing is gated. name another with --provider: it has XyntraEP, OpenVINO"
    )


def test_what_the_system_refuses_is_a_sentence_too(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "site/index.html")

    monkeypatch.setattr(cli, "load", full)
    monkeypatch.setattr(sys, "argv", ["bench", "gate", "run.json"])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # its own stays for this process
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and capsys.readouterr().err == "error: site/index.html: No space left on device\n"
