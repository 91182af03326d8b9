"""Runs that fail on an adapter of WebGPU. Its library is a real one, and before it stands another that lets calls fail
(tests/support/gpu/faulty_webgpu.cc): in a process of its own, because a process has one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from xyntra_ep.tracea.runtime.webgpu.library import library_path

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.native, pytest.mark.device("webgpu"), pytest.mark.compiler("cc")]
GOES_ON, LOST = "the session can go on", "the session is lost: make a new one"
GONE, VALIDATION, OUT_OF_MEMORY = 0, 2, 3  # the first is no type of an error: the device is lost

CHILD = """
import ctypes, json, os, sys
import onnxruntime as ort
import xyntra_ep
from tests.support.models.model_text import close, cpu, normal, parse
from xyntra_ep.errors import is_fatal

model = parse("(float[N,8] x) => (float[] y) { s = Softmax(x) y = Softmax<axis = 0>(s) }")
faulty = ctypes.CDLL(os.environ["XYNTRA_WGPU_LIBRARY"])
settings = ort.SessionOptions()
settings.log_severity_level = 3

def session():
    options = {"backend": "webgpu", "claim": "all"}
    made = ort.InferenceSession(
        model.SerializeToString(), settings, providers=[("XyntraEP", options), "CPUExecutionProvider"], enable_fallback=0
    )
    assert made.get_providers()[0] == "XyntraEP"
    return made

def check(made, rows):
    feeds = {"x": normal(rows, 8)}
    close(made.run(None, feeds), cpu(model, feeds))

def failing(made, rows):
    calls = faulty.faulty_webgpu_calls()
    try:
        made.run(None, {"x": normal(rows, 8)})
    except Exception as error:
        text = str(error)
        said = text[text.index("XyntraEP: ") :]
        return [type(error).__name__, said, is_fatal(error), faulty.faulty_webgpu_calls() - calls]
    return None

call, kind, lasts = sys.argv[1].encode(), int(sys.argv[2]), int(sys.argv[3])
made, other = session(), session()
check(made, 5)
check(other, 5)
faulty.faulty_webgpu_fail(call, kind, lasts)
found = [failing(made, 900), failing(made, 900), failing(other, 5)]
faulty.faulty_webgpu_fail(b"", 0, 0)
check(session(), 900)
found.append(failing(made, 5))
print("FOUND " + json.dumps(found))
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("faulty") / "libfaulty_webgpu.so"
    source, include = ROOT / "tests" / "support" / "gpu" / "faulty_webgpu.cc", ROOT / "native"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-Wl,--no-as-needed"]
    folders = [f"-I{include / folder}" for folder in ("webgpu", "system", "")]
    subprocess.run(["c++", *flags, *folders, str(source), "-o", str(made), library_path(), "-ldl"], check=True)
    return made


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def outcome(faulty: Path, cache: Path, call: str, kind: int, *, lasts: bool) -> tuple[list[Any], list[str]]:
    """What each run that was to fail has said, and the lines of the log that are ours."""
    environment = {**os.environ, "XYNTRA_WGPU_LIBRARY": str(faulty), "XYNTRA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CHILD, call, str(kind), str(int(lasts))]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    (found,) = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return json.loads(found.removeprefix("FOUND ")), [line for line in done.stderr.splitlines() if "XyntraEP] XyntraEP" in line]


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        ("wgpuDeviceCreateBuffer", OUT_OF_MEMORY, " has no memory for a buffer: told to fail"),
        ("wgpuDeviceCreateBindGroup", VALIDATION, " reports for a kernel's buffers: told to fail"),
        ("wgpuQueueSubmitForIndex", VALIDATION, " reports for a run: told to fail"),
    ],
)
def test_the_session_goes_on(faulty: Path, cache: Path, call: str, kind: int, words: str) -> None:
    (first, *rest), lines = outcome(faulty, cache, call, kind, lasts=False)
    name, said, fatal, _ = first
    assert name == "RuntimeException" and not fatal
    assert words in said and said.endswith(f". {GOES_ON}")
    assert rest == [None] * 3 and lines == []


@pytest.mark.parametrize("call", ["wgpuQueueSubmitForIndex", "wgpuQueueWriteBuffer", "wgpuDevicePoll"])
def test_the_session_is_lost(faulty: Path, cache: Path, call: str) -> None:
    (first, *rest), lines = outcome(faulty, cache, call, GONE, lasts=True)
    name, said, fatal, _ = first
    assert name == "EPFail" and fatal
    assert " is lost: the GPU went away" in said and said.endswith(f". {LOST}")
    assert rest == [["EPFail", said, True, 0]] * 3, "the same at once, and no call of the library"
    assert len(lines) == 1 and lines[0].partition("XyntraEP] ")[2].startswith(said), "the log says it once"
