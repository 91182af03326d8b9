"""What a person gets wrong at the command line: one sentence that names it, no traceback, and an exit status that is not 0.

One row a mistake, one line a row. What is wrong with files of results is in tests/bench/test_mistakes.py.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.models.model_text import parse
from xyntra_bench.cli import main as bench
from xyntra_ep.cli import main as xyntra
from xyntra_zoo.__main__ import main as zoo

WORDS = parse("(string[N] s) => (string[N] y) { y = Identity(s) }")
MODEL = parse("(float[N] x) => (float[] y) { y = Exp(x) }")
ROOT = Path(__file__).resolve().parent.parent
FROM_HERE = {**os.environ, "PYTHONPATH": str(ROOT)}
COMMANDS: dict[str, Callable[[], object]] = {"xyntra": xyntra, "bench": bench, "zoo": zoo}
# fmt: off
XYNTRA = [
    ("xyntra explan model.onnx", "there is no 'explan'. did you mean 'explain'?"),
    ("xyntra --verson", "there is no option '--verson'. did you mean '--version'?"),
    ("xyntra doctor --mesure", "there is no option '--mesure'. did you mean '--measure'?"),
    ("xyntra doctor --architecture h2000", "no GPU 'h2000' is known. did you mean 'h200'?"),
    ("xyntra doctor model.onnx", "nothing is done with 'model.onnx'"),
    ("xyntra explain", "required: model"),
    ("xyntra explain absent.onnx", "absent.onnx: no such file"),
    ("xyntra explain folder", "folder: "),
    ("xyntra explain text.onnx", "text.onnx"),
    ("xyntra explain loop.onnx", "loop.onnx: no such file"),
    ("xyntra explain model.onnx --nide y", "there is no option '--nide'. did you mean '--node'?"),
    ("xyntra explain model.onnx --option claim", "xyntra: -O: 'claim' is not NAME=VALUE"),
    ("xyntra explain model.onnx --option clam=all", "no provider option 'clam'. did you mean 'claim'?"),
    ("xyntra explain model.onnx --option claim=al", "claim='al' is not valid. did you mean 'all'?"),
    ("xyntra explain model.onnx --option precision=fp8", "precision='fp8' is not valid. "),
    ("xyntra explain model.onnx --option backend=gpu", "backend='gpu' is not valid. did you mean 'webgpu'?"),
    ("xyntra compare", "required: model"),
    ("xyntra compare absent.onnx", "absent.onnx: no such file"),
    ("xyntra compare folder", "folder: "),
    ("xyntra compare text.onnx", "text.onnx"),
    ("xyntra compare model.onnx --seed much", "--seed: invalid int value: 'much'"),
    ("xyntra compare model.onnx --dim N=many", "xyntra: --dim: N=many is no size. it wants an integer"),
    ("xyntra explain model.onnx --dim N=1 --dim N=2", "xyntra: --dim: N=1 and N=2. give one of them"),
    ("xyntra explain model.onnx --shape x=1 --shape x=2", "xyntra: --shape: x=1 and x=2. give one of them"),
    ("xyntra explain model.onnx -O claim=all -O claim=never", "xyntra: -O: claim=all and claim=never. give one of them"),
    ("xyntra explain model.onnx --dim N=99999999999999", "N=99999999999999 is no size. it wants an integer from 0 to 2147483647"),
    ("xyntra explain model.onnx --shape x=99999999999999", "x has 99999999999999, which is no size. it wants"),
    ("xyntra compare model.onnx --fix", "xyntra: --fix: nothing is fixed. give --dim NAME=SIZE"),
    ("xyntra compare model.onnx --dim N", "xyntra: --dim: 'N' is not NAME=SIZE"),
    ("xyntra compare model.onnx --feed x", "xyntra: --feed: 'x' is not NAME=FILE"),
    ("xyntra compare model.onnx --feed x=x.npy --feeds folder", "xyntra: compare: --feed and --feeds together"),
    ("xyntra compare model.onnx --shape x=3xN", "xyntra: --shape: x=3xN is no shape. write it as INPUT=64x20"),
    ("xyntra explain model.onnx --shape x", "xyntra: --shape: 'x' is not INPUT=64x20"),
    ("xyntra explain model.onnx --shape X=3", "xyntra: --shape: the model has no input 'X'. it has x"),
    ("xyntra compare model.onnx --dim M=3", "xyntra: --dim: the model's inputs have no dimension 'M'. there are N"),
    ("xyntra compare words.onnx", "input 's': cannot make up a tensor(string). give it: --feed s=FILE"),
    ("xyntra compare model.onnx --feeds objects.npz", "'x' is an array of Python objects, which are not read. store strings"),
    ("xyntra compare model.onnx --option precison=bf16", "no provider option 'precison'. did you mean 'precision'?"),
    ("xyntra fuse", "required: model"),
    ("xyntra fuse absent.onnx", "absent.onnx: no such file"),
    ("xyntra fuse folder", "folder: "),
    ("xyntra fuse text.onnx -o out.onnx", "text.onnx"),
    ("xyntra fuse model.onnx -O precision=bf16", "fuse: precision changes nothing in a fused model. there are min_island, "),
    ("xyntra fuse model.onnx --format svg", "there is no 'svg'. there are onnx, triton, dot, json, text"),
    ("xyntra cache", "required: action"),
    ("xyntra cache lss", "there is no 'lss'. did you mean 'ls'?"),
    ("xyntra cache ls --dir absent", "absent: no such directory"),
    ("xyntra cache ls --dir text.onnx", "text.onnx: no such directory"),
    ("xyntra cache verify --repare", "there is no option '--repare'. did you mean '--repair'?"),
    ("xyntra cache ls --max-age 3d", "xyntra: cache ls: --max-age says nothing there. it is of `cache prune`"),
    ("xyntra cache ls --max-age 0s", "--max-age says nothing there"),
    ("xyntra cache verify --max-size 2G", "--max-size says nothing there. it is of `cache prune`"),
    ("xyntra cache ls --zoo", "--zoo says nothing there"),
    ("xyntra cache ls --repair", "--repair says nothing there. it is of `cache verify`"),
    ("xyntra cache prune", "xyntra: cache prune: nothing says what to remove. give --max-size, --max-age or --zoo"),
    ("xyntra cache prune --max-size much", "'much' is no size; write it as 500M or 2G"),
    ("xyntra cache prune --max-size 500", "'500' is no size; write it as 500M or 2G"),
    ("xyntra cache verify --dir .", ".: is no cache. a cache has a folder kernels/"),
    ("xyntra cache prune --max-age 1d --dir .", ".: is no cache. a cache has a folder kernels/"),
    ("xyntra cache prune --max-size 5T", "'5T' is no size; write it as 500M or 2G"),
    ("xyntra cache prune --max-size inf", "'inf' is no size; write it as 500M or 2G"),
    ("xyntra cache prune --max-size=-5G", "'-5G' is no size; write it as 500M or 2G"),
    ("xyntra cache prune --max-age soon", "'soon' is no age; write it as 30d or 12h"),
    ("xyntra cache prune --max-age nand", "'nand' is no age; write it as 30d or 12h"),
    ("xyntra cache prune --max-age -1d", "'-1d' is no age; write it as 30d or 12h"),
    ("xyntra cache prune --max-age=-1d", "'-1d' is no age; write it as 30d or 12h"),
    ("XYNTRA_JOBS=0 xyntra cache ls", "XYNTRA_JOBS: '0' is not valid. it wants an integer of at least 1"),
    ("XYNTRA_CLAIM=al xyntra explain model.onnx", "XYNTRA_CLAIM: claim='al' is not valid. did you mean 'all'?"),
    ("XYNTRA_CONFIG=absent.toml xyntra explain model.onnx", "XYNTRA_CONFIG: no file absent.toml. create it or unset it"),
    ("XYNTRA_CONFIG=text.onnx xyntra explain model.onnx", "text.onnx: cannot be read ("),
    ("XYNTRA_CACHE_DIR=text.onnx xyntra cache ls", "is not a directory"),
]
OTHERS = [
    ("zoo lst", "invalid choice: 'lst'"),
    ("zoo build", "required: name"),
    ("zoo build brt-base", "no 'brt-base' in zoo. did you mean ['bert-base'"),
    ("zoo build bert-base-tiny --weights absent", "absent: no such file"),
    ("bench rn", "Did you mean 'run'?"),
    ("bench --verson", "No such option: --verson"),
    ("bench run zo", "Did you mean 'zoo'?"),
    ("bench run zoo --treads 1", "No such option: --treads"),
    ("bench run zoo -m brt-base", "no 'brt-base' in zoo. did you mean ['bert-base'"),
    ("bench run zoo --threads no", "--threads 'no': not a list of positive numbers"),
    ("bench run zoo --tokens 1", "Invalid value for '--tokens'"),
    ("bench run zoo --within 0", "Invalid value for '--within'"),
    ("bench run model", "Missing argument 'file'"),
    ("bench run model absent.onnx", "absent.onnx: no such file"),
    ("bench run model model.onnx --shape x=3,y=4", "shape 'x=3,y=4': one input at a time. give --shape x=3 --shape y=4"),
    ("bench run model model.onnx --shape x=3 --shape x=4", "--shape x: given twice. give one of them"),
    ("bench run model model.onnx --max-err few", "Invalid value for '--max-err'"),
    ("bench micro nosuch", "'nosuch': no chain of that name"),
    ("bench micro --quik", "No such option: --quik"),
    ("bench device nosuch", "'nosuch': no point of that name"),
    ("bench device --backend vulkan", "--backend 'vulkan': not a device's. there are cuda, metal, opencl, hip, webgpu"),
    ("bench list all", "unexpected extra argument"),
    ("bench determinism --runs 0", "Invalid value for '--runs'"),
    ("bench determinism -m brt-base", "no 'brt-base' in zoo"),
    ("bench determinism --file absent.onnx", "absent.onnx: no such file"),
    ("bench compare absent.json", "Missing argument 'new'"),
    ("bench compare absent.json absent.json", "absent.json: no such file"),
    ("bench gate", "Missing argument 'file'"),
    ("bench gate absent.json --ratio much", "Invalid value for '--ratio'"),
    ("bench gate absent.json", "absent.json: no such file"),
    ("bench bars", "Missing argument 'files"),
    ("bench bars absent.json", "absent.json: no such file"),
    ("bench report --chek", "No such option: --chek"),
    ("bench report --readme absent.md", "no such file"),
]
# fmt: on


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # bench's own is for a process of its own
    monkeypatch.setenv("TERMINAL_WIDTH", "200")
    onnx.save(MODEL, "model.onnx")
    onnx.save(WORDS, "words.onnx")
    np.savez("objects.npz", x=np.array(["a"], object))
    Path("text.onnx").write_text("not a model")
    Path("folder").mkdir()
    os.symlink("loop.onnx", "loop.onnx")


def mistake(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    """Exit status and what stderr says."""
    words = shlex.split(line)
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    monkeypatch.setattr(sys, "argv", words)
    try:
        status: object = COMMANDS[words[0]]()
    except SystemExit as ended:
        status = ended.code
    assert isinstance(status, int)
    told = capsys.readouterr()
    assert told.out == "", "an answer to a wrong question"
    return status, told.err


@pytest.mark.native
@pytest.mark.parametrize(("line", "message"), XYNTRA)
def test_xyntra(line: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = mistake(line, capsys, monkeypatch)
    assert status == (1 if line.startswith("XYNTRA_CACHE_DIR") else 2), told
    assert message in told and told.startswith("xyntra") and told.count("\n") == 1, told


@pytest.mark.parametrize(("line", "message"), OTHERS)
def test_bench_and_zoo(line: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    status, told = mistake(line, capsys, monkeypatch)
    assert status in (1, 2) and message in told and "Traceback" not in told, told


def test_a_variable_that_was_wrong_from_the_start() -> None:
    environment = {**os.environ, "XYNTRA_JOBS": "0"}
    words = [sys.executable, "-m", "xyntra_ep.cli", "explain", "model.onnx"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2 and ran.stdout == "" and "Traceback" not in ran.stderr
    assert ran.stderr.splitlines()[-1] == "xyntra: XYNTRA_JOBS: '0' is not valid. it wants an integer of at least 1"


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("bench --help", "typer"),
        ("bench list", "typer"),
        ("bench run model model.onnx", "typer"),
        ("bench run model model.onnx", "onnx"),
    ],
)
def test_bench_without_its_packages(line: str, absent: str) -> None:
    """As after a plain `pip install xyntra-ep`, which has the script."""
    code = f"import sys; sys.modules[{absent!r}] = None; sys.argv = {shlex.split(line)}; from bench.__main__ import main; main()"
    ran = subprocess.run([sys.executable, "-c", code], env=FROM_HERE, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"bench: needs the package {absent}. pip install 'xyntra-ep[bench]'\n"
