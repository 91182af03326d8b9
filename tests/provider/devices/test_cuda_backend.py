"""Sessions with backend=cuda on a driver that is not there: what native code asks of it, and what users get.

The kernels are the text that a GPU would run, carried out on the host (tests/support/fake_cuda).
"""

from __future__ import annotations

import ctypes
import dataclasses
import gc
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import numpy_helper, parser

from tests.support.fake_cuda import FakeCuda
from xyntra_ep import explain
from xyntra_ep.diagnostics.kernel_times import device_run_ns, kernel_times
from xyntra_ep.errors import CompileError
from xyntra_ep.provider import registration
from xyntra_ep.tracea.backends.cuda import Cuda, cuda_gpu
from xyntra_ep.tracea.doctor import variants
from xyntra_ep.tracea.kernels.gpu.tensor_cores import gemm_fragments, gemm_wgmma
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.children.driver_child import MARK
from xyntra_ep.tracea.runtime.cuda import CudaDevice, read_survey
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_report import KernelReport, read_report
from xyntra_ep.tracea.runtime.kernel_source import SYMBOL, Definition, KernelSource
from xyntra_ep.tracea.runtime.nvrtc_compiler import NvrtcCompiler
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80, SM_90
from xyntra_zoo import model_path, zoo

pytestmark = [pytest.mark.native, pytest.mark.compiler("nvrtc")]
RuntimeFailure = ort.capi.onnxruntime_pybind11_state.RuntimeException
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, folder: Path) -> FakeCuda:
    return FakeCuda(monkeypatch, folder)


