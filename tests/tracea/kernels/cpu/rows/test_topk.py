"""topk.rows against the interpreter: the sorted list, the heap on the stack and in a temporary; ties, NaN, views."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.machine import WIDEST, runnable
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import permuted
from tests.support.run_program import check_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, TopK, ValueKind
from xyntra_ep.tracea.kernels.cpu.rows.topk import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, SCALAR

pytestmark = pytest.mark.compiler("cc")


def top_k(k: int, largest: bool, dtype: DType = DType.F32, first_axis: bool = False) -> Program:
    p = ProgramBuilder()
    x = p.input("m", "n", dtype=dtype)
    if first_axis:
        x = permuted(x, (1, 0))
    values = p.value(ValueKind.OUTPUT, x.shape[0], k, dtype=dtype)
    indices = p.value(ValueKind.OUTPUT, x.shape[0], k, dtype=DType.I64)
    p.op(TopK(inputs=(x,), k=k, largest=largest, values=values, indices=indices))
    return p.program


@pytest.mark.parametrize("largest", [True, False], ids=["largest", "smallest"])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 50), (5, 5), (31, 200), (33, 33), (100, 3000), (1100, 1200)])
def test_lengths(k: int, n: int, largest: bool) -> None:
    data = np.round(random_like((3, n), DType.F32, k) * 8) / 8  # many equal elements
    for caps in runnable(AVX512, SCALAR):
        check_program(top_k(k, largest), [data], [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16, DType.I64, DType.I32, DType.I8, DType.U8])
def test_dtypes(dtype: DType) -> None:
    check_program(top_k(7, True, dtype), [random_like((4, 60), dtype, 0)], [], WIDEST, 0.0, variants=VARIANTS)
    check_program(top_k(40, False, dtype), [random_like((2, 60), dtype, 0)], [], WIDEST, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("largest", [True, False], ids=["largest", "smallest"])
def test_nan_is_the_largest(largest: bool) -> None:
    data = np.round(random_like((5, 90), DType.F32, 0))
    data[0, ::7], data[1, ::5], data[2, ::3], data[3] = np.nan, np.inf, -np.inf, np.nan
    data[1, 3] = np.nan
    for k in (4, 60):
        check_program(top_k(k, largest), [data], [], WIDEST, 0.0, variants=VARIANTS)


def test_along_the_first_axis_and_nothing() -> None:
    check_program(top_k(3, True, first_axis=True), [random_like((9, 4), DType.F32, 0)], [], WIDEST, 0.0, variants=VARIANTS)
    check_program(top_k(3, True), [np.zeros((0, 4), np.float32)], [], WIDEST, 0.0, variants=VARIANTS)
