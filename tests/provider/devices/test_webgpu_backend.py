"""Sessions with backend=webgpu: the same results at any size, many blocks, declines of what an adapter does not bind."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

from tests.provider.devices.test_opencl_backend import model, rows, session
from xyntra_ep import explain
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.backends.webgpu import WebGpu
from xyntra_ep.tracea.interface.devices import known_target
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.runtime.webgpu import devices
from xyntra_ep.tracea.runtime.webgpu.devices import NO_DRIVER, NO_PACKAGE, WebGpuDevice, WebGpuSurvey, read_survey

pytestmark = [pytest.mark.native]
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument
adapter = pytest.mark.device("webgpu")
MANY_ROWS = 70_000  # more than 65535 blocks, where each has a row

GPU = WebGpuDevice(
    identity="WebGPU / Vulkan / G / d / wgpu 29.0", name="G", api="Vulkan", driver="d", is_cpu=False, has_half=False,
    max_threads=1024, shared_bytes=48 << 10, max_buffers=16, buffer_bytes=1 << 30,
)  # fmt: skip


@adapter
def test_the_same_results_at_any_size(tmp_path: Path) -> None:
    cpu = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])
    options = {"backend": "webgpu", "cache_dir": str(tmp_path)}
    first, again = session(options), session(options)
    for made, stored in ((first, False), (again, True)):
        (graph,) = explain(made).graphs
        assert (graph.claimed, graph.declined, graph.stored) == (len(graph.nodes), (), stored)
        assert graph.device == WebGpu().target().identity
    for count in (5, 1, 0, 200):
        wanted = cpu.run(None, rows(count))[0]
        for made in (first, again):
            np.testing.assert_allclose(made.run(None, rows(count))[0], wanted, rtol=0, atol=2e-6)


@adapter
def test_runs_of_many_threads(tmp_path: Path) -> None:
    made = session({"backend": "webgpu", "cache_dir": str(tmp_path)})
    cpu = ort.InferenceSession(model(), providers=["CPUExecutionProvider"])

    def error(count: int) -> float:
        return float(np.abs(made.run(None, rows(count))[0] - cpu.run(None, rows(count))[0]).max())

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(error, [3, 50, 3, 17, 64, 50, 3, 1] * 4)) < 2e-6


@adapter
def test_more_blocks_than_one_dimension_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row a block, as on a GPU."""
    found = devices.survey(library())
    gpus = replace(found, devices=tuple(replace(device, is_cpu=False) for device in found.devices))
    monkeypatch.setattr(devices, "survey", lambda *_: gpus)
    monkeypatch.setenv("XYNTRA_AVOID", "row_reduce.thread")
    monkeypatch.setenv("XYNTRA_TRIALS", "0")
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 96] x) => (float[N, 96] y) { y = Softmax<axis = -1>(x) }"""
    options = {"backend": "webgpu", "claim": "all", "cache_dir": str(tmp_path)}
    made = session(options, content=parser.parse_model(text).SerializeToString())
    assert "row_reduce.block" in str(explain(made))
    x = rows(MANY_ROWS)["x"]
    exact = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(made.run(None, {"x": x})[0], exact / exact.sum(axis=1, keepdims=True), rtol=0, atol=2e-6)


@adapter
def test_what_is_too_large_for_a_binding_is_declined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = devices.survey(library())
    small = replace(found, devices=tuple(replace(device, buffer_bytes=100_000) for device in found.devices))
    monkeypatch.setattr(devices, "survey", lambda *_: small)
    made = session({"backend": "webgpu", "claim": "all", "cache_dir": str(tmp_path)})
    reasons = [d.reason for graph in explain(made).graphs for d in graph.declined]
    assert "a tensor has 127872 bytes, and the device binds 100000 at most" in reasons
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(5))[0]
    np.testing.assert_allclose(made.run(None, rows(5))[0], wanted, rtol=0, atol=2e-6)


@adapter
def test_more_inputs_than_a_kernel_binds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nodes stay on the CPU, each with the reason."""
    found = devices.survey(library())
    few = replace(found, devices=tuple(replace(device, max_buffers=4) for device in found.devices))
    monkeypatch.setattr(devices, "survey", lambda *_: few)
    names = "abcdef"
    inputs = ", ".join(f"float[N] {name}" for name in names)
    text = f'<ir_version: 8, opset_import: ["" : 20]> g ({inputs}) => (float[N] y) {{ y = Sum({", ".join(names)}) }}'
    options = {"backend": "webgpu", "claim": "all", "cache_dir": str(tmp_path)}
    made = session(options, content=parser.parse_model(text).SerializeToString())
    reasons = [d.reason for graph in explain(made).graphs for d in graph.declined]
    assert reasons == ["a kernel takes 7 tensors, and the device binds 4 at most"]
    feeds = {name: np.full(3, i, np.float32) for i, name in enumerate(names)}
    assert made.run(None, feeds)[0].tolist() == [15, 15, 15]


def library() -> Path:
    from xyntra_ep.tracea.backends import LIBRARY

    return LIBRARY


def test_no_adapter_is_a_refusal_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    missing = WebGpuSurvey(missing="there is no adapter of WebGPU", remedy=NO_DRIVER)
    monkeypatch.setattr(devices, "survey", lambda *_: missing)
    with pytest.raises(InvalidArgument, match=r"backend=webgpu cannot be had: there is no adapter.*mesa-vulkan-drivers"):
        session({"backend": "webgpu", "cache_dir": str(tmp_path)})


def test_a_gpu_goes_before_the_cpu_when_it_works() -> None:
    cpu, broken = replace(GPU, identity="c", is_cpu=True), replace(GPU, identity="b", problem="it computes wrong numbers")
    assert WebGpu().target(WebGpuSurvey(devices=(cpu, GPU))).identity == GPU.identity
    assert WebGpu().target(WebGpuSurvey(devices=(broken, cpu))).identity == "c"
    with pytest.raises(ConfigError, match="no adapter of WebGPU works"):
        WebGpu().target(WebGpuSurvey(missing="no adapter of WebGPU works", remedy=NO_DRIVER))


def test_a_kernel_gets_no_more_than_the_adapter_has() -> None:
    small = WebGpu().open(replace(GPU, max_threads=128, shared_bytes=8 << 10)).gpu
    assert (small.max_threads, small.shared_bytes, small.max_buffers, small.buffer_bytes) == (128, 8 << 10, 16, 1 << 30)
    least = known_target("webgpu").gpu
    assert (least.max_threads, least.shared_bytes, least.max_buffers, least.buffer_bytes) == (256, 16 << 10, 8, 128 << 20)


def said(*found: object) -> Outcome:
    from xyntra_ep.tracea.runtime.children import devices_child

    return Outcome(problem="", log="".join(f"a driver's word\n{devices_child.MARK}{json.dumps(f)}\n" for f in found))


def test_what_the_child_says() -> None:
    facts = {name: getattr(GPU, name) for name in WebGpuDevice.__dataclass_fields__}
    assert read_survey(said([facts])) == WebGpuSurvey(devices=(GPU,))
    assert read_survey(said([])).missing == "there is no adapter of WebGPU"
    assert read_survey(said({"missing": "no library"})) == WebGpuSurvey(missing="no library", remedy=NO_PACKAGE)
    broken = read_survey(said([{**facts, "problem": "it computes wrong numbers"}]))
    assert broken.missing == "no adapter of WebGPU works (G: it computes wrong numbers)"
    silent = read_survey(Outcome(problem="did not end within 60 s"))
    assert silent.missing == "asking for WebGPU's adapters did not end within 60 s" and not silent.lasting
