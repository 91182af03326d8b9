"""The `xyntra` command, as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from xyntra_ep.cli import main
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.trusted_file import seal

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


def test_cache_verify_and_repair(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "verify", "--dir", str(cache)]) == 1
    assert "bad.so: checksum does not match" in capsys.readouterr().out
    assert main(["cache", "verify", "--repair", "--dir", str(cache)]) == 0
    assert main(["cache", "verify", "--json", "--dir", str(cache)]) == 0
    assert capsys.readouterr().out.endswith("[]\n")


def test_cache_prune(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "prune", "--max-size", "1.01k", "--dir", str(cache)]) == 0
    assert "removed 1 files" in capsys.readouterr().out
    assert main(["cache", "prune", "--max-age", "0s", "--dir", str(cache), "--json"]) == 0
    [removed] = json.loads(capsys.readouterr().out)
    assert removed["kind"] == "kernel"


def test_prune_without_a_limit_removes_nothing(cache: Path, capsys: Capture) -> None:
    assert main(["cache", "prune", "--dir", str(cache)]) == 2
    assert "nothing says what to remove. give --max-size, --max-age or both" in capsys.readouterr().err


def test_a_cache_that_is_not_there_is_not_made(tmp_path: Path, capsys: Capture) -> None:
    assert main(["cache", "ls", "--dir", str(tmp_path / "absent")]) == 2
    assert "absent: no such directory" in capsys.readouterr().err and not (tmp_path / "absent").exists()


def test_a_cache_that_is_not_to_be_trusted(cache: Path, capsys: Capture) -> None:
    cache.chmod(0o777)
    assert main(["cache", "ls", "--dir", str(cache)]) == 1
    assert "can be written by others (chmod 700 repairs it)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "absent.onnx"], "xyntra: absent.onnx: no such file. give the path of an ONNX model"),
        (["explain", "absent.onnx", "-O", "claim"], "xyntra: xyntra: 'claim' is not NAME=VALUE"),
        (["compare", "absent.onnx", "--dim", "n=many"], "write it as NAME=SIZE"),
    ],
)
def test_a_wrong_question_ends_with_2(arguments: list[str], message: str, capsys: Capture) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["cache", "eat"], ["cache", "prune", "--max-size", "much"]])
def test_what_is_no_command(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: xyntra" in capsys.readouterr().err


@pytest.mark.compiler("cc")
def test_doctor_in_json(capsys: Capture) -> None:
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["cores"] >= 1 and isinstance(found["missing"], list)


def test_a_closed_pipe_is_no_error(cache: Path) -> None:
    command = f"{sys.executable} -W ignore -m xyntra_ep.cli cache ls --dir {cache} | true"
    ran = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
