"""The part of the lane axis that is far from borders, where indices are linear and need no clamp.

A reflecting pad reads |i - b| and, beyond the other border, 2n - 2 - |i - b|, clamped into the operand. For b <= i < b + n all
that is i - b: neighbours in memory, which are read as vectors. A kernel walks a row as its interior and the two edges, where
the expressions stay as they are; on the way it never asks on which side of a border an element is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, size, walk
from xyntra_ep.tracea.core_ir.index_range import affine, without_axis
from xyntra_ep.tracea.kernels.shared.index import Access, AccessTable, Lane
from xyntra_ep.tracea.kernels.shared.loops.nest import Nest, Scope
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, vmax, vmin

_EFFORT = {Lane.ONE: 0, Lane.VECTOR: 1, Lane.REPEATED: 1, Lane.GUARDED: 2, Lane.STRIDED: 3, Lane.GATHER: 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class Interior:
    """``bodies`` over ``nest`` are the values of the elements from the greatest of ``first`` up to the least of ``stops``."""

    nest: Nest
    bodies: tuple[Expr, ...]
    firsts: tuple[Expr, ...]
    stops: tuple[Expr, ...]

    def within(self, row: Scope, begin: Rvalue, end: Rvalue) -> tuple[Rvalue, Rvalue]:
        """Where it starts and ends in [begin, end) of a row; ``begin`` <= start <= end of it <= ``end``, whatever the sizes."""
        b, start, stop = row.b, begin, end
        for e in self.firsts:
            start = vmax(start, row.index(e))
        start = b.let("inner", vmin(start, end))
        for e in self.stops:
            stop = vmin(stop, row.index(e))
        return start, b.let("outer", vmax(stop, start))


def interior_of(nest: Nest, bodies: Sequence[Expr], extent: Size) -> Interior | None:
    """The interior of the lane axis, which has ``extent`` elements; None where its elements would be read as they are without."""
    if nest.lane_axis is None:
        return None
    far = _Far(nest.table, nest.lane_axis, extent)
    inner_bodies = tuple(far.expression(body) for body in bodies)
    accesses = list(nest.table.accesses)
    reads: set[int] = set()
    found = loads_in(*inner_bodies)  # what a condition of the interior leaves out is not read there
    while found:
        reads |= found
        for k in found:
            accesses[k] = far.access(accesses[k])
        found = loads_in(*(t.index for k in found for t in accesses[k].terms)) - reads
    table = nest.table.with_accesses(accesses)
    for k in reads:  # what is the same in all lanes is read before a row's interior is known, if only to be empty
        if axis(nest.lane_axis) not in table.access_deps(accesses[k]):
            accesses[k] = replace(accesses[k], count=nest.table.accesses[k].count)
    inner = Nest(nest.b, nest.table.with_accesses(accesses), nest.lane_axis, inner_bodies)
    before, after = (sum(_EFFORT[n.address(k).mode] for k in reads) for n in (nest, inner))
    if after >= before or any(n.address(k).mode is Lane.REPEATED for n in (nest, inner) for k in range(len(accesses))):
        return None  # repeated elements are read from a multiple of the lanes on, at the edges too
    return Interior(nest=inner, bodies=inner_bodies, firsts=tuple(far.firsts), stops=tuple(far.stops))


def loads_in(*roots: Expr) -> set[int]:
    """The accesses that ``roots`` read."""
    return {e.attr for e in walk(*roots) if e.kind == "load"}


class _Far:
    """Rewrites expressions as they are in the interior, and collects what that takes: ``firsts`` <= lane < ``stops``."""

    def __init__(self, table: AccessTable, lane: int, extent: Size) -> None:
        self._table = table
        self._lane = lane
        self._extent = extent
        self.firsts: list[Expr] = []
        self.stops: list[Expr] = []

    def access(self, access: Access) -> Access:
        terms = []
        for term in access.terms:
            index, inside = self.expression(term.index), term.inside
            if not inside and self._step(index) is not None:
                self._assume_within(index, size(term.extent))
                inside = True
            terms.append(replace(term, index=index, inside=inside))
        count = access.count
        if count is not None and all(t.inside or known_nonnegative(t.extent - 1) for t in terms):
            count = None
        if count is not None:  # of a view without elements nothing is read: then there is no interior
            self._add(self.stops, size(smin(count, 1) * self._extent))
        return replace(access, terms=tuple(terms), count=None)

    def expression(self, root: Expr) -> Expr:
        done: dict[int, Expr] = {}
        for e in walk(root):
            args = tuple(done[id(a)] for a in e.args)
            again = e if all(x is y for x, y in zip(args, e.args, strict=True)) else call(e.attr, *args)
            done[id(e)] = self._simpler(again)
        return done[id(root)]

    def _simpler(self, e: Expr) -> Expr:
        if e.kind != "call" or not e.args or e.args[0].dtype is not DType.I64:
            return e
        match e.attr:
            case "abs":
                return self._at_least_zero(e.args[0]) or e
            case "lt" | "le":
                return const(True) if self._assume_order(*e.args, equal=e.attr == "le") else e
            case "min" | "max":
                for x, bound in (e.args, e.args[::-1]):
                    pair = (x, bound) if e.attr == "min" else (bound, x)
                    if self._step(x) is not None and self._assume_order(*pair, equal=True):
                        return x
            case "mod":
                x, divisor = e.args
                if self._step(x) is not None and not self._depends(divisor):
                    self._assume_within(x, divisor)
                    return x
        return e

    def _at_least_zero(self, x: Expr) -> Expr | None:
        return x if self._step(x) is not None and self._assume_order(const(0), x, equal=True) else None

    def _assume_within(self, x: Expr, extent: Expr) -> None:
        self._assume_order(const(0), x, equal=True)
        self._assume_order(x, extent, equal=False)

    def _assume_order(self, a: Expr, b: Expr, *, equal: bool) -> bool:
        """Let a < b (a <= b, if ``equal``) be so; False where that is no bound of the lane."""
        difference = call("sub", a, b)
        step = self._step(difference)
        if step is None:
            return False
        start = without_axis(difference, self._lane)  # start + step * lane < 0, or <= 0
        slack = const(1 if equal else 0)
        if step == 1:
            self._add(self.stops, call("sub", slack, start))
        else:
            self._add(self.firsts, call("sub", call("add", start, const(1)), slack))
        return True

    def _add(self, bounds: list[Expr], bound: Expr) -> None:
        if not any(known is bound for known in bounds):
            bounds.append(bound)

    def _depends(self, e: Expr) -> bool:
        return axis(self._lane) in self._table.deps(e)

    def _step(self, e: Expr) -> int | None:
        """1 or -1 where ``e`` rises or falls by that from lane to lane; else None."""
        parts = affine(e)
        step = parts.coefficients.get(self._lane, 0)
        return step if isinstance(step, int) and abs(step) == 1 and not self._depends(parts.rest) else None
