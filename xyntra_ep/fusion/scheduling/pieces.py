"""A map whose loads jump somewhere along an axis, as pieces between the jumps: in each of them indices are affine again.

A rotary embedding reads element i + H / 2 in the first half of a head and i - H / 2 in the second. As one loop that is a gather
of computed addresses, as two it is vectors.

>>> from xyntra_ep.tracea.core_ir.dtypes import DType
>>> first = E.call("lt", E.axis(0), E.const(8))
>>> partner = E.call("where", first, E.call("add", E.axis(0), E.const(8)), E.call("sub", E.axis(0), E.const(8)))
>>> for piece in pieces(E.load(0, partner, dtype=DType.F32), (16,)):
...     print(piece.start, piece.extent, piece.body)
0 8 in0[add(i0, 8)]
8 8 in0[sub(add(i0, 8), 8)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr

_LEAST = 8  # elements of a piece: fewer are no vector
_MOST = 4  # pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """``extent`` elements of ``axis`` from ``start`` on; ``body`` counts from there."""

    axis: int
    start: int
    extent: Size
    body: Expr


@dataclass(frozen=True, slots=True)
class _Linear:
    """factor * axis + constant"""

    axis: int
    factor: int
    constant: int


def pieces(body: Expr, shape: Sequence[Size]) -> list[Piece]:
    """The whole as one where its loads do not jump, or too often."""
    breaks: dict[int, set[int]] = {}
    for condition in _jumps(body):
        for e in E.walk(condition):
            if (found := _difference(e)) is not None and (at := _turn(e.attr, found)) is not None:
                breaks.setdefault(found.axis, set()).add(at)
    for axis, found_at in breaks.items():
        extent = shape[axis]
        if not isinstance(extent, int):
            continue
        ends = [0, *sorted(at for at in found_at if 0 < at < extent), extent]
        lengths = [end - start for start, end in pairwise(ends)]
        if 1 < len(lengths) <= _MOST and min(lengths) >= _LEAST:
            spans = zip(ends, lengths, strict=False)
            return [Piece(axis=axis, start=s, extent=n, body=_within(body, axis, s, n)) for s, n in spans]
    return [Piece(axis=0, start=0, extent=shape[0] if shape else 1, body=body)]


def _jumps(body: Expr) -> list[Expr]:
    """Conditions by which an address, or which of two loads is meant, is chosen."""
    everywhere = E.walk(body)
    choices = [e for e in everywhere if e.kind == "call" and e.attr == "where"]
    in_index = {id(e) for load in everywhere if load.kind == "load" for e in E.walk(*load.args)}
    return [e.args[0] for e in choices if id(e) in in_index or all(any(x.kind == "load" for x in E.walk(b)) for b in e.args[1:])]


def by_extent(found: Sequence[Piece]) -> list[list[Piece]]:
    """Those of the same size together: a loop that computes all of them reads only once what several read."""
    sizes = list(dict.fromkeys(p.extent for p in found))
    return [[p for p in found if p.extent == n] for n in sizes]


def _within(body: Expr, axis: int, start: int, extent: int) -> Expr:
    """``body`` over [start, start + extent) of ``axis``, where comparisons that come out the same everywhere are decided."""

    def leaf(e: Expr) -> Expr | None:
        if e is E.axis(axis):
            return E.call("add", e, E.const(start))
        found = _difference(e)
        if found is None or found.axis != axis:
            return None
        values = [found.factor * at + found.constant for at in (start, start + extent - 1)]
        low, high = min(values), max(values)
        limit = 0 if e.attr == "le" else -1  # the greatest difference for which it is true
        return E.const(True) if high <= limit else E.const(False) if low > limit else None

    return E.rewrite(body, leaf)


def _difference(e: Expr) -> _Linear | None:
    """What a comparison compares with 0: its first operand less its second, where that depends on one axis."""
    if e.kind != "call" or e.attr not in ("lt", "le"):
        return None
    a, b = _linear(e.args[0]), _linear(e.args[1])
    if a is None or b is None or (a.factor != 0) == (b.factor != 0):
        return None
    return _Linear(a.axis if a.factor else b.axis, a.factor - b.factor, a.constant - b.constant)


def _linear(e: Expr) -> _Linear | None:
    if e.kind == "axis":
        return _Linear(e.attr, 1, 0)
    if e.kind == "const" and isinstance(e.attr, int) and not isinstance(e.attr, bool):
        return _Linear(-1, 0, e.attr)
    if e.kind != "call" or e.attr not in ("add", "sub"):
        return None
    a, b = _linear(e.args[0]), _linear(e.args[1])
    if a is None or b is None or b.factor != 0:
        return None
    return _Linear(a.axis, a.factor, a.constant + b.constant if e.attr == "add" else a.constant - b.constant)


def _turn(comparison: str, found: _Linear) -> int | None:
    """The first element of the axis at which the comparison is not what it was before."""
    if found.factor == 1:  # true for i < -constant, or i <= -constant
        return -found.constant + (1 if comparison == "le" else 0)
    return found.constant + (0 if comparison == "le" else 1) if found.factor == -1 else None