def model() -> bytes:
    """x [N, 96] -> Gelu(x w + b) -> softmax, of any number of rows"""
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 96] x) => (float[N, 70] y)
        { p = MatMul(x, w) s = Add(p, b) a = Gelu(s) y = Softmax<axis = -1>(a) }"""
    made = parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in (("w", (96, 70)), ("b", (70,))):
        made.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) / 5, name))
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def session(folder: Path, content: bytes | None = None, **options: str) -> ort.InferenceSession:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    options = {"backend": "cuda", "cache_dir": str(folder / "cache"), **options}
    providers = [("XyntraEP", options), "CPUExecutionProvider"]
    return ort.InferenceSession(content or model(), settings, providers=providers, enable_fallback=0)


def graph_variants(made: ort.InferenceSession) -> set[str]:
    return {kernel.variant for graph in explain(made).graphs for island in graph.islands for kernel in island.kernels}


def rows(count: int) -> dict[str, Any]:
    return {"x": np.random.default_rng(count).standard_normal((count, 96)).astype(np.float32)}


def check(made: ort.InferenceSession, count: int) -> None:
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(count))[0]
    np.testing.assert_allclose(made.run(None, rows(count))[0], wanted, rtol=0, atol=2e-6)


def test_shapes_come_and_go_and_nothing_is_compiled_in_a_run(gpu: FakeCuda, folder: Path) -> None:
    first, again = session(folder), session(folder)
    for made, stored in ((first, False), (again, True)):
        (graph,) = explain(made).graphs
        assert (graph.claimed, graph.declined, graph.stored) == (len(graph.nodes), (), stored)
        assert graph.device == "CUDA / Simulated GPU / sm_80 / driver 12.8"
    loaded = gpu.count("ModuleLoadData")
    for count in (5, 1, 0, 40, 5):
        for made in (first, again):
            check(made, count)
    assert gpu.count("ModuleLoadData") == loaded


def test_a_run_with_the_last_shapes_moves_data_and_launches_one_graph(gpu: FakeCuda, folder: Path) -> None:
    made = session(folder)
    for _ in range(2):  # the second one finds room for all that goes through pinned memory
        check(made, 300)
    watched = ("GraphInstantiate", "LaunchKernel", "MemAlloc", "MemAllocHost", "MemFree", "StreamCreate", "ModuleGetFunction")
    before = {name: gpu.count(name) for name in watched}
    moved = {name: gpu.count(name) for name in ("MemcpyHtoDAsync", "MemcpyDtoHAsync", "GraphLaunch")}
    for _ in range(3):
        check(made, 300)
    assert {name: gpu.count(name) for name in watched} == before
    assert {name: gpu.count(name) - n for name, n in moved.items()} == dict.fromkeys(moved, 3)


def test_threads_run_one_session(gpu: FakeCuda, folder: Path) -> None:
    made = session(folder)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: check(made, n), range(1, 21)))


def test_a_session_that_goes_leaves_nothing_on_the_device(gpu: FakeCuda, folder: Path) -> None:
    gc.collect()
    before = {kind: gpu.count(kind) for kind in ("device", "host", "graphs")}
    made = session(folder)
    check(made, 5)
    assert all(gpu.count(kind) > n for kind, n in before.items())
    del made
    gc.collect()
    assert {kind: gpu.count(kind) for kind in before} == before


@pytest.mark.parametrize("call", ["MemAlloc", "MemAllocHost", "GraphInstantiate", "GraphLaunch", "StreamSynchronize"])
def test_a_run_that_fails_says_so_and_the_next_one_is_right(gpu: FakeCuda, folder: Path, call: str) -> None:
    made = session(folder)
    gpu.fail(call, calls_from_now=1)
    with pytest.raises(RuntimeFailure, match=r"'CUDA / Simulated GPU .*' reports CUDA_ERROR_OUT_OF_MEMORY for"):
        made.run(None, rows(7))
    check(made, 7)


def test_weights_that_do_not_fit_fail_the_session(gpu: FakeCuda, folder: Path) -> None:
    session(folder)
    gpu.fail("MemAlloc", calls_from_now=1)
    with pytest.raises(RuntimeFailure, match="CUDA_ERROR_OUT_OF_MEMORY for a buffer"):
        session(folder)


def test_steps_are_timed_by_the_device(gpu: FakeCuda, folder: Path) -> None:
    made, library = session(folder), registration.library()
    check(made, 5)
    library.xyntra_profile(1)
    check(made, 5)
    library.xyntra_profile(0)
    buffer = ctypes.create_string_buffer(library.xyntra_take_profile(None, 0) + 1)
    library.xyntra_take_profile(buffer, len(buffer))
    steps = [json.loads(line) for line in buffer.value.decode().splitlines() if line.strip()]
    times = {step["kernel"]: step["ns"] / step["calls"] for step in steps}
    assert len(times) >= 2 and {ns for ns in times.values() if ns} == {250_000.0}
    # Of a product's two kernels, the rows of the run have launched one.
    assert [bool(ns) for name, ns in times.items() if "gemv" in name or "x" in name[8:]] == [True, False], times


def test_a_run_as_a_whole_is_timed_as_it_is(gpu: FakeCuda, folder: Path) -> None:
    """By events round its graph: kernels take less there than by themselves, and copies of inputs and outputs are not in it."""
    made = session(folder)
    check(made, 5)
    steps = kernel_times(made, lambda: made.run(None, rows(5)), runs=1)
    kernels = sum(kernel.ns for kernel in steps.kernels) // 250_000
    # With a pause before it: what is timed is queued before it begins.
    before = {name: gpu.count(name) for name in ("GraphLaunch", "LaunchKernel", "MemcpyHtoDAsync", "LaunchHostFunc")}
    assert kernels >= 2 and device_run_ns(made, lambda: made.run(None, rows(5)), runs=3) == kernels * 125_000
    assert {name: gpu.count(name) - n for name, n in before.items()} == {**dict.fromkeys(before, 3), "LaunchKernel": 0}
    on_cpu = session(folder, backend="cpu")
    assert device_run_ns(on_cpu, lambda: on_cpu.run(None, rows(5)), runs=1) is None
    check(made, 5)


@pytest.mark.parametrize(
    ("name", "precision", "max_err"),
    [
        *((name, *of) for name in ("gpt2-prefill-tiny", "resnet50-tiny") for of in (("fp32", 1e-4), ("bf16", 2e-2))),
        ("gpt2-prefill-tiny", "tf32", 5e-3),
        pytest.param("resnet50-tiny", "tf32", 5e-3, marks=pytest.mark.slow),
        pytest.param("resnet50-tiny", "fp16", 5e-3, marks=pytest.mark.slow),
    ],
)
def test_a_model_as_a_whole(gpu: FakeCuda, folder: Path, name: str, precision: str, max_err: float) -> None:
    content, feeds = model_path(zoo[name]).read_bytes(), zoo[name].feeds(1, 12, 0)
    made = session(folder, content, precision=precision)
    chosen = graph_variants(made)
    assert ("gemm.fragments_or_gemv" in chosen) is (precision != "fp32")
    assert ("conv.fragments" in chosen) is (precision != "fp32" and name == "resnet50-tiny")
    assert all(not graph.declined for graph in explain(made).graphs)
    wanted = ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    for ours, theirs in zip(made.run(None, feeds), wanted, strict=True):
        assert np.abs(ours - theirs).max() <= max_err * np.abs(theirs).max()


def test_more_shared_memory_than_a_kernel_may_declare_is_asked_for(
    gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {"rows": 128, "columns": 128, "slots": 4, "parts": 1}  # 64 KiB
    large = replace(gemm_fragments.VARIANTS[0], default=lambda op, context: config)
    some = {**variants.gpu_variants(), **variants.by_op([large])}
    monkeypatch.setattr(variants, "gpu_variants", lambda: some)
    asked = gpu.count("FuncSetAttribute")
    made = session(tmp_path, precision="bf16")
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(130))[0]
    np.testing.assert_allclose(made.run(None, rows(130))[0], wanted, rtol=0, atol=2e-2)
    assert gpu.count("FuncSetAttribute") > asked
    gpu.fail("FuncSetAttribute", calls_from_now=1)
    (graph,) = explain(session(tmp_path / "new", precision="bf16")).graphs
    assert "CUDA_ERROR_OUT_OF_MEMORY for the kernel xy_gemm" in str(graph)


def test_variants_can_be_avoided(gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variant takes along those that launch its kernels."""
    monkeypatch.setenv("XYNTRA_AVOID", "gemm.fragments")
    made = session(tmp_path, precision="bf16")
    assert not any("fragments" in name for name in graph_variants(made))
    rejected = [(why.about, why.text) for g in explain(made).graphs for i in g.islands for k in i.kernels for why in k.rejected]
    assert ("gemm.fragments_or_gemv", "XYNTRA_AVOID names it") in rejected
    monkeypatch.setenv("XYNTRA_AVOID", "gemm.wgmm")
    (graph,) = explain(session(tmp_path, precision="bf16")).graphs
    assert "XYNTRA_AVOID: no kernel variant for GPUs is called 'gemm.wgmm'. there are " in graph.failure


