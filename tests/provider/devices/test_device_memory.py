"""Sessions whose tensors are in the memory of a device: who selects one, what is copied, and what is refused.

The driver is tests/support/fake_cuda's, whose memory ends the process when something else than a copy or a kernel touches it.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

from tests.native.conftest import FakePlanner
from tests.native.plans.manifest_builder import Alternative, Island, Kernel, Plan, Tensor, hash128
from tests.support.fake_cuda import LAUNCH_FAILED, FakeCuda
from tests.support.fake_cuda.compile import main as compile_cuda
from tests.support.ort_version import newer_ort
from xyntra_ep import explain
from xyntra_ep.errors import is_fatal
from xyntra_ep.provider import placement, registration
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.tracea.backends.cuda import Cuda

pytestmark = [pytest.mark.native, pytest.mark.compiler("nvrtc")]
NVIDIA = 0x10DE
errors = ort.capi.onnxruntime_pybind11_state
COPIES = tuple(f"Memcpy{way}{kind}" for way in ("HtoD", "DtoH", "DtoD") for kind in ("", "Async"))
ALLOCATIONS = ("MemAlloc", "MemFree", "MemAllocHost", "GraphInstantiate", "StreamCreate", "ModuleGetFunction")

CHAIN = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 8] x, float[N, 8] y) => (float[N, 8] z)
    { a = Add(x, y) s = Softmax<axis = -1>(a) z = Mul(s, y) }"""


# Several kernels, so a graph of them.
LONG = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 8] x, float[N, 8] y) => (float[N, 8] z)
    { a = Add(x, y) s = Softmax<axis = -1>(a) t = Transpose<perm = [1, 0]>(s) u = Softmax<axis = -1>(t)
      v = Transpose<perm = [1, 0]>(u) z = Mul(v, y) }"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cuda")


@pytest.fixture(scope="module")
def devices() -> Iterator[None]:
    """The library registered anew, where two CUDA devices seem to be."""

    def register_anew() -> None:
        gc.collect()
        ort.unregister_execution_provider_library("XyntraEP")
        ort.register_execution_provider_library("XyntraEP", registration.get_library_path())

    registration.register()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XYNTRA_CUDA_DEVICES", "2")
        register_anew()
    yield
    register_anew()


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, folder: Path, devices: None) -> Iterator[FakeCuda]:
    fake = FakeCuda(monkeypatch, folder)
    fake.set(devices=2)
    yield fake
    gc.collect()


def settings() -> ort.SessionOptions:
    made = ort.SessionOptions()
    made.log_severity_level = 4
    return made


def session(folder: Path, text: str = CHAIN, **options: str) -> ort.InferenceSession:
    given = {"device_id": "0", "cache_dir": str(folder / "cache"), **options}
    providers = [("XyntraEP", given), "CPUExecutionProvider"]
    return ort.InferenceSession(content(text), settings(), providers=providers, enable_fallback=0)


def content(text: str) -> bytes:
    return bytes(parser.parse_model(text).SerializeToString())


def feeds(rows: int, columns: int = 8) -> dict[str, Any]:
    rng = np.random.default_rng(rows)
    return {name: rng.standard_normal((rows, columns)).astype(np.float32) for name in ("x", "y")}


def wanted(given: dict[str, Any], text: str = CHAIN) -> Any:
    return ort.InferenceSession(content(text), settings(), providers=["CPUExecutionProvider"]).run(None, given)


def on_device(array: Any, device: int = 0) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_numpy(array, "gpu", device, NVIDIA)


def room(*shape: int, device: int = 0) -> ort.OrtValue:
    return ort.OrtValue.ortvalue_from_shape_and_type(list(shape), np.float32, "gpu", device, NVIDIA)


def bound(made: ort.InferenceSession, result: ort.OrtValue, **inputs: ort.OrtValue) -> Any:
    binding = made.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("z", result)
    return binding


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-6)


class Counted:
    """The driver's calls since it was made."""

    def __init__(self, gpu: FakeCuda, *names: str) -> None:
        self._gpu, self._before = gpu, {name: gpu.count(name) for name in names}

    def __call__(self) -> dict[str, int]:
        now = {name: self._gpu.count(name) - n for name, n in self._before.items()}
        return {name: n for name, n in now.items() if n}


