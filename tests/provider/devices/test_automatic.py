"""Sessions that leave the backend to us: what decides, what is recorded, and what happens where the device fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.provider.devices.test_cuda_backend import model, rows
from tests.support.fake_cuda import FakeCuda
from xyntra_ep import explain
from xyntra_ep.diagnostics.explain import GraphReport
from xyntra_ep.provider import plan_identity, planner, registration
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.interface.automatic import automatic
from xyntra_ep.tracea.interface.device_costs import ASSUMED, DeviceCosts
from xyntra_ep.tracea.runtime import cuda, opencl
from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.opencl import OpenClDevice, OpenClSurvey, gpu_at_hand

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
NO_DOUBT = {False: 0.0, True: 0.0}  # a device pays whatever it costs
needs_nvrtc = pytest.mark.compiler("nvrtc")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> FakeCuda:
    """One that seems to be there, and pays for whatever model."""
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    monkeypatch.setattr(planner, "DEVICE_DOUBT", NO_DOUBT)
    return FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))


def session(cache: Path, **options: str) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    providers = [("XyntraEP", {"claim": "all", "cache_dir": str(cache), **options}), "CPUExecutionProvider"]
    return ort.InferenceSession(model(), settings, providers=providers, enable_fallback=0)


def placed(made: ort.InferenceSession) -> GraphReport:
    """What is recorded; the results are right wherever they come from."""
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(5))[0]
    np.testing.assert_allclose(made.run(None, rows(5))[0], wanted, rtol=0, atol=2e-6)
    (graph,) = explain(made).graphs
    assert graph.claimed > 0
    return graph


def test_no_driver_is_asked_where_nothing_shows_a_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def asked(*_: Any) -> Any:
        pytest.fail("a process was started to look for devices")

    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    monkeypatch.setattr(opencl, "gpu_at_hand", lambda: False)
    monkeypatch.setattr(cuda, "survey", asked)
    monkeypatch.setattr(opencl, "survey", asked)
    made = session(tmp_path)
    assert (placed(made).device, placed(made).placement) == ("", "there is no GPU")
    assert "backend=auto: the CPU, because there is no GPU" in str(explain(made))
    assert placed(session(tmp_path, backend="cpu")).placement == ""


@needs_nvrtc
def test_a_gpu_that_works_is_taken(gpu: FakeCuda, tmp_path: Path) -> None:
    for stored in (False, True):
        made = session(tmp_path)
        graph = placed(made)
        assert (graph.device, graph.stored) == ("CUDA / Simulated GPU / sm_80 / driver 12.8", stored)
        assert graph.placement.startswith("Simulated GPU works: est. ") and graph.placement.endswith(str(ASSUMED))
    assert "backend=auto: the device, because Simulated GPU works: est. " in str(explain(made))


@needs_nvrtc
@pytest.mark.skipif(Path("/proc/driver/nvidia/gpus").exists(), reason="the driver shows its devices here")
def test_a_gpu_whose_files_are_hidden_is_asked_for(gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a process of its own, which has the driver's library from LD_LIBRARY_PATH."""
    monkeypatch.delenv("XYNTRA_CUDA_DEVICES")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    devices = plan_identity.devices(registration.library(), registration.default_cache_dir())
    assert "cuda -1" in devices, "plans are of this machine"
    assert placed(session(tmp_path)).device == "CUDA / Simulated GPU / sm_80 / driver 12.8"
    gpu.set(devices=0)
    choice = automatic(lambda: 1e9)
    assert choice.device is None and "the CUDA driver reports CUDA_ERROR_NO_DEVICE" in choice.reason


@needs_nvrtc
def test_a_small_model_stays_on_the_cpu(gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    FakeCuda(monkeypatch, tmp_path)
    graph = placed(session(tmp_path))
    assert graph.device == "" and graph.placement.startswith("Simulated GPU would not pay: est. ")


@needs_nvrtc
@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"devices": 0}, "the CUDA driver reports CUDA_ERROR_NO_DEVICE"),
        ({"capability": 75}, "compute capability 7.5 is below 8.0"),
    ],
)
def test_a_gpu_that_cannot_be_used_is_a_reason(gpu: FakeCuda, tmp_path: Path, facts: dict[str, int], said: str) -> None:
    gpu.set(**facts)
    graph = placed(session(tmp_path))
    assert graph.device == "" and said in graph.placement