def test_a_model_in_float16_is_multiplied_in_it(gpu: FakeCuda, folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float16[N, 64] x) => (float16[N, 40] y)
        { h = MatMul(x, v) a = Relu(h) y = MatMul(a, w) }"""
    half, exact = (parser.parse_model(text.replace("float16", kind)) for kind in ("float16", "float"))
    rng = np.random.default_rng(1)
    for name, shape in (("v", (64, 48)), ("w", (48, 40))):
        weights = (rng.standard_normal(shape) / 7).astype(np.float16)
        half.graph.initializer.append(numpy_helper.from_array(weights, name))
        exact.graph.initializer.append(numpy_helper.from_array(weights.astype(np.float32), name))
    made = session(folder, half.SerializeToString())
    [island] = [island for graph in explain(made).graphs for island in graph.islands]
    assert [kernel.variant for kernel in island.kernels] == ["gemm.fragments_or_gemv"] * 2
    x = rng.standard_normal((21, 64)).astype(np.float16)
    [wanted] = ort.InferenceSession(exact.SerializeToString()).run(None, {"x": x.astype(np.float32)})
    assert np.abs(made.run(None, {"x": x})[0] - wanted).max() <= 2e-3 * np.abs(wanted).max()


@pytest.mark.parametrize("cluster", [1, 2])
def test_products_by_warpgroups(gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: int) -> None:
    """The maps of tensors are made with every new shape, and stay for runs that have it again."""
    gpu.set(capability=90)
    config = {"part": 0, "turns": 3 - cluster, "cluster": cluster, "parts": 1}
    wgmma = [replace(variant, default=lambda op, context: config) for variant in gemm_wgmma.VARIANTS]
    some = {**variants.gpu_variants(), **variants.by_op(wgmma)}
    monkeypatch.setattr(variants, "gpu_variants", lambda: some)
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[B, N, 128] x, float[B, 128, K] y) => (float[B, N, K] z)
        { p = MatMul(x, y) z = Relu(p) }"""
    content = parser.parse_model(text).SerializeToString()
    made = session(tmp_path, content, precision="bf16", claim="all")
    assert graph_variants(made) == {"gemm.wgmma"}
    maps = gpu.count("TensorMapEncodeTiled")
    rng = np.random.default_rng(0)
    for batch, count, columns in ((3, 135, 24), (1, 1, 136), (3, 135, 24)):
        feeds = {"x": rng.standard_normal((batch, count, 128)), "y": rng.standard_normal((batch, 128, columns))}
        feeds = {name: x.astype(np.float32) for name, x in feeds.items()}
        wanted = np.maximum(feeds["x"] @ feeds["y"], 0)
        got = made.run(None, feeds)[0]
        assert np.abs(got - wanted).max() <= 2e-2 * np.abs(wanted).max()
    assert gpu.count("TensorMapEncodeTiled") > maps
    again = gpu.count("TensorMapEncodeTiled")
    made.run(None, feeds)
    assert gpu.count("TensorMapEncodeTiled") == again  # the graph has them