# -- which device


def test_the_number_selects_the_device(gpu: FakeCuda, folder: Path) -> None:
    for number, identity in (("0", "driver 12.8"), ("1", "driver 12.8 #1")):
        made = session(folder, device_id=number)
        assert [graph.device for graph in explain(made).graphs] == [f"CUDA / Simulated GPU / sm_80 / {identity}"]
        close(made.run(None, feeds(3))[0], wanted(feeds(3))[0])
    used = {d.ep_metadata["cuda_device_id"] for d in ort.get_ep_devices() if d.ep_name == "XyntraEP"}
    assert used == {"-1", "0", "1", "2"}, "the last for an error of our own"


def test_a_session_that_names_no_device_has_its_tensors_on_the_host(gpu: FakeCuda, folder: Path) -> None:
    for options in ({"backend": "cuda"}, {"backend": "cuda", "device_id": "-1"}):
        providers = [("XyntraEP", {"cache_dir": str(folder / "cache"), **options}), "CPUExecutionProvider"]
        made = ort.InferenceSession(content(CHAIN), settings(), providers=providers, enable_fallback=0)
        counted = Counted(gpu, "MemcpyHtoDAsync", "MemcpyHtoD")
        close(made.run(None, feeds(3))[0], wanted(feeds(3))[0])
        assert counted() == {"MemcpyHtoDAsync": 2}


def test_a_device_that_is_not_there_is_refused_by_name_and_by_number(gpu: FakeCuda, folder: Path) -> None:
    with pytest.raises(RuntimeError, match="Unknown Provider Type: XyntraEP"):  # ONNX Runtime's own words
        session(folder, device_id="7")
    with pytest.raises(errors.InvalidArgument, match=r"the CUDA driver has no device 2\. device_id can be 0, 1"):
        session(folder, device_id="2")
    gpu.set(devices=1)  # of two that seemed to be there
    with pytest.raises(errors.InvalidArgument, match=r"the CUDA driver has no device 1\. device_id can be 0"):
        session(folder, device_id="1", claim="all")
    with pytest.raises(errors.InvalidArgument, match=r"backend=opencl cannot use tensors in the memory of a device"):
        session(folder, backend="opencl")


def test_devices_are_selected_as_objects(gpu: FakeCuda, folder: Path) -> None:
    ours = {d.ep_metadata["cuda_device_id"]: d for d in ort.get_ep_devices() if d.ep_name == "XyntraEP"}
    assert ours["1"].device.type == ort.OrtHardwareDeviceType.GPU and ours["1"].device.metadata["is_virtual"] == "1"
    chosen = settings()
    chosen.add_provider_for_devices([ours["1"]], {"cache_dir": str(folder / "cache")})
    made = ort.InferenceSession(content(CHAIN), chosen)
    assert explain(made).graphs[0].device.endswith("#1")
    close(made.run(None, feeds(3))[0], wanted(feeds(3))[0])


