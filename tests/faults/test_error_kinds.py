"""Runs that fail: after some the session goes on, after others it is lost, says so at once, and a new one works.

The CUDA device is the stand-in of tests/support/fake_cuda; what kernels compute is right there.
"""

from __future__ import annotations

import gc
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.support.fake_cuda import ECC_UNCORRECTABLE, LAUNCH_FAILED, NOT_READY, OUT_OF_MEMORY, FakeCuda
from tests.support.models.model_text import close, cpu, parse
from xyntra_ep.errors import is_fatal

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.native]
cuda = pytest.mark.compiler("nvrtc")
EPFail = ort.capi.onnxruntime_pybind11_state.EPFail
RuntimeFailure = ort.capi.onnxruntime_pybind11_state.RuntimeException

TEXT = "(float[N,8] x, float[M,8] y) => (float[] z) { s = Softmax(x) t = Add(s, y) z = Softmax<axis = 0>(t) }"
GOES_ON, LOST = "the session can go on", "the session is lost: make a new one"


def feeds(rows: int, others: int | None = None) -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    return {"x": rng.standard_normal((rows, 8), np.float32), "y": rng.standard_normal((others or rows, 8), np.float32)}


def session(folder: Path, *, fallback: bool = False, **options: str) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    providers = [("XyntraEP", {"cache_dir": str(folder / "cache"), "claim": "all", **options}), "CPUExecutionProvider"]
    made = ort.InferenceSession(parse(TEXT).SerializeToString(), settings, providers=providers, enable_fallback=fallback)
    assert made.get_providers()[0] == "XyntraEP"
    return made


def check(made: ort.InferenceSession, rows: int) -> None:
    close(made.run(None, feeds(rows)), cpu(parse(TEXT), feeds(rows)))


def sentence(error: BaseException) -> str:
    """Ours, without what ONNX Runtime says of the node."""
    return str(error)[str(error).index("XyntraEP: ") :]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[FakeCuda]:
    fake = FakeCuda(monkeypatch, folder)
    yield fake
    gc.collect()  # sessions on a device that is lost set nothing free on the one that comes after it
    fake.reset()
    session(folder, backend="cuda")  # opens the device for other tests


# -- which is which: by the numbers of cuda.h and cl.h

KINDS = """
#include <cstdio>
#include "driver_api.h"
#include "opencl_api.h"

int main() {
  for (int code = 0; code < 1000; ++code)
    if (xyntra::driver::kind_of(code) == xyntra::FailureKind::kFatal) std::printf("%d ", code);
  for (int code = 0; code > -10000; --code)
    if (xyntra::cl::kind_of(code) == xyntra::FailureKind::kFatal) std::printf("%d ", code);
  return 0;
}
"""
# "This leaves the process in an inconsistent state", as cuda.h has it.
LASTING = (214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 911)
GONE = (4, 100, 101, 201, 220, 709, 806, 810, 999)  # the device, its context, or the server between us and it
OPENCL = (-1, -2, -33, -34, -36, -9999)


@pytest.mark.compiler("g++")
def test_what_is_fatal(tmp_path: Path) -> None:
    source, program, native = tmp_path / "kinds.cc", tmp_path / "kinds", ROOT / "native"
    source.write_text(KINDS)
    sources = [native / "driver" / "driver_api.cc", native / "opencl" / "opencl_api.cc", native / "system" / "posix.cc", source]
    folders = [f"-I{native / folder}" for folder in ("", "driver", "opencl", "system")]
    subprocess.run(["g++", "-std=c++17", *folders, *map(str, sources), "-ldl", "-o", str(program)], check=True)
    found = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    assert set(map(int, found)) == {*LASTING, *GONE, *OPENCL}


# -- the session goes on


@pytest.mark.compiler("cc")
def test_feeds_that_the_plan_does_not_take(folder: Path) -> None:
    made = session(folder)
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument) as caught:
        made.run(None, feeds(2, 3))
    assert sentence(caught.value).endswith(f"(x [2,8], y [3,8]). {GOES_ON}") and not is_fatal(caught.value)
    check(made, 3)


@cuda
@pytest.mark.parametrize("code", [OUT_OF_MEMORY, NOT_READY])
@pytest.mark.parametrize("call", ["MemAlloc", "MemAllocHost", "GraphLaunch", "StreamSynchronize"])
def test_a_call_that_may_do_the_next_time(gpu: FakeCuda, folder: Path, call: str, code: int) -> None:
    made = session(folder, backend="cuda")
    gpu.fail(call, calls_from_now=1, code=code)
    with pytest.raises(RuntimeFailure) as caught:
        made.run(None, feeds(5))
    assert sentence(caught.value).startswith(
        "XyntraEP: the device 'CUDA / Simulated GPU / sm_80 / driver 12.8' reports CUDA_ERROR_"
    )
    assert sentence(caught.value).endswith(f". {GOES_ON}") and not is_fatal(caught.value)
    check(made, 5)


# -- the session is lost


@cuda
@pytest.mark.parametrize(
    ("call", "code", "said"),
    [
        ("GraphLaunch", LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED for a graph of kernels"),
        ("StreamSynchronize", ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE for a run"),
        ("MemAlloc", LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED for a buffer"),
    ],
)
def test_a_device_that_is_lost(gpu: FakeCuda, folder: Path, call: str, code: int, said: str) -> None:
    made, other = session(folder, backend="cuda"), session(folder, backend="cuda")
    check(made, 5)
    check(other, 5)
    gpu.fail(call, calls_from_now=1, code=code)
    with pytest.raises(EPFail) as first:
        made.run(None, feeds(900))
    ours = sentence(first.value)
    assert ours == f"XyntraEP: the device 'CUDA / Simulated GPU / sm_80 / driver 12.8' reports {said}. {LOST}"
    assert is_fatal(first.value)
    asked = gpu.count("all")
    for lost, rows in ((made, 900), (other, 5), (made, 3)):
        with pytest.raises(EPFail) as again:
            lost.run(None, feeds(rows))
        assert sentence(again.value) == ours
    assert gpu.count("all") == asked, "the driver was asked again"

    on_cpu = session(folder, backend="cpu")
    check(on_cpu, 5)
    gpu.reset()
    anew = session(folder, backend="cuda")
    check(anew, 5)
    with pytest.raises(EPFail) as after:
        made.run(None, feeds(5))
    assert sentence(after.value) == ours, "what is lost stays lost"


@cuda
def test_a_new_session_while_the_device_is_gone_is_on_the_cpu(gpu: FakeCuda, folder: Path) -> None:
    made = session(folder, backend="cuda")
    gpu.fail("StreamSynchronize", calls_from_now=1, code=LAUNCH_FAILED)
    with pytest.raises(EPFail):
        made.run(None, feeds(5))
    launched = gpu.count("GraphLaunch")
    check(session(folder, backend="cuda"), 5)
    assert gpu.count("GraphLaunch") == launched


@cuda
def test_onnxruntime_makes_the_new_session_where_it_may(gpu: FakeCuda, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its Python class does that for EP_FAIL and for no other error."""
    made = session(folder, fallback=True, backend="cuda")
    gpu.fail("StreamSynchronize", calls_from_now=1, code=LAUNCH_FAILED)
    check(made, 5)
    assert made.get_providers() == ["CPUExecutionProvider"]
    assert "Falling back to" in capsys.readouterr().out
