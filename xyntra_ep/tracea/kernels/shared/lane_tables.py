"""Values that depend on the lane alone, computed once for several rows.

A linear resize computes for each column the two it lies between and their weights: conversions and a division, the same in each
row. A kernel keeps them in local arrays while it walks through rows that differ in other axes.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, walk
from xyntra_ep.tracea.kernels.shared.loops import Nest, Scope
from xyntra_ep.tracea.kernels.shared.operation_cost import operation_cycles
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var

_WORTH = 8.0  # cycles of a vector: a load from the first-level cache costs about one
_BYTES = 128 << 10  # of the stack


class LaneTables:
    """``elements``: the most that a part of a row has. ``found`` is empty where there is nothing worth an array."""

    def __init__(self, nest: Nest, elements: int, lanes: int) -> None:
        self._b = nest.b
        self._lanes = lanes
        self.found: list[tuple[Expr, Var]] = []
        worth = [] if nest.lane_axis is None else [e for e in nest.frontier(frozenset({axis(nest.lane_axis)})) if _worth(e, nest)]
        room = elements + lanes
        if sum(e.dtype.bytes for e in worth) * room <= _BYTES:
            self.found = [(e, self._b.array("per_lane", e.dtype, room)) for e in worth]

    def fill(self, outside: Scope, begin: Rvalue, end: Rvalue) -> None:
        """For the elements from ``begin`` up to ``end`` of a row."""
        b = self._b
        with b.loop("t", begin, end, self._lanes) as at:  # some beyond the end: arithmetic, and the arrays have room
            here = outside.lanes(at, self._lanes)
            for e, array in self.found:
                b.store(array, at - begin, here.value(e))

    def values(self, at: Rvalue, begin: Rvalue, lanes: int) -> list[tuple[Expr, Rvalue]]:
        """Those of the ``lanes`` at ``at`` of a row whose part starts at ``begin``."""
        return [(e, self._b.let("kept", self._b.load(array, at - begin, lanes))) for e, array in self.found]


def _worth(e: Expr, nest: Nest) -> bool:
    if nest.table.deps(e) != {axis(nest.lane_axis or 0)} or e.dtype not in (DType.F32, DType.I64):
        return False
    below = walk(e)
    return not any(x.kind == "load" for x in below) and sum(map(operation_cycles, below)) >= _WORTH
