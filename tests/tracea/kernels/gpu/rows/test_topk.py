"""topk.block and topk.thread against the interpreter: ties, NaN, views, rows of one chunk and of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.cpu.rows.test_topk import top_k
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, TopK
from xyntra_ep.tracea.kernels.gpu.rows import topk_block, topk_thread
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_90

[BLOCK], [THREAD] = topk_block.VARIANTS, topk_thread.VARIANTS
pytestmark = pytest.mark.device("opencl")
BOTH = pytest.mark.parametrize("variant", [BLOCK, THREAD], ids=lambda v: v.name)
Rows = NDArray[Any]


def special_rows() -> Iterator[Rows]:
    """Many equal elements; NaN, infinities, nothing else."""
    rows = np.round(random_like((5, 90), DType.F32, 0))
    rows[0, ::7], rows[1, ::5], rows[2, ::3], rows[3], rows[1, 3] = np.nan, np.inf, -np.inf, np.nan, np.nan
    yield rows
    yield np.round(random_like((2, 300), DType.F32, 1) * 8) / 8
    yield np.sort(random_like((1, 200), DType.F32, 2))  # each chunk is better than those before it, or worse


def with_threads(variant: Variant[TopK], threads: int = 64) -> Variant[TopK]:
    """topk.block with another default."""
    return variant if variant is THREAD else replace(variant, default=lambda op, context: {"threads": threads})


def check(program: Program, data: Rows, variant: Variant[TopK]) -> None:
    """Threads that exchange entries by simulation, those that work alone by OpenCL, which is quicker."""
    run = check_on_opencl if variant is THREAD else check_simulated
    run(program, [data], [], 0.0, variants=[with_threads(variant)])


@BOTH
@pytest.mark.parametrize("largest", [True, False], ids=["largest", "smallest"])
def test_order(variant: Variant[TopK], largest: bool) -> None:
    for data in special_rows():
        for k in (4, 60):
            check(top_k(k, largest), data, variant)


def test_exchange_by_shared_memory_alone() -> None:
    for data in special_rows():
        check_on_opencl(top_k(7, True), [data], [], 0.0, variants=[with_threads(BLOCK)])


@BOTH
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.I64, DType.I8])
def test_dtypes(variant: Variant[TopK], dtype: DType) -> None:
    for largest in (True, False):
        check(top_k(7, largest, dtype), random_like((2, 70), dtype, 0), variant)


@BOTH
def test_lengths_and_views(variant: Variant[TopK]) -> None:
    for n in (1, 63, 64, 65, 129):
        check(top_k(1, True), random_like((2, n), DType.F32, n), variant)
    check(top_k(3, True, first_axis=True), random_like((9, 4), DType.F32, 0), variant)
    check(top_k(3, True), np.zeros((0, 4), np.float32), variant)


def test_more_than_a_chunk_is_wanted() -> None:
    check_simulated(top_k(200, False), [random_like((1, 600), DType.F32, 0)], [], 0.0, variants=[BLOCK])


def test_who_takes_what() -> None:
    def chosen(k: int, gpu: object = SM_90) -> str:
        return plan_for(top_k(k, True), gpu).decisions[0][1].chosen.name  # type: ignore[arg-type]  # a Gpu

    assert chosen(10) == "topk.block"
    assert chosen(10, replace(ANY_GPU, is_cpu=True)) == "topk.thread"
    assert chosen(1000) == "topk.block" and chosen(1000, ANY_GPU) == "topk.thread"
    assert chosen(2000) == "topk.thread"


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for threads in (64, 1024):
        compile_for_cuda(top_k(50, True), [with_threads(BLOCK, threads)], SM_90)
    compile_for_cuda(top_k(50, False, DType.I64), [THREAD], SM_90)
