"""GPU text: golden, through NVRTC for each architecture, and run by OpenCL where there is a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu import kernels as gpu_kernels
from tests.support.gpu.opencl_queue import Queue
from tests.support.printed import gpu_text
from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.emitters import cuda, opencl
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.opencl import survey
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu import shared_memory
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

ARCHITECTURES = ("sm_80", "sm_90", "sm_90a")
PAIRS = [(a, b) for a in DType for b in DType if a.compute is b.compute]
KERNELS: dict[str, Callable[[], Kernel]] = {
    "transpose": gpu_kernels.transpose,
    "pipeline": gpu_kernels.pipeline,
    "convert": lambda: gpu_kernels.convert([(DType.F16, DType.BF16), (DType.BOOL, DType.BOOL), (DType.I8, DType.I64)], 4),
    "exponentials": gpu_kernels.exponentials,
    "subgroup_sum": gpu_kernels.subgroup_sum,
}
Golden = Callable[[str, str], None]
Array = NDArray[Any]


def run(
    kernel: Kernel, blocks: int, inputs: Sequence[Array], results: Sequence[Array], params: Sequence[int] = ()
) -> list[Array]:
    """``results`` after the kernel has written them, on the first OpenCL device that works."""
    check_kernel(kernel)
    queue = Queue(survey().working[0])
    compiled = queue.build(kernel.name, gpu_text(opencl.emit, kernel))
    buffers = [queue.upload(np.ascontiguousarray(x).reshape(-1).view(np.uint8)) for x in (*inputs, *results)]
    queue.launch(compiled, blocks, buffers, params)
    written = zip(results, buffers[len(inputs) :], strict=True)
    return [queue.download(buffer, y.nbytes).view(y.dtype).reshape(y.shape) for y, buffer in written]


@pytest.mark.parametrize("name", list(KERNELS))
def test_text(name: str, golden: Golden) -> None:
    kernel = KERNELS[name]()
    golden(gpu_text(cuda.emit, kernel), ".cu")
    if name != "subgroup_sum":
        golden(gpu_text(opencl.emit, kernel), ".cl")


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_nvrtc_takes_it(architecture: str) -> None:
    for kernel in (*(make() for make in KERNELS.values()), gpu_kernels.convert(PAIRS, 4)):
        cubin = nvrtc.load().compile(kernel.name, gpu_text(cuda.emit, kernel), architecture)
        assert cubin.code[:4] == b"\x7fELF" and cubin.registers > 0
        assert (cubin.shared_bytes > 0) == (kernel.name in ("transpose", "pipeline"))


@pytest.mark.compiler("nvrtc")
def test_what_is_more_than_a_kernel_may_declare_is_given_by_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = gpu_kernels.pipeline()
    monkeypatch.setattr(shared_memory, "STATIC_SHARED_BYTES", 2 << 10)
    assert shared_memory.shared_layout(kernel).given_bytes == 3 << 10
    text = gpu_text(cuda.emit, kernel)
    assert "extern __shared__" in text and nvrtc.load().compile(kernel.name, text, "sm_90").shared_bytes == 0
    assert gpu_text(opencl.emit, kernel).count("[768]") == 1


def test_arrays_follow_each_other_aligned() -> None:
    b = GpuBuilder("f", threads=32)
    for alignment, count in ((16, 3), (1024, 4), (16, 4)):
        b.shared("s", DType.F32, count, alignment=alignment)
    layout = shared_memory.shared_layout(b.finish()[0])
    assert list(layout.offsets.values()) == [0, 1024, 1040] and layout.bytes == 1056


@pytest.mark.compiler("nvrtc")
def test_nvrtc_says_what_is_wrong() -> None:
    with pytest.raises(CompileError, match="NVRTC") as failed:
        nvrtc.load().compile("f", "__global__ void f() { x = 1; }", "sm_80")
    assert 'identifier "x" is undefined' in failed.value.log


@pytest.mark.device("opencl")
def test_transpose() -> None:
    x = random_like((96, 64), DType.F32, 0)
    [got] = run(gpu_kernels.transpose(), 6, [x], [np.zeros((64, 96), np.float32)], [96, 64])
    assert (got == x.T).all()


@pytest.mark.device("opencl")
def test_exponentials() -> None:
    """By the device's instruction: relative error 2^-22, and of e^x what rounding x log2 e brings to that."""
    count = len(gpu_kernels.EXPONENTIALS)
    x = -np.append(np.linspace(0, 120, 4 * 64 - 2), [1e30, np.nan]).astype(np.float32).reshape(4, 64)
    given = np.repeat(x[:, None], count, axis=1)
    [got] = run(gpu_kernels.exponentials(), 4, [given], [np.zeros(given.shape, np.float32)])
    for i, name in enumerate(gpu_kernels.EXPONENTIALS):
        exact = (np.exp if name == "exp_nonpositive" else np.exp2)(x.astype(np.float64))
        argument = 2.0**-23 * np.abs(x) if name == "exp_nonpositive" else 0.0
        np.testing.assert_array_equal(np.isnan(got[:, i]), np.isnan(x), name)
        wrong = np.abs(got[:, i] - exact) > exact * (2.0**-22 + argument) + 2.0**-126
        assert not wrong.any(), (name, x[wrong])


@pytest.mark.device("opencl")
@pytest.mark.parametrize("slots", [2, 4])
def test_pipeline(slots: int) -> None:
    for steps in (0, 1, slots, 2 * slots + 1):
        x = random_like((steps, 64, 4), DType.F32, steps)
        [got] = run(gpu_kernels.pipeline(slots), 1, [x], [np.zeros((steps, 64), np.float32)], [steps])
        np.testing.assert_allclose(got, np.roll(x, -1, axis=1).sum(axis=2), rtol=1e-5, atol=1e-6)


@pytest.mark.device("opencl")
@pytest.mark.parametrize("packet", [1, 4])
def test_types_go_in_and_out(packet: int) -> None:
    x = [random_like((64 * packet,), source, i) for i, (source, _) in enumerate(PAIRS)]
    got = run(gpu_kernels.convert(PAIRS, packet), 2, x, [np.zeros(64 * packet, result.numpy) for _, result in PAIRS])
    for (source, result), data, y in zip(PAIRS, x, got, strict=True):
        wanted = to_float64(data, source)
        if source.is_float:
            wanted = wanted.astype(np.float16).astype(np.float64)
        assert (y == from_float64(wanted, result)).all(), (source, result)