def test_a_plan_for_another_device_is_not_used(gpu: FakeCuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Cuda().numbered(0)
    monkeypatch.setattr(placement, "with_tensors", lambda ordinal, asked: first)
    made = session(tmp_path, device_id="1")
    (graph,) = explain(made).graphs
    assert graph.failure == "its plan is not for the device 1 that the session is on"
    close(made.run(None, feeds(3))[0], wanted(feeds(3))[0])


# -- what moves


def test_values_go_there_and_back(gpu: FakeCuda) -> None:
    for array in (np.arange(12, dtype=np.int64), np.zeros((0, 3), np.float32), np.ones((3, 1), np.bool_)):
        value = on_device(array, 1)
        assert value.shape() == list(array.shape) and value.device_name() == "cuda"
        np.testing.assert_array_equal(value.numpy(), array)


def test_the_host_cannot_touch_what_is_on_the_device(gpu: FakeCuda) -> None:
    value = on_device(np.ones(4, np.float32))
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        ctypes.string_at(value.data_ptr(), 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) < 0


def test_bound_tensors_are_used_where_they_are(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(300)
    x, y, z = on_device(given["x"]), on_device(given["y"]), room(300, 8)
    binding = bound(made, z, x=x, y=y)
    made.run_with_iobinding(binding)
    counted = Counted(gpu, *COPIES, *ALLOCATIONS, "GraphLaunch", "LaunchKernel", "GraphExecKernelNodeSetParams")
    for _ in range(3):
        made.run_with_iobinding(binding)
    assert counted() in ({"GraphLaunch": 3}, {"LaunchKernel": 3})
    close(z.numpy(), wanted(given)[0])


def test_other_tensors_of_the_same_shape_change_the_graph_that_there_is(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder, LONG), feeds(5)
    one = {"x": on_device(given["x"]), "y": on_device(given["y"])}
    two = {"x": on_device(given["x"] + 1), "y": on_device(given["y"] - 2)}
    results = room(5, 8), room(5, 8)
    bindings = [bound(made, z, **values) for z, values in zip(results, (one, two), strict=True)]
    made.run_with_iobinding(bindings[0])
    counted = Counted(gpu, *COPIES, *ALLOCATIONS)
    for binding in (*bindings, *bindings):
        made.run_with_iobinding(binding)
    assert counted() == {}
    close(results[0].numpy(), wanted(given, LONG)[0])
    close(results[1].numpy(), wanted({"x": given["x"] + 1, "y": given["y"] - 2}, LONG)[0])


def test_what_is_on_the_host_is_brought(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(5)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", on_device(given["x"]))
    binding.bind_cpu_input("y", given["y"])
    binding.bind_output("z")
    made.run_with_iobinding(binding)
    close(binding.copy_outputs_to_cpu()[0], wanted(given)[0])


def test_memory_is_found_again_from_run_to_run(gpu: FakeCuda, folder: Path) -> None:
    made = session(folder)
    for rows in (5, 40, 0, 5, 40):
        close(made.run(None, feeds(rows))[0], wanted(feeds(rows))[0])
    made.run(None, feeds(5))
    counted = Counted(gpu, "MemAlloc", "MemFree", "GraphInstantiate")
    for _ in range(3):
        close(made.run(None, feeds(5))[0], wanted(feeds(5))[0])
    assert counted() == {}


def test_nodes_of_the_cpu_stand_between_islands(gpu: FakeCuda, folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 8] x) => (int64[2, M] i, float[M] z)
        { a = Exp(x) i = NonZero(x) t = Transpose(i) g = GatherND(a, t) z = Neg(g) }"""
    made = session(folder, text, claim="all")
    (graph,) = explain(made).graphs
    assert "NonZero" in {declined.op_type for declined in graph.declined} and graph.claimed >= 2
    given = {"x": np.maximum(feeds(5)["x"], 0)}
    for ours, theirs in zip(made.run(None, given), wanted(given, text), strict=True):
        close(ours, theirs)


@newer_ort  # older ones take "cuda" for memory of no vendor
def test_an_address_that_is_not_aligned_and_an_output_over_an_input_are_computed_aside(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(5)
    y = on_device(given["y"])
    whole = on_device(np.concatenate([[0.0], given["x"].ravel()]).astype(np.float32))
    for at, result in ((4, room(5, 8)), (4, y)):
        binding = made.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, [5, 8], whole.data_ptr() + at)
        binding.bind_ortvalue_input("y", y)
        binding.bind_ortvalue_output("z", result)
        counted = Counted(gpu, "MemcpyDtoDAsync")
        made.run_with_iobinding(binding)
        assert counted() == {"MemcpyDtoDAsync": 1 + (result is y)}
        close(result.numpy(), wanted(given)[0])


@newer_ort  # older ones take "cuda" for memory of no vendor
@pytest.mark.parametrize("shift", [0, 16, -16, 144, -144, 160])
def test_an_output_over_a_part_of_an_input(gpu: FakeCuda, folder: Path, shift: int) -> None:
    """``shift``: bytes between the first of the input and the first of the output; each has 160."""
    made, given = session(folder, LONG), feeds(5)
    memory = np.zeros(120, np.float32)
    memory[40:80] = given["x"].ravel()
    whole = on_device(memory)
    binding = made.io_binding()
    binding.bind_input("x", "cuda", 0, np.float32, [5, 8], whole.data_ptr() + 160)
    binding.bind_ortvalue_input("y", on_device(given["y"]))
    binding.bind_output("z", "cuda", 0, np.float32, [5, 8], whole.data_ptr() + 160 + shift)
    counted = Counted(gpu, "MemcpyDtoDAsync")
    made.run_with_iobinding(binding)
    assert counted() == ({"MemcpyDtoDAsync": 1} if abs(shift) < 160 else {})
    after = whole.numpy()
    close(after[40 + shift // 4 : 80 + shift // 4].reshape(5, 8), wanted(given, LONG)[0])


@newer_ort  # older ones take "cuda" for memory of no vendor
def test_two_outputs_in_one_place_are_refused(gpu: FakeCuda, folder: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N, 8] x, float[N, 8] y) => (float[N, 8] a, float[N, 8] b)
        { a = Add(x, y) b = Mul(x, y) }"""
    made, given = session(folder, text), feeds(5)
    both = room(10, 8)
    for shift, refused in ((0, True), (64, True), (160, False)):
        binding = made.io_binding()
        for name in ("x", "y"):
            binding.bind_ortvalue_input(name, on_device(given[name]))
        for name, at in (("a", 0), ("b", shift)):
            binding.bind_output(name, "cuda", 0, np.float32, [5, 8], both.data_ptr() + at)
        if refused:
            with pytest.raises(RuntimeError, match=r"the outputs '(a' and 'b|b' and 'a)' are bound to the same memory"):
                made.run_with_iobinding(binding)
        else:
            made.run_with_iobinding(binding)
    close(both.numpy(), np.concatenate(wanted(given, text)))


def test_shapes_that_elements_tell_are_read_from_the_device(
    gpu: FakeCuda, planner: FakePlanner, folder: Path, tmp_path: Path
) -> None:
    text = """<ir_version: 8, opset_import: ["" : 20]> g (float[N] x, int64[1] s) => (float[M] z) { z = Expand(x, s) }"""
    kernel = 'extern "C" __global__ void __launch_bounds__(32) xy_repeat(const float *x, float *z, int n, int m) {\n'
    kernel += "  for (int i = threadIdx.x; i < m; i += 32) z[i] = x[i % n];\n}\n"
    source, binary = tmp_path / "repeat.cu", tmp_path / "repeat.cubin"
    source.write_text(kernel, encoding="utf-8")
    assert compile_cuda(str(source), str(binary)) == 0
    binary.chmod(0o600)
    repeat = Kernel(str(binary), "xy_repeat", hash128(binary.read_bytes()), threads=32)

    def decide(raw: RawGraph) -> Plan:
        alternative = Alternative()
        n, m = alternative.dim(0, 0), alternative.element(1, 0)
        alternative.output_dims(m)
        alternative.step(0, [alternative.input(0), alternative.output(0)], params=[n, m])
        inputs, outputs = [Tensor("x"), Tensor("s", elem_type=7)], [Tensor("z")]
        island = Island("repeat", [raw.nodes[0].id], inputs, outputs, [alternative])
        return Plan("", str(tmp_path), device=Cuda().target().identity, kernels=[repeat], islands=[island])

    planner.decide = decide
    made = session(folder, text)
    x = np.arange(4, dtype=np.float32)
    for count in (8, 3, 3, 0, 5):
        (result,) = made.run(None, {"x": x, "s": np.array([count])})
        np.testing.assert_array_equal(result, np.resize(x, count))


# -- what goes wrong


@newer_ort  # older ones take "cuda" for memory of no vendor
def test_an_address_of_the_host_is_refused(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(5)
    refused = {
        given["x"].ctypes.data: "the address of a tensor is not memory of the device",
        0: "there was no memory for a tensor",
    }
    for address, said in refused.items():
        binding = made.io_binding()
        binding.bind_input("x", "cuda", 0, np.float32, [5, 8], address)
        binding.bind_ortvalue_input("y", on_device(given["y"]))
        binding.bind_ortvalue_output("z", room(5, 8))
        with pytest.raises(RuntimeError, match=said):
            made.run_with_iobinding(binding)


@newer_ort  # older ones take "cuda" for memory of no vendor
def test_a_tensor_with_too_little_memory_is_refused(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(200)
    small = room(8)
    binding = made.io_binding()
    binding.bind_input("x", "cuda", 0, np.float32, [200, 8], small.data_ptr())
    binding.bind_ortvalue_input("y", on_device(given["y"]))
    binding.bind_ortvalue_output("z", room(200, 8))
    with pytest.raises(RuntimeError, match="has less memory than its shape needs"):
        made.run_with_iobinding(binding)


def test_no_memory_for_a_tensor_is_said(gpu: FakeCuda) -> None:
    too_much = room(1 << 28, 2)  # of 1 GiB
    with pytest.raises(RuntimeError, match="there was no memory for a tensor of 2147483648 bytes"):
        too_much.numpy()


def test_memory_that_is_idle_goes_to_who_needs_it(gpu: FakeCuda, folder: Path) -> None:
    made = session(folder)
    made.run(None, feeds(5))
    gpu.fail("MemAlloc", calls_from_now=1)
    freed = Counted(gpu, "MemFree")
    close(made.run(None, feeds(900))[0], wanted(feeds(900))[0])
    assert freed()["MemFree"] >= 1


@pytest.mark.parametrize("call", ["GraphExecKernelNodeSetParams", "GraphLaunch", "StreamSynchronize"])
def test_a_run_that_fails_says_so_and_the_next_one_is_right(gpu: FakeCuda, folder: Path, call: str) -> None:
    made = session(folder, LONG)
    values = [{"x": on_device(feeds(5)["x"] + n), "y": on_device(feeds(5)["y"])} for n in range(2)]
    z = room(5, 8)
    made.run_with_iobinding(bound(made, z, **values[0]))
    gpu.fail(call, calls_from_now=1)
    with pytest.raises(RuntimeError, match="reports CUDA_ERROR_OUT_OF_MEMORY for"):
        made.run_with_iobinding(bound(made, z, **values[1]))
    made.run_with_iobinding(bound(made, z, **values[1]))
    close(z.numpy(), wanted({"x": feeds(5)["x"] + 1, "y": feeds(5)["y"]}, LONG)[0])


def test_a_device_that_is_lost(gpu: FakeCuda, folder: Path) -> None:
    """ONNX Runtime would move tensors there before it asks an island, and say that there is no memory for them."""
    made = session(folder, LONG)
    given = {"x": on_device(feeds(5)["x"]), "y": on_device(feeds(5)["y"])}
    z = room(5, 8)
    made.run(None, feeds(5))
    gpu.fail("GraphLaunch", calls_from_now=1, code=LAUNCH_FAILED)
    try:
        with pytest.raises(RuntimeError, match="CUDA_ERROR_LAUNCH_FAILED") as first:
            made.run_with_iobinding(bound(made, z, **given))
        said = str(first.value)[str(first.value).index("XyntraEP: ") :]
        asked = gpu.count("all")
        runs: list[Callable[[], object]] = [
            lambda: made.run_with_iobinding(bound(made, z, **given)),
            lambda: made.run(None, feeds(5)),
            lambda: made.run(None, feeds(5000)),
            lambda: z.numpy(),
        ]
        for run in runs:
            with pytest.raises(Exception, match=re.escape(said)) as again:
                run()
            assert is_fatal(again.value)
        assert gpu.count("all") == asked, "the driver was asked again"
    finally:
        gpu.reset()
        anew = session(folder, LONG)
    close(anew.run(None, feeds(900))[0], wanted(feeds(900), LONG)[0])


# -- who outlives whom


@newer_ort  # older ones take "cuda" for memory of no vendor
def test_values_outlive_the_session_that_made_them(gpu: FakeCuda, folder: Path) -> None:
    made, given = session(folder), feeds(5)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", on_device(given["x"]))
    binding.bind_ortvalue_input("y", on_device(given["y"]))
    binding.bind_output("z", "cuda")
    made.run_with_iobinding(binding)
    (result,) = binding.get_outputs()
    assert result.device_name() == "cuda"
    del made, binding
    gc.collect()
    close(result.numpy(), wanted(given)[0])


def test_a_session_that_goes_leaves_nothing_on_the_device(gpu: FakeCuda, folder: Path) -> None:
    gc.collect()
    before = gpu.count("device")
    made = session(folder)
    for rows in (5, 400):
        close(made.run(None, feeds(rows))[0], wanted(feeds(rows))[0])
    assert gpu.count("device") > before
    del made
    gc.collect()
    assert gpu.count("device") <= before


def test_sessions_and_threads_share_a_device(gpu: FakeCuda, folder: Path) -> None:
    sessions = session(folder), session(folder)
    answers = {rows: wanted(feeds(rows))[0] for rows in range(1, 9)}

    def work(turn: int) -> None:
        rows = turn % 8 + 1
        values = {name: on_device(array) for name, array in feeds(rows).items()}
        z = room(rows, 8)
        made = sessions[turn % 2]
        made.run_with_iobinding(bound(made, z, **values))
        close(z.numpy(), answers[rows])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(32)))


def test_registration_touches_no_driver_and_the_process_may_fork() -> None:
    body = """
    import os, sys
    import onnxruntime as ort, xyntra_ep
    ours = [d for d in ort.get_ep_devices() if d.ep_name == "XyntraEP"]
    assert [d.ep_metadata["cuda_device_id"] for d in ours] == ["-1", "0", "1", "2", "3"], ours
    assert [d.ep_metadata.get("is_absent") for d in ours] == [None] * 4 + ["1"]
    assert "libcuda" not in open("/proc/self/maps").read()
    child = os.fork()
    if child == 0:
        os._exit(3 if len(ort.get_ep_devices()) == 6 else 4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    """
    environment = {**os.environ, "XYNTRA_CUDA_DEVICES": "3"}
    code = textwrap.dedent(body)
    # From 3.12 on, Python warns of threads that the child does not have: those of ONNX Runtime, which it does not need here.
    quiet = ("-W", "ignore:This process:DeprecationWarning")
    result = subprocess.run([sys.executable, *quiet, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("visible", "count"),
    [(None, 3), ("", 0), ("-1", 0), ("1", 1), ("2,0", 2), ("0,5,1", 1), ("GPU-1f0c,MIG-7", 2), ("0,1,2,0,1", 3), ("no", 0)],
)
def test_devices_are_counted_without_the_driver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, visible: str | None, count: int
) -> None:
    for bus in ("0000:01:00.0", "0000:02:00.0", "0000:41:00.0"):
        (tmp_path / bus).mkdir()
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    library = registration.library()
    assert library.xyntra_cuda_at_hand(os.fsencode(tmp_path)) == count
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "4")
    assert library.xyntra_cuda_at_hand(os.fsencode(tmp_path)) == 4


def test_only_the_driver_knows_where_its_folder_is_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in sandboxes; a driver that is not there need not be asked, nor one whose devices are taken away."""
    library, hidden = registration.library(), os.fsencode(tmp_path / "gpus")
    for name in ("CUDA_VISIBLE_DEVICES", "XYNTRA_CUDA_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path / 'lib'}:")
    without = library.xyntra_cuda_at_hand(hidden)  # -1 where the machine itself has the library
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "libcuda.so.1").touch()
    assert without in (0, -1) and library.xyntra_cuda_at_hand(hidden) == -1
    for visible, count in (("", 0), ("-1", 0), ("1", -1)):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert library.xyntra_cuda_at_hand(hidden) == count
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "0")
    assert library.xyntra_cuda_at_hand(hidden) == 0
    monkeypatch.delenv("XYNTRA_CUDA_DEVICES")
    (tmp_path / "gpus").mkdir()
    assert library.xyntra_cuda_at_hand(hidden) == 0, "the driver shows that it has none"