# -- what there is


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"devices": 0}, "the CUDA driver reports CUDA_ERROR_NO_DEVICE.*install NVIDIA's driver"),
        ({"capability": 75}, r"Simulated GPU: compute capability 7.5 is below 8.0"),
        ({"capability": 199}, r"Simulated GPU: NVRTC [\d.]+ does not know sm_199"),
    ],
)
def test_no_device_is_a_refusal_with_the_reason(gpu: FakeCuda, tmp_path: Path, facts: dict[str, int], said: str) -> None:
    gpu.set(**facts)
    with pytest.raises(InvalidArgument, match=f"backend=cuda cannot be had: .*{said}"):
        session(tmp_path)


def test_the_first_device_that_can_be_used_is_taken(gpu: FakeCuda) -> None:
    gpu.set(devices=2)
    found = Cuda().target()
    assert found.identity == "CUDA / Simulated GPU / sm_80 / driver 12.8" and found.flags == ("sm_80",)
    assert (found.gpu.name, found.gpu.units, found.gpu.memory_gbs) == ("sm_80", 4, 64.0)


def test_a_child_that_dies_is_a_reason() -> None:
    outcome = Outcome(problem="was ended by signal 11", log="")
    assert "was ended by signal 11" in read_survey(outcome, frozenset({"sm_80"}), "12.9").missing
    outcome = Outcome(problem="", log=f"driver talks\n{MARK}[]\n")
    assert read_survey(outcome, frozenset({"sm_80"}), "12.9").missing == "there is no CUDA device"


def h100(**more: Any) -> CudaDevice:
    facts: dict[str, Any] = dict(
        identity="i", ordinal=0, name="NVIDIA H100", architecture="sm_90", driver="12.8", multiprocessors=132, max_threads=1024,
        shared_bytes=48 << 10, clock_khz=1_980_000, memory_clock_khz=2_619_000, memory_bus_bits=5120, l2_bytes=50 << 20,
        memory_bytes=80 << 30,
    )  # fmt: skip
    return CudaDevice(**{**facts, **more})


