"""Sessions with backend=hip on a stand-in for AMD's runtime, which carries out the text of kernels on the host: shapes, matrix
units, errors. Also: what is said where the runtime is not there, and by the doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.provider.devices.test_cuda_backend import graph_variants, model, rows
from tests.support.fake_cuda import ILLEGAL_ADDRESS, FakeHip
from xyntra_ep import explain
from xyntra_ep.diagnostics.machine import doctor
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.backends import LIBRARY
from xyntra_ep.tracea.backends.hip import Hip, hip_gpu
from xyntra_ep.tracea.runtime.children.devices_child import MARK
from xyntra_ep.tracea.runtime.hip import devices
from xyntra_ep.tracea.runtime.hip.devices import HipDevice, read_survey
from xyntra_ep.tracea.runtime.process import Outcome

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
RuntimeFailure = ort.capi.onnxruntime_pybind11_state.RuntimeException
Lost = ort.capi.onnxruntime_pybind11_state.EPFail


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeHip]:
    driver = FakeHip(monkeypatch, tmp_path_factory.mktemp("hip"))
    yield driver
    driver.reset()
    monkeypatch.undo()
    devices.survey.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


def session(folder: Path, **options: str) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    providers = [("XyntraEP", {"backend": "hip", "cache_dir": str(folder / "cache"), **options}), "CPUExecutionProvider"]
    return ort.InferenceSession(model(), settings, providers=providers, enable_fallback=0)


def check(made: ort.InferenceSession, count: int, max_err: float = 2e-6) -> None:
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(count))[0]
    np.testing.assert_allclose(made.run(None, rows(count))[0], wanted, rtol=0, atol=max_err)


# What is multiplied by matrix units: fp32 on CDNA alone, where they have it.
@pytest.mark.parametrize(
    ("architecture", "precision", "max_err", "by_matrix_units"),
    [
        pytest.param("gfx90a", "fp32", 2e-6, True, marks=pytest.mark.slow),
        ("gfx942", "fp32", 2e-6, True),
        pytest.param("gfx942", "bf16", 2e-2, True, marks=pytest.mark.slow),
        pytest.param("gfx942", "tf32", 2e-3, True, marks=pytest.mark.slow),
        pytest.param("gfx1100", "fp32", 2e-6, False, marks=pytest.mark.slow),
        ("gfx1100", "fp16", 2e-3, True),
    ],
)
def test_sessions(gpu: FakeHip, folder: Path, architecture: str, precision: str, max_err: float, by_matrix_units: bool) -> None:
    gpu.set_architecture(architecture)
    made = session(folder / architecture, precision=precision)  # as on machines of their own
    (graph,) = explain(made).graphs
    assert (graph.claimed, graph.declined) == (len(graph.nodes), ())
    assert graph.device == f"HIP / Simulated GPU / {architecture} / driver 6.2"
    assert any("gemm.matrix" in variant for variant in graph_variants(made)) == by_matrix_units
    launched = gpu.count("LaunchKernel")
    for count in (5, 1, 0, 70, 5):
        check(made, count, max_err)
    assert gpu.count("LaunchKernel") > launched and not gpu.count("GraphLaunch")
    assert list(folder.rglob("*.hsaco"))


def test_what_fails_is_said_and_the_next_run_is_right(gpu: FakeHip, folder: Path) -> None:
    for call in ("MemAlloc", "MemAllocHost", "LaunchKernel", "StreamSynchronize"):
        made = session(folder)
        gpu.fail(call, calls_from_now=1)
        with pytest.raises(RuntimeFailure, match=r"'HIP / Simulated GPU .*' reports hipErrorOutOfMemory for"):
            made.run(None, rows(7))
        check(made, 7)


def test_code_that_the_driver_does_not_load(gpu: FakeHip, tmp_path: Path) -> None:
    """ONNX Runtime keeps what it is for, and is told why."""
    gpu.fail("ModuleLoadData", calls_from_now=1, code=200)
    made = session(tmp_path)
    [graph] = explain(made).graphs
    assert all("hipErrorInvalidImage for a program" in declined.why.text for declined in graph.declined) and graph.declined
    check(made, 3)


def test_a_device_that_is_lost_is_lost_for_its_sessions(gpu: FakeHip, folder: Path) -> None:
    made = session(folder)
    gpu.fail("StreamSynchronize", calls_from_now=1, code=ILLEGAL_ADDRESS)
    for _ in range(2):
        with pytest.raises(Lost, match="hipErrorIllegalAddress"):
            made.run(None, rows(3))
    gpu.reset()
    check(session(folder), 3)  # a new one opens the device anew


def test_the_doctor_lists_devices_and_compilers(gpu: FakeHip, folder: Path) -> None:
    text = str(doctor(cache_dir=folder))
    assert "Simulated GPU, gfx942, 4 units, 1024 MiB: can be used" in text
    assert "hipRTC (of tests) compiles" in text
    gpu.set_architecture("gfx803")
    assert "NO: kernels are made for gfx90a, gfx942, gfx1100, not for gfx803" in str(doctor(cache_dir=folder))
    with pytest.raises(ConfigError, match="backend=hip cannot be had: no AMD GPU can be used"):
        Hip().target()


def test_the_name_of_a_device_that_has_no_number_in_ort(gpu: FakeHip) -> None:
    target = Hip().target()
    assert target.identity == "HIP / Simulated GPU / gfx942 / driver 6.2"
    assert Hip().numbered(0) is None and target.memory_bytes == 1 << 30


def test_without_the_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    devices.survey.cache_clear()
    found = devices.survey(LIBRARY)
    assert found.missing.startswith(("libamdhip64.so", "AMD's driver")) and not found.devices  # or one that is of no use
    assert found.remedy == devices.NO_DRIVER
    devices.survey.cache_clear()


def device(**more: Any) -> HipDevice:
    facts = {
        "identity": "a", "ordinal": 0, "name": "AMD Instinct MI300X", "architecture": "gfx942", "driver": "6.2",
        "multiprocessors": 304, "max_threads": 1024, "shared_bytes": 64 << 10, "clock_khz": 2100000,
        "memory_clock_khz": 0, "memory_bus_bits": 8192, "l2_bytes": 4 << 20, "memory_bytes": 192 << 30,
    }  # fmt: skip
    return HipDevice(**{**facts, **more})


def test_what_the_child_says() -> None:
    outcome = Outcome(problem="was ended by signal 11", log="")
    assert read_survey(outcome, "").missing == "asking for AMD's GPUs was ended by signal 11"
    assert read_survey(Outcome(problem="", log=f"{MARK}[]\n"), "").missing == "there is no AMD GPU"
    one = device()
    listed = {name: getattr(one, name) for name in HipDevice.__dataclass_fields__ if name != "problem"}
    outcome = Outcome(problem="", log=f"{MARK}{json.dumps([listed])}\n")
    assert read_survey(outcome, "").working == (one,)
    assert "no compiler at all" in read_survey(outcome, "no compiler at all").missing


def test_rates_of_a_device_are_those_of_its_clocks() -> None:
    gpu = hip_gpu(device())
    assert gpu.fma_gflops == pytest.approx(81.7e3, rel=0.01)  # as its data sheet says
    assert gpu.memory_gbs == 5300 and gpu.subgroup == 64 and gpu.units == 304
    radeon = hip_gpu(device(architecture="gfx1100", name="Radeon RX 7900 XTX", multiprocessors=48, clock_khz=2500000))
    assert radeon.fma_gflops == pytest.approx(30.7e3, rel=0.01) and radeon.subgroup == 32
