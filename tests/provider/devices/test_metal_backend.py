"""Sessions with backend=metal on a Metal that is not there: what native code asks of it, and what users get.

The kernels are the text that an Apple GPU would run, carried out on the host (tests/support/metal); none has run on one.
"""

from __future__ import annotations

import ctypes
import gc
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.provider.devices.test_cuda_backend import model, rows
from tests.support.metal import ACCESS_REVOKED, OUT_OF_MEMORY, PAGE_FAULT, TIMEOUT, FakeMetal, needs_x86
from xyntra_ep import explain
from xyntra_ep.diagnostics.kernel_times import device_run_ns
from xyntra_ep.errors import CompileError, ConfigError
from xyntra_ep.options import parse
from xyntra_ep.provider import registration
from xyntra_ep.tracea.backends.metal import Metal
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.children.devices_child import MARK
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.metal.devices import NO_METAL, read_survey
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_zoo import model_path, zoo

pytestmark = [pytest.mark.native, needs_x86]
RuntimeFailure = ort.capi.onnxruntime_pybind11_state.RuntimeException
EpFailure = ort.capi.onnxruntime_pybind11_state.EPFail
IDENTITY = "Metal / Simulated M1 / macOS Version 0.0 (simulated)"
KERNEL_NS = 250_000  # what one takes by the clock of driver.cc
TRANSIENT = ("NSString", "NSError", "MTLCommandBuffer", "MTLComputeCommandEncoder", "MTLCompileOptions", "NSArray")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metal")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> FakeMetal:
    fake = FakeMetal(monkeypatch, folder)
    fake.reset()
    return fake


def session(folder: Path, content: bytes | None = None, **options: str) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    options = {"backend": "metal", "cache_dir": str(folder / "cache"), **options}
    providers = [("XyntraEP", options), "CPUExecutionProvider"]
    return ort.InferenceSession(content or model(), settings, providers=providers, enable_fallback=0)


def check(made: ort.InferenceSession, count: int) -> None:
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(count))[0]
    np.testing.assert_allclose(made.run(None, rows(count))[0], wanted, rtol=0, atol=2e-6)


def test_shapes_come_and_go(gpu: FakeMetal, folder: Path) -> None:
    first, again = session(folder), session(folder)
    for made, stored in ((first, False), (again, True)):
        (graph,) = explain(made).graphs
        assert (graph.claimed, graph.declined, graph.stored) == (len(graph.nodes), (), stored)
        assert graph.device == IDENTITY
    libraries = gpu.living("MTLLibrary")
    for count in (5, 1, 0, 40, 5):
        for made in (first, again):
            check(made, count)
    assert gpu.living("MTLLibrary") == libraries


def test_threads_run_one_session(gpu: FakeMetal, folder: Path) -> None:
    made = session(folder)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: check(made, n), range(1, 13)))


def test_what_is_made_for_a_run_goes_with_it(gpu: FakeMetal, folder: Path) -> None:
    gc.collect()
    before = {kind: gpu.living(kind) for kind in ("MTLBuffer", "MTLCommandQueue")}
    made = session(folder)
    check(made, 5)
    assert gpu.living("MTLBuffer") > before["MTLBuffer"]
    assert {kind: gpu.living(kind) for kind in TRANSIENT} == dict.fromkeys(TRANSIENT, 0)
    del made
    gc.collect()
    assert {kind: gpu.living(kind) for kind in before} == before


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (TIMEOUT, "MTLCommandBufferErrorTimeout"),
        (PAGE_FAULT, "MTLCommandBufferErrorPageFault"),
        (OUT_OF_MEMORY, "MTLCommandBufferErrorOutOfMemory"),
    ],
)
def test_a_run_that_fails_says_so_and_the_next_one_is_right(gpu: FakeMetal, folder: Path, code: int, name: str) -> None:
    made = session(folder)
    gpu.fail("commit", code=code)
    with pytest.raises(RuntimeFailure, match=f"'{re.escape(IDENTITY)}' reports {name} for a run: it was made to fail"):
        made.run(None, rows(7))
    check(made, 7)


def test_a_device_that_is_taken_away_is_lost(gpu: FakeMetal, folder: Path) -> None:
    made = session(folder)
    check(made, 3)
    gpu.fail("commit", code=ACCESS_REVOKED)
    for _ in range(2):
        with pytest.raises(EpFailure, match="reports MTLCommandBufferErrorAccessRevoked for a run"):
            made.run(None, rows(3))
    gpu.reset()
    check(session(folder), 3)  # which opens the device anew


def test_memory_that_is_not_there(gpu: FakeMetal, folder: Path) -> None:
    made = session(folder)
    gpu.fail("newBufferWithLength:options:")
    with pytest.raises(RuntimeFailure, match=r"has no memory for a buffer of \d+ bytes"):
        made.run(None, rows(900))
    check(made, 900)


