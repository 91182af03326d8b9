"""Maps whose loads jump, in pieces; parts of a tensor in another order, without a copy of it."""

from __future__ import annotations

from tests.support.models.model_text import check, normal, parse
from xyntra_ep.fusion.scheduling.pieces import by_extent, pieces
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Pointwise


def jump(condition: Expr, ahead: int, back: int) -> Expr:
    """in0[i0 + ahead] where ``condition``, else in0[i0 - back]."""
    i = E.axis(0)
    at = E.call("where", condition, E.call("add", i, E.const(ahead)), E.call("sub", i, E.const(back)))
    return E.load(0, at, dtype=DType.F32)


def spans(condition: Expr, extent: int = 40) -> list[tuple[int, object]]:
    return [(p.start, p.extent) for p in pieces(jump(condition, 10, 10), (extent,))]


def test_comparisons_from_either_side() -> None:
    i = E.axis(0)
    assert spans(E.call("lt", i, E.const(16))) == [(0, 16), (16, 24)]
    assert spans(E.call("le", i, E.const(16))) == [(0, 17), (17, 23)]
    assert spans(E.call("lt", E.const(16), i)) == [(0, 17), (17, 23)]
    assert spans(E.call("le", E.const(16), i)) == [(0, 16), (16, 24)]
    assert spans(E.call("le", E.call("sub", i, E.const(4)), E.const(12))) == [(0, 17), (17, 23)]


def test_what_stays_whole() -> None:
    i = E.axis(0)
    assert spans(E.call("lt", i, E.const(3))) == [(0, 40)]  # a piece of less than a vector
    assert spans(E.call("lt", i, E.const(50))) == [(0, 40)]
    assert spans(E.call("lt", E.call("mul", i, i), E.const(100))) == [(0, 40)]
    half = E.call("lt", i, E.const(16))
    chosen = E.call("where", half, E.load(0, i, dtype=DType.F32), E.const(0.0))  # no address jumps
    assert len(pieces(chosen, (40,))) == 1
    assert len(pieces(jump(half, 10, 10), (symbol("n"),))) == 1


def test_bodies_count_from_their_piece() -> None:
    first, second = pieces(jump(E.call("lt", E.axis(0), E.const(16)), 16, 16), (32,))
    assert repr(first.body) == "in0[add(i0, 16)]" and repr(second.body) == "in0[sub(add(i0, 16), 16)]"
    assert by_extent([first, second]) == [[first, second]]


def test_half_of_a_head_turned() -> None:
    """One loop over half a head, for both of its halves."""
    model = parse(
        """(float[2,S,32] x, float[S,32] cos, float[S,32] sin) => (float[] y)
        <int64[1] zero = {0}, int64[1] half = {16}, int64[1] end = {32}, int64[1] last = {2}> {
            a = Slice(x, zero, half, last) b = Slice(x, half, end, last) n = Neg(b) turned = Concat<axis = 2>(n, a)
            u = Mul(x, cos) w = Mul(turned, sin) y = Add(u, w) }"""
    )
    island = check(model, {"x": normal(2, 5, 32), "cos": normal(5, 32), "sin": normal(5, 32)})
    (op,) = island.ops(Pointwise)
    assert op.domain[-1] == 16 and len(op.outputs) == 2 and "where" not in repr(op.bodies)


def test_a_window_that_wraps_round() -> None:
    """Rolled along two axes at once, then divided into windows."""
    model = parse(
        """(float[2,6,6,5] x) => (float[] y)
        <int64[1] zero = {0}, int64[1] at = {2}, int64[1] end = {6}, int64[1] one = {1}, int64[1] two = {2},
         int64[6] windows = {2, 2, 3, 2, 3, 5}> {
            a = Slice(x, at, end, one) b = Slice(x, zero, at, one) v = Concat<axis = 1>(a, b)
            c = Slice(v, at, end, two) d = Slice(v, zero, at, two) w = Concat<axis = 2>(c, d)
            r = Reshape(w, windows) t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(r) y = Exp(t) }"""
    )
    assert check(model, {"x": normal(2, 6, 6, 5)}).kinds() == ["pointwise"] * 2
