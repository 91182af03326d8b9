"""Runs that fail on an OpenCL device. Its driver is a real one, and between us and it stands a loader that lets calls fail
(tests/support/gpu/faulty_opencl.c): in a process of its own, because a process has one loader."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.native, pytest.mark.device("opencl"), pytest.mark.compiler("cc")]
GOES_ON, LOST = "the session can go on", "the session is lost: make a new one"

CHILD = """
import ctypes, json, sys
import onnxruntime as ort
import xyntra_ep
from tests.support.models.model_text import close, cpu, normal, parse
from xyntra_ep.errors import is_fatal

model = parse("(float[N,8] x) => (float[] y) { s = Softmax(x) y = Softmax<axis = 0>(s) }")
loader = ctypes.CDLL("libOpenCL.so.1")
settings = ort.SessionOptions()
settings.log_severity_level = 3

def session():
    options = {"backend": "opencl", "claim": "all"}
    made = ort.InferenceSession(
        model.SerializeToString(), settings, providers=[("XyntraEP", options), "CPUExecutionProvider"], enable_fallback=0
    )
    assert made.get_providers()[0] == "XyntraEP"
    return made

def check(made, rows):
    feeds = {"x": normal(rows, 8)}
    close(made.run(None, feeds), cpu(model, feeds))

def failing(made, rows):
    calls = loader.faulty_opencl_calls()
    try:
        made.run(None, {"x": normal(rows, 8)})
    except Exception as error:
        text = str(error)
        said = text[text.index("XyntraEP: ") :]
        return [type(error).__name__, said, is_fatal(error), loader.faulty_opencl_calls() - calls]
    return None

call, code, lasts = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3])
made, other = session(), session()
check(made, 5)
check(other, 5)
loader.faulty_opencl_fail(call, code, lasts)
found = [failing(made, 900), failing(made, 900), failing(other, 5)]
loader.faulty_opencl_fail(b"", 0, 0)
check(session(), 900)
found.append(failing(made, 5))
print("FOUND " + json.dumps(found))
"""


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loader")
    source = ROOT / "tests" / "support" / "gpu" / "faulty_opencl.c"
    made = folder / "libOpenCL.so.1"
    subprocess.run(["cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", made, "-ldl"], check=True)
    return folder


def real_loader() -> str:
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        pytest.skip("libOpenCL.so.1 is not on this machine")
    mapped = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/libOpenCL.so.1" in line}
    return min(mapped)


def outcome(loader: Path, cache: Path, call: str, code: int, *, lasts: bool) -> tuple[list[Any], list[str]]:
    """What each run that was to fail has said, and the lines of the log that are ours."""
    path = os.pathsep.join(filter(None, [str(loader), os.environ.get("LD_LIBRARY_PATH", "")]))
    environment = {**os.environ, "LD_LIBRARY_PATH": path, "FAULTY_OPENCL_REAL": real_loader(), "XYNTRA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CHILD, call, str(code), str(int(lasts))]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return json.loads(found.removeprefix("FOUND ")), [line for line in done.stderr.splitlines() if "XyntraEP] XyntraEP" in line]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("call", "code", "name"),
    [
        ("clCreateBuffer", -4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"),
        ("clEnqueueNDRangeKernel", -5, "CL_OUT_OF_RESOURCES"),
        ("clFinish", -6, "CL_OUT_OF_HOST_MEMORY"),
    ],
)
def test_the_session_goes_on(loader: Path, cache: Path, call: str, code: int, name: str) -> None:
    (first, *rest), lines = outcome(loader, cache, call, code, lasts=False)
    kind, said, fatal, _ = first
    assert kind == "RuntimeException" and not fatal
    assert f" reports {name} for " in said and said.endswith(f". {GOES_ON}")
    assert rest == [None] * 3 and lines == []


@pytest.mark.parametrize(
    ("call", "code", "name"),
    [
        ("clEnqueueNDRangeKernel", -2, "CL_DEVICE_NOT_AVAILABLE"),
        ("clEnqueueWriteBuffer", -36, "CL_INVALID_COMMAND_QUEUE"),
        ("clFinish", -9999, "OpenCL error -9999"),
    ],
)
def test_the_session_is_lost(loader: Path, cache: Path, call: str, code: int, name: str) -> None:
    (first, *rest), lines = outcome(loader, cache, call, code, lasts=True)
    kind, said, fatal, _ = first
    assert kind == "EPFail" and fatal
    assert f" reports {name} for " in said and said.endswith(f". {LOST}")
    assert rest == [["EPFail", said, True, 0]] * 3, "the same at once, and no call of the driver"
    assert len(lines) == 1 and lines[0].partition("XyntraEP] ")[2].startswith(said), "the log says it once"
