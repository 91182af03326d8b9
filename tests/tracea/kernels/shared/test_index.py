"""Which indices are proven to stay inside, at the last element that is; and how addresses are taken apart."""

from __future__ import annotations

import itertools

import pytest

from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, size, walk
from xyntra_ep.tracea.core_ir.index_range import affine, stays_inside
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.shared.index import AccessTable, Group, Lane, coordinates_of
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder

N, M = symbol("n"), symbol("m")
ROW, LANE = axis(0), axis(1)
DOMAIN: tuple[Size, ...] = (N, 8)  # of ROW and LANE
JUST_INSIDE: list[tuple[Expr, Size]] = [
    (ROW, N),
    (call("add", ROW, const(2)), N + 2),
    (call("sub", size(N - 1), ROW), N),
    (LANE, 8),
    (call("sub", LANE, const(0)), 8),
    (call("add", call("mul", ROW, const(3)), const(1)), N * 3 - 1),
    (call("add", call("mul", ROW, const(8)), LANE), N * 8),
    (call("mod", load(0, ROW, dtype=DType.I64), const(5)), 5),
    (call("div", LANE, const(2)), 4),
    (call("min", load(0, ROW, dtype=DType.I64), const(3)), -1),
    (call("max", call("min", load(0, ROW, dtype=DType.I64), const(3)), const(0)), 4),
    (call("where", call("lt", LANE, const(4)), LANE, call("sub", const(7), LANE)), 8),
    (call("neg", call("mul", LANE, const(-2))), 15),
]


@pytest.mark.parametrize(("index", "extent"), JUST_INSIDE, ids=lambda v: repr(v))
def test_proofs_are_tight(index: Expr, extent: Size) -> None:
    """Inside the given extent (unless it is -1: never), and not inside one less."""
    assert stays_inside(index, extent, DOMAIN) is (extent != -1)
    assert not stays_inside(index, extent - 1, DOMAIN)


def test_what_may_be_negative_is_not_inside() -> None:
    for index in (call("sub", ROW, const(1)), call("mul", LANE, const(-1)), load(0, ROW, dtype=DType.I64)):
        assert not stays_inside(index, 1000, DOMAIN) and not stays_inside(index, N * 1000 + 1000, DOMAIN)


def test_linear_parts() -> None:
    whole = call("sub", call("mul", call("add", ROW, const(2)), size(N)), call("neg", call("mod", LANE, const(2))))
    parts = affine(whole)
    assert dict(parts.coefficients) == {0: N} and ROW not in walk(parts.rest) and LANE in walk(parts.rest)
    assert dict(affine(call("mul", ROW, LANE)).coefficients) == {}


@pytest.mark.parametrize(
    ("index", "stride", "mode"),
    [
        (LANE, 1, Lane.VECTOR),
        (LANE, 3, Lane.STRIDED),
        (LANE, 0, Lane.ONE),
        (LANE, N, Lane.GUARDED),
        (ROW, 7, Lane.ONE),
        (call("sub", LANE, const(1)), 1, Lane.GUARDED),
        (call("mul", LANE, const(2)), 1, Lane.GUARDED),
        (call("sub", const(7), LANE), 1, Lane.STRIDED),
        (call("sub", const(6), LANE), 1, Lane.GATHER),
        (call("mod", LANE, const(3)), 1, Lane.GATHER),
    ],
)
def test_how_lanes_meet_memory(index: Expr, stride: Size, mode: Lane) -> None:
    b = KernelBuilder("test")
    table = AccessTable(b, DOMAIN)
    extent = N if index is ROW else 8
    operand = Operand(value=0, dtype=DType.F32, shape=(extent,), strides=(stride,))
    body = table.reading(load(0, index, dtype=DType.F32), [operand])
    assert table.lanewise(table.accesses[body.attr], 1).mode is mode


def test_a_view_that_may_be_empty_is_counted() -> None:
    """By the dimensions of which the loops do not say that they have elements."""
    table = AccessTable(KernelBuilder("test"), (N, M * 2))
    before, halved = call("sub", ROW, const(1)), call("sub", LANE, const(9))
    for shape, indices, count in (
        ((N, M * 2), (ROW, LANE), None),
        ((N + 1, M * 2), (before, LANE), None),
        ((N * 2, M * 2), (before, LANE), N * 2),
        ((N, M), (before, halved), None),  # loops as long, and twice as long
        ((N, M), (halved, before), N * M),
        ((0, M), (before, halved), 0),
    ):
        operand = Operand(value=0, dtype=DType.F32, shape=shape, strides=(1, 1))
        body = table.reading(load(0, *indices, dtype=DType.F32), [operand])
        assert table.accesses[body.attr].count == count, shape
        table = AccessTable(KernelBuilder("test"), (N, M * 2))


def test_a_view_that_may_be_empty_is_read_as_others_are() -> None:
    for step, mode in ((1, Lane.VECTOR), (3, Lane.STRIDED)):
        table = AccessTable(KernelBuilder("test"), DOMAIN)
        operand = Operand(value=0, dtype=DType.F32, shape=(M, 8), strides=(8, step))
        body = table.reading(load(0, ROW, LANE, dtype=DType.F32), [operand])
        access = table.accesses[body.attr]
        assert access.count == M and table.lanewise(access, 1).mode is mode


GROUPS = (Group(axes=(0,), extents=(6,)), Group(axes=(1, 2), extents=(3, 4)))


@pytest.mark.parametrize(
    ("strides", "offset", "steps"),
    [
        ((12, 4, 1), 0, 2),  # the group is walked through as one
        ((12, 4, 1), 5, 2),
        ((1, 6, 18), 0, 3),  # its axes change places: one term for each
        ((0, 4, 1), 0, 1),
        ((12, 0, 1), 0, 2),
    ],
)
def test_accesses_over_groups_reach_the_same_elements(strides: tuple[int, ...], offset: int, steps: int) -> None:
    """At every point of the domain, in one term for each step that there is."""
    table = AccessTable(KernelBuilder("k"), (6, 3, 4))
    table.writing(Operand(value=0, dtype=DType.F32, shape=(6, 3, 4), strides=strides, offset=offset))
    [access] = table.over_groups(GROUPS).accesses
    assert len(access.terms) == steps

    def at(e: Expr, places: tuple[int, int]) -> int:
        if e.kind == "axis":
            return places[e.attr]
        if e.kind in ("const", "size"):
            return int(e.attr)
        a, b = (at(x, places) for x in e.args)
        return {"div": lambda: a // b, "mod": lambda: a % b}[e.attr]()

    for i, j, k in itertools.product(range(6), range(3), range(4)):
        places = (i, 4 * j + k)
        found = access.offset + sum(at(t.index, places) * t.stride for t in access.terms)
        assert found == offset + i * strides[0] + j * strides[1] + k * strides[2]


def test_coordinates_of_axes_that_are_one_long_are_0() -> None:
    found = coordinates_of([Group(axes=(0, 1), extents=(1, 5)), Group(axes=(2,), extents=(1,))])
    assert found == {0: const(0), 1: axis(0), 2: const(0)}
