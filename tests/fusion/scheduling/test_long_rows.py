"""The axis that a product's kernels count as rows is the longer one, and the product stays what it was."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import permuted
from xyntra_ep.fusion.scheduling.long_rows import count_the_longer
from xyntra_ep.tracea.core_ir.dims import assuming, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, axis, call, load
from xyntra_ep.tracea.core_ir.interpreter import interpret, random_like
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand, Program, ValueKind


def product(x: Operand, p: ProgramBuilder, *, own: bool = False) -> tuple[Program, Gemm]:
    """x [t, b, 5] times w [5, 7] (or one of each t), plus a bias [b, 7] and a third of t."""
    t, b, _ = x.shape
    w = p.value(ValueKind.INPUT, *((t,) if own else ()), 5, 7)
    shared = w if own else Operand(value=w.value, dtype=w.dtype, shape=(t, 5, 7), strides=(0, *w.strides))
    bias = p.value(ValueKind.INPUT, b, 7)
    epilogue = call("add", acc(0), load(2, axis(1), axis(2), dtype=DType.F32))
    epilogue = call("add", epilogue, call("to_f", axis(0)))
    op = Gemm(inputs=(x, shared, bias), epilogue=epilogue, output=p.value(ValueKind.OUTPUT, t, b, 7))
    p.op(op)
    return p.program, op


@pytest.mark.parametrize(("t", "b", "exchanged"), [(9, 2, True), (2, 9, False), (4, 4, False)])
def test_the_longer_of_two_that_do_not_step_as_one(t: int, b: int, exchanged: bool) -> None:
    p = ProgramBuilder()
    program, op = product(permuted(p.input(b, t, 5), (1, 0, 2)), p)
    counted = count_the_longer(op)
    assert (counted is not op) == exchanged
    assert counted.domain == ((b, t, 7) if exchanged else (t, b, 7))
    data = [random_like(shape, DType.F32, i) for i, shape in enumerate(((b, t, 5), (5, 7), (b, 7)))]
    before = interpret(program, data)
    program.ops[0] = counted
    for left, right in zip(before, interpret(program, data), strict=True):
        np.testing.assert_array_equal(left, right)


def test_what_leaves_no_choice() -> None:
    p = ProgramBuilder()
    _, dense = product(p.input(9, 2, 5), p)
    assert count_the_longer(dense) is dense
    p = ProgramBuilder()
    _, each = product(permuted(p.input(2, 9, 5), (1, 0, 2)), p, own=True)
    assert count_the_longer(each) is each


def test_sizes_that_a_run_tells() -> None:
    p = ProgramBuilder()
    _, op = product(permuted(p.input("n", "steps", 5), (1, 0, 2)), p)
    assert count_the_longer(op) is op  # of neither is anything known
    with assuming(({"n": 1, "steps": 40},) * 3):
        assert count_the_longer(op).domain == (symbol("n"), symbol("steps"), 7)
