"""The meaning of every op on cases small enough to check by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import elementwise, here, pointwise, rows
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, from_ort, to_float64
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, load
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    Gemm,
    NoSoftmax,
    Operand,
    Program,
    Recurrence,
    RecurrentStage,
    ReduceKind,
    Scan,
    Stage,
    TopK,
    ValueKind,
)


def run(program: Program, *inputs: Any, constants: tuple[Any, ...] = ()) -> list[NDArray[Any]]:
    given = [v for v in program.values if v.kind is ValueKind.INPUT]
    arrays = [np.asarray(x, dtype=v.dtype.numpy) for x, v in zip(inputs, given, strict=False)]
    return interpret(program, arrays, constants)


def test_a_strided_view() -> None:
    p = ProgramBuilder()
    x = p.input(6)
    odd_backwards = Operand(value=x.value, dtype=x.dtype, shape=(3,), strides=(-2,), offset=5)
    (y,) = run(pointwise((3,), [odd_backwards], here(odd_backwards, 0), p), [0, 1, 2, 3, 4, 5])
    assert list(y) == [5, 3, 1]


def test_a_window_reads_nothing_outside() -> None:
    p = ProgramBuilder()
    x = p.input(3)
    index = call("sub", axis(0), const(1))
    inside = call("and", call("le", const(0), index), call("lt", index, const(3)))
    (y,) = run(pointwise((5,), [x], call("where", inside, load(0, index, dtype=DType.F32), const(9.0)), p), [1, 2, 3])
    assert list(y) == [9, 1, 2, 3, 9]


def test_results_are_rounded_to_their_type() -> None:
    program, _ = elementwise((2,), lambda x: x, DType.F32, result=DType.F16)
    assert list(interpret(program, [np.array([0.1, 70000], np.float32)])[0]) == [np.float32(0.1), 70000]
    with np.errstate(over="ignore"):
        narrow = interpret(program, [np.array([0.1, 70000], np.float32)], keep_float64=False)[0]
    assert narrow.dtype == np.float16 and list(narrow) == [np.float16(0.1), np.inf]
    program, _ = elementwise((2,), lambda x: x, DType.I64, result=DType.U8)
    assert list(run(program, [257, -1])[0]) == [1, 255]


@pytest.mark.parametrize(
    ("kind", "want"),
    [
        (ReduceKind.SUM, [6.0, -4.0]), (ReduceKind.PROD, [0.0, 1.0]), (ReduceKind.MAX, [3.0, -1.0]),
        (ReduceKind.MIN, [0.0, -1.0]), (ReduceKind.ARGMAX, [1, 0]), (ReduceKind.ARGMAX_LAST, [3, 3]),
        (ReduceKind.ARGMIN, [0, 0]), (ReduceKind.ARGMIN_LAST, [2, 3]),
    ],
)  # fmt: skip
def test_reductions(kind: ReduceKind, want: list[float]) -> None:
    p = ProgramBuilder()
    x = p.input(2, 4)
    is_arg = "arg" in kind
    stage = Stage(kind=kind, body=here(x, 0), dtype=DType.I64 if is_arg else DType.F32)
    result: Expr = acc_int(0) if is_arg else acc(0)
    program = rows((2,), (4,), [x], [stage], [(result, True)], p, DType.I64 if is_arg else DType.F32)
    assert list(run(program, [[0, 3, 0, 3], [-1, -1, -1, -1]])[0]) == want


def test_nan_wins_or_loses() -> None:
    p = ProgramBuilder()
    x = p.input(1, 3)
    stages = [Stage(kind=k, body=here(x, 0)) for k in (ReduceKind.MAX, ReduceKind.MIN, ReduceKind.ANY_NAN_MAX)]
    program = rows((1,), (3,), [x], stages, [(acc(j), True) for j in range(3)], p)
    assert [float(y[0]) for y in run(program, [[1, np.nan, 2]])] == [2, 1, 2]
    high, low, ignoring = run(program, [[np.nan, 1, 2]])
    assert np.isnan(high[0]) and np.isnan(low[0]) and ignoring[0] == 2


def test_places_of_extremes() -> None:
    """NaN is no extreme, but where it comes first no other is found to be better."""
    kinds = (ReduceKind.ARGMAX, ReduceKind.ARGMIN, ReduceKind.ARGMAX_LAST, ReduceKind.ARGMIN_LAST)
    p = ProgramBuilder()
    x = p.input(1, 5)
    stages = [Stage(kind=k, body=here(x, 0), dtype=DType.I64) for k in kinds]
    program = rows((1,), (5,), [x], stages, [(acc_int(j), True) for j in range(4)], p, DType.I64)
    for row, places in (
        ([1, np.nan, 2, 2, 1], [2, 0, 3, 4]),
        ([np.nan, 1, 2, 2, 1], [0, 0, 0, 0]),
        ([-np.inf, np.nan, -np.inf, np.nan, -np.inf], [0, 0, 4, 4]),
        ([np.nan] * 5, [0, 0, 0, 0]),
    ):
        assert [int(y[0]) for y in run(program, [row])] == places


def test_empty_rows_and_no_rows() -> None:
    p = ProgramBuilder()
    x = p.input("m", "n")
    stages = [Stage(kind=k, body=here(x, 0)) for k in (ReduceKind.SUM, ReduceKind.MAX)]
    program = rows(x.shape[:1], x.shape[1:], [x], stages, [(acc(0), True), (acc(1), True)], p)
    total, top = run(program, np.zeros((2, 0)))
    assert list(total) == [0, 0] and list(top) == [-np.inf, -np.inf]
    assert run(program, np.zeros((0, 3)))[0].shape == (0,)


def test_gemm_with_an_epilogue() -> None:
    p = ProgramBuilder()
    a, b, bias = p.input(1, 2), p.input(2, 2), p.input(2)
    out = p.value(ValueKind.OUTPUT, 1, 2)
    p.op(Gemm(inputs=(a, b, bias), epilogue=call("add", acc(0), load(2, axis(1), dtype=DType.F32)), output=out))
    assert run(p.program, [[1, 2]], [[1, 10], [100, 1000]], [0.5, 0.25])[0].tolist() == [[201.5, 2010.25]]


def test_convolution_with_padding_stride_and_groups() -> None:
    p = ProgramBuilder()
    x, w = p.input(1, 2, 4), p.input(2, 1, 3)
    out = p.value(ValueKind.OUTPUT, 1, 2, 2)
    p.op(Conv(inputs=(x, w), strides=(2,), dilations=(1,), pads=(1,), group=2, epilogue=acc(0), output=out))
    got = run(p.program, [[[1, 2, 3, 4], [10, 20, 30, 40]]], [[[1, 1, 1]], [[0, 1, 2]]])[0]
    assert got.tolist() == [[[3, 9], [50, 110]]]


def test_attention_and_its_masked_rows() -> None:
    p = ProgramBuilder()
    q, k, v, mask = p.input(1, 1, 2, 1), p.input(1, 1, 2, 1), p.input(1, 1, 2, 1), p.input(2, 2)
    out = p.value(ValueKind.OUTPUT, 1, 1, 2, 1)
    score = call("add", acc(0), load(3, axis(2), axis(3), dtype=DType.F32))
    p.op(Attention(inputs=(q, k, v, mask), score=score, no_softmax=NoSoftmax.ZERO, output=out))
    zero = np.zeros((1, 1, 2, 1))
    got = run(p.program, zero, zero, [[[[2.0], [4.0]]]], [[0, 0], [-np.inf, -np.inf]])[0]
    assert got.reshape(-1).tolist() == [3, 0]


def test_scans() -> None:
    for exclusive, reverse, want in (
        (False, False, [1, 3, 6]),
        (True, False, [0, 1, 3]),
        (False, True, [6, 5, 3]),
        (True, True, [5, 3, 0]),
    ):
        p = ProgramBuilder()
        x = p.input(3)
        out = p.value(ValueKind.OUTPUT, 3)
        p.op(Scan(inputs=(x,), body=here(x, 0), kind=ReduceKind.SUM, exclusive=exclusive, reverse=reverse, output=out))
        assert list(run(p.program, [1, 2, 3])[0]) == want


def test_top_k_takes_nan_first_and_the_lower_of_equals() -> None:
    for largest, want in ((True, [4, 1, 3]), (False, [2, 0, 1])):
        p = ProgramBuilder()
        x = p.input(5)
        values, indices = p.value(ValueKind.OUTPUT, 3), p.value(ValueKind.OUTPUT, 3, dtype=DType.I64)
        p.op(TopK(inputs=(x,), k=3, largest=largest, values=values, indices=indices))
        assert list(run(p.program, [1, 2, 0, 2, np.nan])[1]) == want
        assert p.program.ops[0].written == (values, indices)


def test_a_recurrence_in_both_orders_of_time() -> None:
    """Two directions, two rows of 3 and 1 steps: h = 2 h + x, and how often it was done."""
    p = ProgramBuilder()
    r, lengths, x = p.constant(2, 1, 1, 1), p.value(ValueKind.INPUT, 2, dtype=DType.I32), p.input(3, 2)
    y, *finals = p.value(ValueKind.OUTPUT, 2, 3, 2, 1), p.value(ValueKind.OUTPUT, 2, 2, 1), p.value(ValueKind.OUTPUT, 2, 2, 1)
    h = call("add", acc(0), load(2, axis(1), axis(2), dtype=DType.F32))
    stage = RecurrentStage(gates=1, factor=0, bodies=(h, call("add", acc(2), const(1.0))))
    p.op(
        Recurrence(
            domain=(2, 3, 2, 1),
            inputs=(r, lengths, x),
            has_lengths=True,
            reverse=(False, True),
            initial=(call("to_f", axis(0)), const(0.0)),
            stages=(stage,),
            output=y,
            finals=tuple(finals),
        )
    )
    weights = (np.full((2, 1, 1, 1), 2.0),)
    got, last, count = run(p.program, [3, 1], [[1, 10], [2, 20], [3, 30]], constants=weights)
    assert got[0, :, 0, 0].tolist() == [1, 4, 11] and got[1, :, 0, 0].tolist() == [25, 12, 5]
    assert got[0, :, 1, 0].tolist() == [10, 0, 0] and got[1, :, 1, 0].tolist() == [12, 0, 0]
    assert last[:, :, 0].tolist() == [[11, 10], [25, 12]] and count[:, :, 0].tolist() == [[3, 1], [3, 1]]


@pytest.mark.parametrize("dtype", list(DType))
def test_stored_types(dtype: DType) -> None:
    assert from_ort(dtype.ort) is dtype and dtype.numpy.itemsize == dtype.bytes
    data = np.array([0, 1, 1, 0])
    stored = from_float64(data, dtype)
    assert stored.dtype == dtype.numpy and list(to_float64(stored, dtype)) == list(data)


def test_bfloat16_rounds_to_nearest_even() -> None:
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, np.nan, -np.inf])
    got = to_float64(from_float64(values, DType.BF16), DType.BF16)
    assert got[:3].tolist() == [1.0, 1 + 2 * 2**-7, 1 + 2**-7] and np.isnan(got[3]) and got[4] == -np.inf
    assert from_ort(99) is None
