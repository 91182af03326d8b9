"""The kernels of a device's ceilings: what they compute, that they compile, and the rates that follow from their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.run import ARCHITECTURES
from tests.support.gpu.simulated import SimulatedGpu
from tests.support.printed import gpu_text
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.doctor.device_ceilings import CHUNK, THREADS, copy, fragment_dots, measure, multiply_add, read
from xyntra_ep.tracea.emitters import cuda
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80
from xyntra_ep.tracea.semantic_ir.gpu.fragment_nodes import FragmentDot
from xyntra_ep.tracea.semantic_ir.nodes import Assign, Fma, For, Kernel

DOTS = (DType.F16, DType.BF16, DType.F32)
KERNELS = [copy(), read(4), multiply_add(), *map(fragment_dots, DOTS)]


def run(kernel: Kernel, blocks: int, x: NDArray[np.float32], count: int, *params: int) -> NDArray[np.float32]:
    """y [count], by the simulation."""
    check_kernel(kernel)
    y = np.full(count, np.nan, dtype=np.float32)
    SimulatedGpu().launch(kernel, blocks, [a.view(np.uint8) for a in ([x, y] if x.size else [y])], params)
    return y


def test_copies_all() -> None:
    x = np.random.default_rng(0).standard_normal(2 * CHUNK).astype(np.float32)
    assert (run(copy(), 2, x, x.size) == x).all()


def test_reads_another_chunk_in_each_turn() -> None:
    x = np.random.default_rng(0).standard_normal((4, 4, THREADS, 4)).astype(np.float32)  # chunk, packet, thread, element
    for turns in (1, 3):
        y = run(read(4), 2, x.reshape(-1), 2 * THREADS, turns)
        chunks = [[(block + 3 * turn) % 4 for turn in range(turns)] for block in range(2)]
        wanted = np.concatenate([x[c].astype(np.float64).sum(axis=(0, 1, 3)) for c in chunks])
        np.testing.assert_allclose(y, wanted, atol=1e-4)


def test_multiplies_and_adds() -> None:
    turns, a, mine = 2, 1023 / 1024, np.arange(THREADS) / 256
    chains = [mine + i for i in range(8)]
    for _ in range(8 * turns):
        chains = [c * a + mine for c in chains]
    np.testing.assert_allclose(run(multiply_add(), 1, np.empty(0, np.float32), THREADS, turns, 1023), sum(chains), rtol=1e-5)


@pytest.mark.parametrize("dtype", DOTS)
def test_dots_are_of_numbers_that_draw_power(dtype: DType) -> None:
    once, thrice = (run(fragment_dots(dtype), 1, np.empty(0, np.float32), THREADS, turns) for turns in (1, 3))
    # 64 sums of 16 products, or of 8, between 1 and 4: of zeros, or of one sign, they would be 0 or above 1024.
    assert (once != 0).any()
    assert (np.abs(once) < 1024).all()
    np.testing.assert_allclose(thrice, 3 * once, rtol=1e-3, atol=0.1)


def inner(kernel: Kernel) -> list[object]:
    [loop] = [s for s in kernel.body if isinstance(s, For)]
    return list(loop.body)


def test_what_a_turn_is_counted_as_is_what_it_does() -> None:
    """A device that takes 3 us for a launch and 1 us for a turn, on 4 multiprocessors of which each has 8 blocks."""
    gpu = replace(SM_80, units=4)

    def timed(kernel: Kernel, *, units: int, buffer_bytes: Sequence[int], params: Sequence[int], runs: int) -> list[int]:
        return [3000 + 1000 * (params[0] if params else 1)] * runs

    found = measure(gpu, timed, memory_bytes=1 << 30, cache_bytes=4 << 20)
    adds = sum(isinstance(s, Assign) and isinstance(s.value, Fma) for s in inner(multiply_add()))
    dots = sum(isinstance(s, FragmentDot) for s in inner(fragment_dots(DType.BF16)))
    assert (adds, dots) == (64, 16)
    assert found.fp32_gflops == pytest.approx(4 * 8 * THREADS * adds * 2 / 1000, rel=0.01)
    assert found.bf16_gflops == found.fp16_gflops == pytest.approx(4 * 2 * 8 * dots * 2 * 16 * 8 * 16 / 1000, rel=0.01)
    assert found.tf32_gflops == pytest.approx(found.bf16_gflops / 2, rel=0.01)
    assert found.cache_gbs == pytest.approx(4 * 8 * CHUNK * 4 / 1000, rel=0.01)
    assert found.copy_gbs == pytest.approx(2 * (128 << 20) / 4000)
    without = measure(replace(ANY_GPU, units=4), timed, memory_bytes=1 << 30, cache_bytes=0)
    assert without.bf16_gflops == without.fp16_gflops == without.tf32_gflops == without.cache_gbs == 0


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_compiles_and_keeps_all_in_registers(kernel: Kernel) -> None:
    for architecture in ARCHITECTURES:
        assert nvrtc.load().compile(kernel.name, gpu_text(cuda.emit, kernel), architecture).spilled_bytes == 0