@needs_nvrtc
def test_a_gpu_without_room_for_the_weights_is_left(gpu: FakeCuda, tmp_path: Path) -> None:
    assert placed(session(tmp_path)).device
    gpu.set(free_bytes=1 << 20)
    graph = placed(session(tmp_path))  # whose plan is stored
    assert graph.device == "" and graph.placement == "the device has 1 MiB free, the weights want 64"


@needs_nvrtc
def test_a_gpu_that_is_lost_is_left(gpu: FakeCuda, tmp_path: Path) -> None:
    gpu.fail("ModuleLoadData", calls_from_now=1)
    graph = placed(session(tmp_path))
    assert graph.device == "" and "CUDA_ERROR_OUT_OF_MEMORY for a program" in graph.placement
    gpu.fail("MemGetInfo", calls_from_now=1)
    graph = placed(session(tmp_path))
    assert graph.device == "" and "CUDA_ERROR_OUT_OF_MEMORY for its free memory" in graph.placement


def test_a_process_that_hangs_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    hanging = tmp_path / "hanging.py"
    hanging.write_text("import time\ntime.sleep(60)\n", encoding="utf-8")
    monkeypatch.setattr(devices_child, "__file__", str(hanging))
    found = cuda.survey(tmp_path / "no library", 0.2)
    assert found.missing.startswith("asking for CUDA devices ") and "0.2 s" in found.missing and not found.lasting


def device(name: str, *, vendor: str = "Advanced Micro Devices, Inc.", is_cpu: bool = False, units: int = 60) -> OpenClDevice:
    return OpenClDevice(
        identity=name, place=(0, 0), name=name, platform="p", version="1", is_cpu=is_cpu, compute_units=units, max_threads=256,
        shared_bytes=1 << 15, memory_bytes=1 << 30, divides_exactly=True, has_half=True, vendor=vendor, clock_mhz=2000,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("devices", "chosen", "said"),
    [
        ((device("cpu", is_cpu=True),), None, "cpu is the processor"),
        ((device("slow", units=2),), None, "slow has 512 GFLOP/s by its clock against the processor's 500"),
        ((device("odd", vendor="?"),), None, "odd has a rate that is not known against the processor's 500"),
        (
            (device("cpu", is_cpu=True), device("slow", units=2), device("fast")),
            "fast",
            "fast works, 15360 GFLOP/s by its clock against 500",
        ),
    ],
)
def test_an_opencl_gpu_has_to_be_much_faster(
    monkeypatch: pytest.MonkeyPatch, devices: tuple[OpenClDevice, ...], chosen: str | None, said: str
) -> None:
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    monkeypatch.setattr(opencl, "gpu_at_hand", lambda: True)
    monkeypatch.setattr(opencl, "survey", lambda _: OpenClSurvey(devices=devices))
    choice = automatic(lambda: 500.0)
    assert (choice.device.identity if choice.device else None) == chosen
    assert choice.reason.endswith(said) and choice.lasting
    passed = [("backend cuda", "there is no CUDA device"), ("backend metal", "this is no machine with Metal")]
    wanted = [*passed, *([] if chosen else [("backend opencl", choice.reason)])]
    assert list(choice.passed)[: len(wanted)] == wanted and (chosen is None or len(choice.passed) == len(wanted))


def test_what_an_opencl_gpu_was_measured_at_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"slow by its clock": 700.0, "fast by its clock": 300.0}

    def measured(target: DeviceTarget) -> DeviceCosts:
        return replace(ASSUMED, gflops=rates[target.name], is_measured=True)

    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    monkeypatch.setattr(opencl, "gpu_at_hand", lambda: True)
    devices = device("slow by its clock", units=2), device("fast by its clock")
    monkeypatch.setattr(opencl, "survey", lambda _: OpenClSurvey(devices=devices))
    choice = automatic(lambda: 500.0, measured)
    assert choice.device is not None and choice.costs.gflops == 700.0
    assert choice.reason == "slow by its clock works, 700 GFLOP/s measured against 500"
    choice = automatic(lambda: 800.0, measured)
    assert choice.device is None and "fast by its clock has 300 GFLOP/s measured against the processor's 800" in choice.reason


def test_a_gpu_is_at_hand_where_files_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    shown, drivers = tmp_path / "dri", tmp_path / "vendors"
    assert not gpu_at_hand(shown, drivers)
    shown.mkdir()
    drivers.mkdir()
    (drivers / "amd.icd").touch()
    (shown / "card0").touch()
    assert not gpu_at_hand(shown, drivers)
    (shown / "renderD128").touch()
    assert gpu_at_hand(shown, drivers)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not gpu_at_hand(shown, drivers)