def test_a_compiler_newer_than_the_driver_is_a_reason() -> None:
    facts = {name: value for name, value in dataclasses.asdict(h100()).items() if name != "problem"}
    outcome = Outcome(problem="", log=f"{MARK}{json.dumps([facts])}\n")
    known = frozenset({"sm_90"})
    newer = read_survey(outcome, known, "13.0")
    assert (
        "NVRTC 13.0 makes code that a driver for CUDA 12.8 does not load" in newer.missing and "xyntra-ep[cuda]" in newer.remedy
    )
    assert not read_survey(outcome, known, "12.9").missing and not read_survey(outcome, known, "11.8").missing


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(("spilled", "kept"), [((0,), 0), ((40, 0), 0), ((40, 8), 8), ((8, 40), 8), ((40, None), 40)])
def test_a_kernel_that_spills_is_compiled_again_for_fewer_blocks(
    monkeypatch: pytest.MonkeyPatch, spilled: tuple[int | None, ...], kept: int
) -> None:
    asked: list[tuple[str, ...]] = []

    def compiled(self: nvrtc.Nvrtc, name: str, text: str, architecture: str, *more: str) -> nvrtc.Cubin:
        asked.append(more)
        found = spilled[len(asked) - 1]
        if found is None:
            raise CompileError("an option that the assembler does not know", where=name)
        report = KernelReport(registers=128, shared_bytes=0, spilled_bytes=found)
        return nvrtc.Cubin(code=b"", reports={"k": report}, log="")

    library = nvrtc.load()
    text = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] = 1; }'
    assert library._compiled("k", text, "sm_80", nvrtc._ONE_BLOCK).registers > 0  # an option that the assembler knows
    monkeypatch.setattr(nvrtc.Nvrtc, "_compiled", compiled)
    assert library.compile("k", "", "sm_80").spilled_bytes == kept
    assert asked == [(), (nvrtc._ONE_BLOCK,)][: len(spilled)]


def test_rates_follow_from_clocks_or_else_from_what_is_known() -> None:
    gpu = cuda_gpu(h100())
    assert gpu.fma_gflops == pytest.approx(SM_90.fma_gflops, rel=0.01)  # the data sheet's
    assert gpu.memory_gbs == pytest.approx(SM_90.memory_gbs, rel=0.01)
    untold = cuda_gpu(h100(clock_khz=0, memory_clock_khz=0))
    assert (untold.fma_gflops, untold.memory_gbs) == (SM_90.fma_gflops, SM_90.memory_gbs)
    assert cuda_gpu(h100(architecture="sm_80", clock_khz=1_410_000, multiprocessors=108)).fma_gflops == pytest.approx(
        SM_80.fma_gflops, rel=0.01
    )


# -- NVRTC itself


def test_nvrtc_compiles_several_kernels_as_one_unit(tmp_path: Path) -> None:
    helper = Definition.function(
        "static __device__ __forceinline__", "float twice(float v)", " { return 2 * v; }\n", name="twice"
    )
    pair = Definition(text="struct __align__(8) pair { float e[2]; };\n", name="pair", is_type=True)
    text = 'extern "C" __global__ void {}(float *x) {{ {} pair p{{{{twice(x[0]), {}}}}}; x[0] = p.e[0] + p.e[1]; }}\n'
    shared = "__shared__ float s[32]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x];"
    exported = [Definition(text=text.format(SYMBOL, shared * (i == 2), i)) for i in range(3)]
    sources = [KernelSource(symbol=f"k{i}", definitions=(helper, pair, exported[i]), threads=32) for i in range(3)]
    cache = KernelCache(open_root(tmp_path), NvrtcCompiler(version=nvrtc.load().version), ("sm_90",))
    kernels = cache.compile_many(sources)
    for source, kernel in zip(sources, kernels, strict=True):
        assert isinstance(kernel, CompiledKernel), kernel
        assert source.symbol.encode() in kernel.path.read_bytes()
        report = read_report(kernel.path, source.symbol)
        assert report is not None and 0 < report.registers < 64 and report.spilled_bytes == 0
        assert report.shared_bytes == 128 * (source.symbol == "k2")
        [refused] = cache.compile_many([KernelSource.of_text("f", 'extern "C" __global__ void f() { x = 1; }\n')])
    assert isinstance(refused, CompileError) and 'identifier "x" is undefined' in str(refused.log)
