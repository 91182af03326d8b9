"""Operands lie within their values: proven, or a condition is left, or it is our mistake and said at once."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, evaluate, smin, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, load
from xyntra_ep.tracea.core_ir.ops import Operand, Pointwise, Program, Value, ValueKind
from xyntra_ep.tracea.planning.bounds import bounds_of, reach_of

N, K = symbol("n"), symbol("k")


def copy_of(operand: Operand, shape: tuple[Size, ...]) -> Program:
    """A program that copies ``operand``, a view of an input of ``shape``."""
    values = [
        Value(kind=ValueKind.INPUT, dtype=DType.F32, shape=shape),
        Value(kind=ValueKind.OUTPUT, dtype=DType.F32, shape=operand.shape),
    ]
    program = Program(values=values, sources=[(0,)])
    body = load(0, *map(axis, range(len(operand.shape))), dtype=DType.F32)
    out = program.operand(1)
    program.ops = [Pointwise(domain=operand.shape, inputs=(operand,), bodies=(body,), outputs=(out,), label="copy")]
    return program


def view(shape: tuple[Size, ...], strides: tuple[Size, ...], offset: Size = 0) -> Operand:
    return Operand(value=0, dtype=DType.F32, shape=shape, strides=strides, offset=offset)


@pytest.mark.parametrize(
    ("operand", "shape"),
    [
        (view((N, K), (K, 1)), (N, K)),  # the whole
        (view((K, N), (1, K)), (N, K)),  # transposed
        (view((N, K - 2), (K, 1), 1), (N, K)),  # without the first and the last column
        (view((N,), (-1,), N - 1), (N,)),  # backwards
        (view((ceildiv(N, 2),), (2,)), (N,)),  # every second
        (view((smin(N, 5),), (1,)), (N,)),  # at most five
        (view((N, K), (0, 1)), (K,)),  # repeated
    ],
)
def test_what_is_inside_at_all_sizes_leaves_nothing(operand: Operand, shape: tuple[Size, ...]) -> None:
    left = [(c, m) for c, m in bounds_of(copy_of(operand, shape), [0]) if "reach" in m]
    assert not left


def test_what_is_left_holds_exactly_where_the_view_is_inside() -> None:
    """Views over two symbols, against what they reach: not a run too many is refused, and none too few."""
    starts: tuple[Size, ...] = (0, 1, K, N - 3)
    lengths: tuple[Size, ...] = (N, K, N - K, N + 1)
    judged = 0
    for start, length, stride in itertools.product(starts, lengths, (1, 2, -1)):
        operand = view((length,), (stride,), start)
        try:
            conditions, possible = bounds_of(copy_of(operand, (N,)), [0]), True
        except InvariantError:
            possible = False
        for n, k in itertools.product(range(7), range(7)):
            at = {"n": n, "k": k}
            count = evaluate(length, at)
            places = [evaluate(start, at) + i * stride for i in range(max(0, count))]
            inside = count >= 0 and all(0 <= place < n for place in places)
            if not possible:
                assert not inside or not places
            else:
                assert all(evaluate(c, at) != 0 for c, _ in conditions) == inside, (str(start), str(length), stride, at)
            judged += 1
    assert judged == 4 * 4 * 3 * 49


def test_what_is_outside_at_all_sizes_is_our_mistake() -> None:
    with pytest.raises(InvariantError, match=r"copy: operand 0 would reach beyond its memory"):
        bounds_of(copy_of(view((3,), (1,), 2), (4,)), [0])


def test_only_the_ops_that_are_asked_for_count() -> None:
    program = copy_of(view((N,), (1,)), (K,))
    assert bounds_of(program, []) == [] and len(bounds_of(program, [0])) == 1


def test_outputs_are_judged_too() -> None:
    program = copy_of(view((N,), (1,)), (N,))
    op = program.ops[0]
    assert isinstance(op, Pointwise)
    program.ops = [dataclasses.replace(op, outputs=(dataclasses.replace(op.outputs[0], offset=1),))]
    (condition, message) = bounds_of(program, [0])[0]
    assert "operand 1" in message and [evaluate(condition, {"n": n}) for n in (0, 1)] == [1, 0]


def test_reach_of_a_view_with_steps_of_unknown_sign() -> None:
    low, high = reach_of(view((3,), (N - 2,), 4))
    assert [(evaluate(low, {"n": n}), evaluate(high, {"n": n})) for n in (0, 2, 3)] == [(0, 4), (4, 4), (4, 6)]
