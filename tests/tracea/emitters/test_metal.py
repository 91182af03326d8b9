"""Metal's text: golden, and carried out on the host by the shim (tests/support/metal)."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu import kernels as gpu_kernels
from tests.support.metal.compile import FLAGS, HERE, compile_programs, host_text
from tests.support.metal.host import MetalOnHost
from tests.support.printed import gpu_text
from tests.tracea.emitters.test_gpu import KERNELS, PAIRS
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.emitters import metal
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

Golden = Callable[[str, str], None]
Array = NDArray[Any]


def run(
    kernel: Kernel, blocks: int, inputs: Sequence[Array], results: Sequence[Array], params: Sequence[int] = ()
) -> list[Array]:
    """``results`` after the kernel has written them."""
    check_kernel(kernel)
    source = replace(KernelSource.of_text(kernel.name, gpu_text(metal.emit, kernel)), threads=kernel.threads)
    device = MetalOnHost([source])
    buffers = [device.upload(np.ascontiguousarray(x).reshape(-1).view(np.uint8)) for x in (*inputs, *results)]
    device.launch(source, blocks, buffers, list(params))
    written = zip(results, buffers[len(inputs) :], strict=True)
    return [device.download(buffer).view(y.dtype).reshape(y.shape) for y, buffer in written]


@pytest.mark.parametrize("name", list(KERNELS))
def test_text(name: str, golden: Golden) -> None:
    golden(gpu_text(metal.emit, KERNELS[name]()), ".metal")


def test_transpose() -> None:
    x = random_like((96, 64), DType.F32, 0)
    [got] = run(gpu_kernels.transpose(), 6, [x], [np.zeros((64, 96), np.float32)], [96, 64])
    assert (got == x.T).all()


@pytest.mark.parametrize("slots", [2, 4])
def test_pipeline(slots: int) -> None:
    for steps in (0, 1, slots, 2 * slots + 1):
        x = random_like((steps, 64, 4), DType.F32, steps)
        [got] = run(gpu_kernels.pipeline(slots), 1, [x], [np.zeros((steps, 64), np.float32)], [steps])
        np.testing.assert_allclose(got, np.roll(x, -1, axis=1).sum(axis=2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("packet", [1, 4])
def test_types_go_in_and_out(packet: int) -> None:
    """A quarter of them a kernel, for one may have 31 buffers."""
    for pairs in (PAIRS[i::4] for i in range(4)):
        x = [random_like((64 * packet,), source, i) for i, (source, _) in enumerate(pairs)]
        got = run(gpu_kernels.convert(pairs, packet), 2, x, [np.zeros(64 * packet, result.numpy) for _, result in pairs])
        for (source, result), data, y in zip(pairs, x, got, strict=True):
            wanted = to_float64(data, source)
            if source.is_float:
                wanted = wanted.astype(np.float16).astype(np.float64)
            assert (y == from_float64(wanted, result)).all(), (source, result)


def test_special_halves() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 65519.0, 65520.0, -1e30, 2.0**-25, -0.0] * 8, dtype=np.float32)
    pairs = [(DType.F32, DType.F32), (DType.F32, DType.F16), (DType.F32, DType.BF16)]
    got = run(gpu_kernels.convert(pairs, 1), 2, [x] * 3, [np.zeros(64, result.numpy) for _, result in pairs])
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float16).astype(np.float64)
    for (_, result), y in zip(pairs, got, strict=True):
        np.testing.assert_array_equal(to_float64(y, result), to_float64(from_float64(rounded, result), result))


@pytest.mark.parametrize("dtype", [DType.F32, DType.I32, DType.I64])
def test_exchange(dtype: DType) -> None:
    """Of values of one register and of two, in two simdgroups."""
    b = GpuBuilder("exchange", threads=64)
    x, y = b.buffer("x", dtype), b.buffer("y", dtype, writable=True)
    b.store(y, b.thread, b.subgroup_xor(b.let("v", b.load(x, b.thread)), 5))
    data = random_like((64,), dtype, 0) * (1 << 33 if dtype is DType.I64 else 1)
    [got] = run(b.finish()[0], 1, [data], [np.zeros_like(data)])
    assert (got == data[np.arange(64) ^ 5]).all()


def test_subgroup_sum() -> None:
    x = random_like((3, 32), DType.F32, 0)
    [got] = run(gpu_kernels.subgroup_sum(), 3, [x], [np.zeros(3, np.float32)])
    np.testing.assert_allclose(got, x.sum(axis=1), rtol=1e-5)


def test_a_text_that_is_wrong_is_refused(tmp_path: Path) -> None:
    text = gpu_text(metal.emit, gpu_kernels.transpose())
    assert "not declared" in compile_programs({"f": text.replace("across_ =", "across_ = nothing +")}, tmp_path / "k.so")
    # `thread` is a word of the language: a variable cannot be called so.
    assert compile_programs({"f": text.replace("thread_number", "thread")}, tmp_path / "k.so")


def test_the_shim_sees_a_missing_barrier() -> None:
    text = gpu_text(metal.emit, gpu_kernels.transpose())
    source = KernelSource.of_text("transpose", text.replace("threadgroup_barrier(mem_flags::mem_threadgroup);", ""))
    device, x = MetalOnHost([source]), random_like((32, 32), DType.F32, 0)
    buffers = [device.upload(a.reshape(-1).view(np.uint8)) for a in (x, np.zeros_like(x))]
    device.launch(source, 1, buffers, [32, 32])
    assert not (device.download(buffers[1]).view(np.float32).reshape(32, 32) == x.T).all()


@pytest.mark.compiler("clang++")
def test_clang_takes_it_as_well(tmp_path: Path) -> None:
    """Apple's compiler is one of its kind."""
    source = tmp_path / "kernels.cc"
    source.write_text(host_text({name: gpu_text(metal.emit, make()) for name, make in KERNELS.items()}), encoding="utf-8")
    subprocess.run(
        ["clang++", *FLAGS, "-shared", f"-I{HERE / 'include'}", "-o", str(tmp_path / "kernels.so"), str(source)], check=True
    )
