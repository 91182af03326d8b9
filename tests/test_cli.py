"""The `xyntra` command, as a person types it."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from xyntra_bench.cli import main as bench_main
from xyntra_ep.cli import _compilers_shown, main
from xyntra_ep.tracea.runtime import progress
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.trusted_file import seal
from xyntra_zoo import model_path
from xyntra_zoo import zoo as models
from xyntra_zoo.__main__ import main as zoo_main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    root = open_root(tmp_path / "cache")
    (root.kernels / "good.so").write_bytes(seal(b"\x7fELF" + b"x" * 1000))
    (root.kernels / "bad.so").write_bytes(b"\x7fELF" + b"x" * 1000)
    os.utime(root.kernels / "good.so", (1, 1))
    return root.path


def test_cache_ls(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "ls", "--dir", str(cache)]) == 0
    out = capsys.readouterr().out
    assert "kernel    good.so" in out and "2 files" in out
    heading, *_, total = out.splitlines()
    assert heading.split() == ["bytes", "last", "used", "kind", "file"]
    assert total.startswith(f"{cache}: 2 files, 0.0 MB (2 kernels 0.0 MB)")


def test_the_models_of_the_zoo(cache: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(cache))
    monkeypatch.setenv("XYNTRA_ZOO_DIR", str(zoo := tmp_path / "zoo"))
    assert main(["cache", "ls"]) == 0 and "zoo" not in capsys.readouterr().out.replace(str(cache), "")
    model = model_path(models["mobilenetv2-tiny"])
    (zoo / "my-own.onnx").write_bytes(b"")
    assert main(["cache", "ls"]) == 0
    *_, row, total = capsys.readouterr().out.splitlines()
    assert row.split()[-2:] == ["model", model.name]
    assert total.startswith(f"{zoo}: 1 file, ") and total.endswith("; `xyntra cache prune --zoo` removes them")
    assert main(["cache", "ls", "--json"]) == 0
    assert [e["kind"] for e in json.loads(capsys.readouterr().out)] == ["kernel", "kernel", "model"]
    assert main(["cache", "ls", "--dir", str(cache)]) == 0 and model.name not in capsys.readouterr().out
    assert main(["cache", "prune", "--zoo"]) == 0
    assert "removed 1 file" in capsys.readouterr().out
    assert [path.name for path in zoo.iterdir()] == ["my-own.onnx"], "and nothing that the zoo has not built"
    assert len(list((cache / "kernels").iterdir())) == 2


def test_cache_verify_and_repair(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "verify", "--dir", str(cache)]) == 1
    assert "bad.so: checksum does not match" in capsys.readouterr().out
    assert main(["cache", "verify", "--repair", "--dir", str(cache)]) == 0
    assert main(["cache", "verify", "--json", "--dir", str(cache)]) == 0
    assert capsys.readouterr().out.endswith("[]\n")


def test_cache_prune(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "prune", "--max-size", "1.01k", "--dir", str(cache)]) == 0
    assert "removed 1 file" in capsys.readouterr().out
    assert main(["cache", "prune", "--max-age", "0s", "--dir", str(cache), "--json"]) == 0
    [removed] = json.loads(capsys.readouterr().out)
    assert removed["kind"] == "kernel"


def test_prune_without_a_limit_removes_nothing(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "prune", "--dir", str(cache)]) == 2
    assert "nothing says what to remove. give --max-size, --max-age or --zoo" in capsys.readouterr().err


def test_a_cache_that_is_not_there_is_not_made(tmp_path: Path, capsys: Capture) -> None:
    assert main(["cache", "ls", "--dir", str(tmp_path / "absent")]) == 2
    assert "absent: no such directory" in capsys.readouterr().err and not (tmp_path / "absent").exists()


@pytest.mark.parametrize("action", ["ls", "verify", "prune --max-age 1d"])
def test_asking_makes_no_cache(action: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_CACHE_DIR", str(cache := tmp_path / "deep" / "cache"))
    assert main(["cache", *action.split()]) == 0
    said = f"{cache}: there is no cache yet, the first session makes it"
    assert (said in capsys.readouterr().out) == (not action.startswith("prune")) and not cache.parent.exists()
    cache.mkdir(parents=True)
    assert main(["cache", *action.split(), "--dir", str(cache)]) == 0 and not list(cache.iterdir())


def test_a_cache_that_is_read_only(cache: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    # as superuser the real call says yes to everything
    monkeypatch.setattr(os, "access", lambda path, mode: real(path, mode) and not mode & os.W_OK)
    assert main(["cache", "ls", "--dir", str(cache)]) == 0
    assert capsys.readouterr().out.endswith("(2 kernels 0.0 MB), read-only\n")
    assert main(["cache", "verify", "--dir", str(cache)]) == 1
    assert capsys.readouterr().out.endswith(f"{cache}: read-only\n1 damaged\n")
    for action in (["verify", "--repair"], ["prune", "--max-age", "0s"]):
        assert main(["cache", *action, "--dir", str(cache)]) == 1
        assert capsys.readouterr().err == f"xyntra: {cache}: is read-only, so nothing can be removed\n"


def test_a_cache_that_is_not_to_be_trusted(cache: Path, capsys: Capture) -> None:
    cache.chmod(0o777)
    assert main(["cache", "ls", "--dir", str(cache)]) == 1
    assert "can be written by others (chmod 700 repairs it)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "absent.onnx"], "xyntra: absent.onnx: no such file. give the path of an ONNX model"),
        (["explain", "absent.onnx", "-O", "claim"], "xyntra: -O: 'claim' is not NAME=VALUE"),
        (["compare", "absent.onnx", "--dim", "n=many"], "xyntra: --dim: n=many is no size"),
    ],
)
def test_a_wrong_question_ends_with_2(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("terminal", [True, False])
def test_compilers_are_shown_on_a_terminal(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stderr := io.StringIO())
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    with _compilers_shown():
        for done in (1, 1, 2, 3):
            progress.tell(done, 3)
    line = "\r\x1b[Kcompiling kernels: "
    assert stderr.getvalue() == (f"{line}1 of 3{line}2 of 3\r\x1b[K" if terminal else "")


@pytest.mark.parametrize("command", [["xyntra_ep.cli"], ["zoo"], ["bench"], ["bench", "run"]])
def test_a_bare_command_shows_its_help_and_ends_with_2(command: list[str]) -> None:
    ran = _module(*command)
    assert ran.returncode == 2 and "usage: " in ran.stdout.lower() and "Traceback" not in ran.stderr


@pytest.mark.parametrize(("module", "name"), [("xyntra_ep.cli", "xyntra"), ("zoo", "zoo"), ("bench", "bench")])
def test_version(module: str, name: str) -> None:
    ran = _module(module, "--version")
    assert ran.returncode == 0 and ran.stdout.startswith(f"{name} ") and ran.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("run", "words"), [(main, ["xyntra"]), (zoo_main, ["zoo"]), (bench_main, ["bench"]), (bench_main, ["bench", "run"])]
)
def test_the_help_of_every_command_has_an_example(
    run: Callable[[], object], words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*more: str) -> str:
        monkeypatch.setattr(sys, "argv", [*words, *more, "--help"])
        with pytest.raises(SystemExit, match="0"):
            run()
        return capsys.readouterr().out

    commands = re.findall(r"^(?:│ |    )([a-z]+)  +[a-zA-Z]", told(), re.MULTILINE)
    assert len(commands) >= 2
    for command in set(commands) - {"run"}:
        assert f" {command}" in told(command).lower().partition("example: ")[2], command


def _module(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "ignore", "-m", *words], capture_output=True, text=True, check=False)


@pytest.mark.compiler("cc")
def test_doctor_in_json(capsys: Capture) -> None:
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["cores"] >= 1 and isinstance(found["missing"], list)


def test_a_closed_pipe_is_no_error(cache: Path) -> None:
    command = f"{sys.executable} -W ignore -m xyntra_ep.cli cache ls --dir {cache} | true"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
