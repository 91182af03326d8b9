"""Sessions with backend=opencl: the same results, planned once, compiled before the first run, refused where nothing works."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

from xyntra_ep import explain
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.backends.opencl import OpenCl
from xyntra_ep.tracea.runtime import opencl
from xyntra_ep.tracea.runtime.opencl import NO_DRIVER, OpenClDevice, OpenClSurvey

pytestmark = [pytest.mark.native]
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument
SIZES = (5, 1, 0, 200)  # the last has more than 65536 elements in its widest tensor: another launch size for PoCL


def model() -> bytes:
    """x [N, 96] -> Gelu(x w + b) -> softmax, of any number of rows"""
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 96] x) => (float[N, 333] y)
        { p = MatMul(x, w) s = Add(p, b) a = Gelu(s) y = Softmax<axis = -1>(a) }"""
    made = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in (("w", (96, 333)), ("b", (333,))):
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 5, name))
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def session(options: dict[str, str], *, level: int = 4, content: bytes | None = None) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = level
    providers = [("XyntraEP", options), "CPUExecutionProvider"]
    return ort.InferenceSession(content or model(), settings, providers=providers, enable_fallback=0)


def rows(count: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(count).standard_normal((count, 96)).astype(np.float32)}


@pytest.mark.device("opencl")
def test_the_same_results_without_compiling_in_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])
    options = {"backend": "opencl", "cache_dir": str(tmp_path)}
    first, again = session(options), session(options)
    for made, stored in ((first, False), (again, True)):
        (graph,) = explain(made).graphs
        assert (graph.claimed, graph.declined, graph.stored) == (len(graph.nodes), (), stored)
        assert graph.device == OpenCl().target().identity and graph.device in str(explain(made))
    compiled = _pocl_objects()
    for count in SIZES:
        wanted = cpu.run(None, rows(count))[0]
        for made in (first, again):
            np.testing.assert_allclose(made.run(None, rows(count))[0], wanted, rtol=0, atol=2e-6)
    assert _pocl_objects() == compiled


def _pocl_objects() -> set[Path]:
    """What PoCL has compiled, when it is PoCL."""
    return set((Path.home() / ".cache" / "pocl" / "kcache").rglob("*.so"))


@pytest.mark.device("opencl")
def test_another_precision_is_not_there_yet(tmp_path: Path) -> None:
    (graph,) = explain(session({"backend": "opencl", "precision": "bf16", "cache_dir": str(tmp_path)})).graphs
    assert graph.precision == "precision=bf16 is not there with backend=opencl: computed in fp32"


@pytest.mark.device("opencl")
def test_a_device_with_halves_stores_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its bf16 is fp16. What is stored needs no extension of the device: one without can stand for one with it."""
    found = opencl.survey()
    halves = replace(found, devices=tuple(replace(device, has_half=True) for device in found.devices))
    monkeypatch.setattr("xyntra_ep.tracea.runtime.opencl.survey", lambda: halves)
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 96] x) => (float[N, 96] y)
        { h = MatMul(x, w) a = Gelu(h) y = MatMul(a, w) }"""
    two = parser.parse_model(text)
    weights = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32) / 10
    two.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    made = session({"backend": "opencl", "precision": "bf16", "cache_dir": str(tmp_path)}, content=two.SerializeToString())
    assert explain(made).graphs[0].precision == "precision=bf16 is not there with backend=opencl: computed in fp16"
    wanted = ort.InferenceSession(two.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, rows(37))[0]
    error = np.abs(made.run(None, rows(37))[0] - wanted).max() / np.abs(wanted).max()
    assert 1e-5 < error < 2e-3  # it does round


def test_no_device_is_a_refusal_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = OpenClSurvey(missing="there is no OpenCL device", remedy=NO_DRIVER)
    monkeypatch.setattr("xyntra_ep.tracea.runtime.opencl.survey", lambda: missing)
    said = r"backend=opencl cannot be had: there is no OpenCL device.*apt install pocl-opencl-icd"
    with pytest.raises(InvalidArgument, match=said):
        session({"backend": "opencl", "cache_dir": str(tmp_path)})


def device(name: str, *, is_cpu: bool, problem: str = "") -> OpenClDevice:
    return OpenClDevice(
        identity=name, place=(0, 0), name=name, platform="p", version="1", is_cpu=is_cpu, compute_units=1, max_threads=1,
        shared_bytes=0, memory_bytes=0, divides_exactly=True, vendor="v", clock_mhz=1000, has_half=False, problem=problem,
    )  # fmt: skip


def test_a_gpu_goes_before_the_cpu_when_it_works() -> None:
    cpu, gpu, broken = device("cpu", is_cpu=True), device("gpu", is_cpu=False), device("broken", is_cpu=False, problem="old")
    assert OpenCl().target(OpenClSurvey(devices=(cpu, gpu))).identity == gpu.identity
    assert OpenCl().target(OpenClSurvey(devices=(broken, cpu))).identity == cpu.identity
    with pytest.raises(ConfigError, match="no OpenCL device"):
        OpenCl().target(OpenClSurvey(missing="no OpenCL device works", remedy=NO_DRIVER))
