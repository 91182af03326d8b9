"""Which loops to write for a domain: their order, and which of them are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.index_range import without_axis
from xyntra_ep.tracea.kernels.shared.index import AccessTable, axes_used


@dataclass(frozen=True, slots=True)
class Loop:
    axis: int
    extent: Size


@dataclass(slots=True)
class Domain:
    """The loops over a domain, outermost first, and the expressions to compute in it; ``simplify`` makes the loops fewer."""

    table: AccessTable
    loops: list[Loop]
    roots: list[Expr]

    def order(self, leading: Sequence[int], first: int = 0, last: int | None = None) -> None:
        """Sort loops[first:last] by falling stride of the accesses ``leading`` (the first that tells two axes apart)."""
        axes = [loop.axis for loop in self.loops]
        strides = [s for k in leading if (s := self.table.strides(self.table.accesses[k], axes)) is not None]

        def before(a: Loop, b: Loop) -> bool:
            for known in strides:
                x, y = known[a.axis], known[b.axis]
                if x != y and x != 0 and y != 0:
                    return y == 1 or (x != 1 and known_nonnegative(x - y))
            return False

        ordered: list[Loop] = []
        for loop in self.loops[first:last]:  # insertion sort: what the partial relation leaves open stays as it was
            at = len(ordered)
            while at and before(loop, ordered[at - 1]):
                at -= 1
            ordered.insert(at, loop)
        self.loops[first:last] = ordered

    def simplify(self, second_group: int = 0) -> None:
        """Drop loops of one round and merge neighbours that every access walks through as one.

        Loops before and from position ``second_group`` on are not merged with each other.
        """
        for loop in self.loops:
            if loop.extent == 1:
                self._fix(loop.axis)
        kept: list[Loop] = []
        barrier = 0
        for i, loop in enumerate(self.loops):
            if i == second_group:
                barrier = len(kept)
            if loop.extent == 1:
                continue
            if len(kept) > barrier and self._walk_as_one(kept[-1], loop):
                self._fix(kept[-1].axis)
                kept[-1] = Loop(loop.axis, kept[-1].extent * loop.extent)
            else:
                kept.append(loop)
        self.loops = kept

    def _fix(self, axis: int) -> None:
        self.table.fix_accesses(axis)
        self.roots = [without_axis(root, axis) for root in self.roots]

    def _walk_as_one(self, outer: Loop, inner: Loop) -> bool:
        pair = (outer.axis, inner.axis)
        if axes_used(self.table, self.roots) & set(pair):
            return False
        for access in self.table.accesses:
            strides = self.table.strides(access, pair)
            if strides is None or strides[outer.axis] != strides[inner.axis] * inner.extent:
                return False
        return True