@pytest.mark.parametrize(
    ("fact", "value", "why"),
    [("width", 64, "runs 64 thread"), ("threads", 16, "runs 16 thread")],
)
def test_kernels_that_the_device_does_not_run_as_they_are(gpu: FakeMetal, folder: Path, fact: str, value: int, why: str) -> None:
    """In a process of its own: what has a pipeline keeps it."""
    gpu.set(**{fact: value})
    command = [sys.executable, "-c", _SESSION, str(folder / "cache")]
    said = subprocess.run(command, input=model(), capture_output=True, check=True).stdout.decode()
    assert why in said


_SESSION = """
import sys
import onnxruntime as ort
from xyntra_ep import explain
options = {"backend": "metal", "cache_dir": sys.argv[1]}
content = sys.stdin.buffer.read()
made = ort.InferenceSession(content, providers=[("XyntraEP", options), "CPUExecutionProvider"])
print([declined.reason for graph in explain(made).graphs for declined in graph.declined])
"""


def test_steps_are_timed_by_the_device(gpu: FakeMetal, folder: Path) -> None:
    made, library = session(folder), registration.library()
    check(made, 5)
    library.xyntra_profile(1)
    check(made, 5)
    library.xyntra_profile(0)
    buffer = ctypes.create_string_buffer(library.xyntra_take_profile(None, 0) + 1)
    library.xyntra_take_profile(buffer, len(buffer))
    steps = [json.loads(line) for line in buffer.value.decode().splitlines() if line.strip()]
    times = [step["ns"] / step["calls"] for step in steps]
    assert len(times) >= 2 and set(filter(None, times)) == {float(KERNEL_NS)}
    launched = sum(1 for ns in times if ns)
    assert device_run_ns(made, lambda: made.run(None, rows(5)), runs=2) == launched * KERNEL_NS


@pytest.mark.slow  # each kernel is compiled by itself, as a driver does it
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("name", "precision", "max_err"),
    [("gpt2-decode-tiny", "fp32", 1e-4), ("resnet50-tiny", "fp32", 1e-4), ("bert-base-tiny", "fp16", 2e-2)],
)
def test_a_model_as_a_whole(gpu: FakeMetal, folder: Path, name: str, precision: str, max_err: float) -> None:
    content, feeds = model_path(zoo[name]).read_bytes(), zoo[name].feeds(1, 12, 0)
    made = session(folder, content, precision=precision)
    assert all(graph.device == IDENTITY and not graph.declined for graph in explain(made).graphs)
    wanted = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    for ours, theirs in zip(made.run(None, feeds), wanted, strict=True):
        assert np.abs(ours - theirs).max() <= max_err * np.abs(theirs).max()


def test_what_does_not_compile_says_why(gpu: FakeMetal, folder: Path) -> None:
    [device] = Metal().survey().working
    cache = KernelCache(open_root(folder / "refused"), Metal().open(device).compiler, ())
    text = "#include <metal_stdlib>\n[[max_total_threads_per_threadgroup(32)]] kernel void f(device float *x) { x[0] = y; }\n"
    (refused,) = cache.compile_many([KernelSource.of_text("f", text)])
    assert isinstance(refused, CompileError)
    assert refused.what.startswith("the Metal driver ended with status 1: ") and "does not compile a program" in refused.log
    assert "not declared" in refused.log


def test_the_doctor_lists_the_device(gpu: FakeMetal, folder: Path) -> None:
    command = [sys.executable, "-m", "xyntra_ep.cli", "doctor"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "Simulated M1, family Apple7, 32 KiB shared, 1024 MiB, macOS Version 0.0 (simulated): can be used" in said


def test_devices_that_are_no_apple_gpus(gpu: FakeMetal, folder: Path) -> None:
    for family, why in ((0, "it is no GPU of Apple's"), (6, "its family Apple6 is below Apple7")):
        gpu.set(family=family)
        found = Metal().survey()
        assert found.missing == f"no device of Metal can be used (Simulated M1: {why})" and not found.working
        assert Metal().describe(found)[0].endswith(f"NO: {why}")
        with pytest.raises(ConfigError, match="backend=metal cannot be had"):
            Metal().target(found)


def test_two_devices_are_told_apart(gpu: FakeMetal, folder: Path) -> None:
    gpu.set(devices=2)
    assert [device.identity for device in Metal().survey().working] == [IDENTITY, f"{IDENTITY} #1"]


def test_without_metal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("xyntra_ep.tracea.backends.metal._FRAMEWORK", tmp_path / "no framework")
    outcome = Outcome(problem="", log=f'{MARK}{{"missing": "x is not on this machine"}}\n')
    found = read_survey(outcome)
    assert (found.missing, found.remedy, found.lasting) == ("x is not on this machine", NO_METAL, True)
    assert Metal().describe(found) == [f"no: x is not on this machine. {NO_METAL}"]
    ended = read_survey(Outcome(problem="ended by signal 11", log=""))
    assert ended.missing == "asking for Metal's devices ended by signal 11" and not ended.lasting
    assert read_survey(replace(outcome, log=f"{MARK}[]\n")).missing == "Metal has no device"
    assert not Metal().at_hand() and Metal().traces(registration.library()) == ()
    assert parse({"backend": "metal"}).backend == "metal"
