"""Values that depend on the lane alone, computed once for several rows.

A linear resize computes for each column the two it lies between and their weights: conversions and a division, the same in each
row. With sizes that are known it reads these from constants, and clamps them into the row. A kernel keeps such values in local
arrays while it walks through rows that differ in other axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, walk
from xyntra_ep.tracea.kernels.shared.loops.nest import Lanes, Nest, Scope
from xyntra_ep.tracea.kernels.shared.operation_cost import operation_cycles
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue

_WORTH = 8.0  # cycles of a vector: a load from the first-level cache costs about one
_BOUND_CYCLES = 5.0  # the lesser or greater of 64-bit integers, which compilers make of ands and shifts
_BYTES = 128 << 10  # of the stack


def kept_values(nest: Nest, elements: int, lanes: int) -> list[Expr]:
    """What is worth an array where a part of a row has at most so many ``elements``."""
    if nest.lane_axis is None:
        return []
    worth = [e for e in nest.frontier(frozenset({axis(nest.lane_axis)})) if _worth(e, nest)]
    return worth if sum(e.dtype.bytes for e in worth) * (elements + lanes) <= _BYTES else []


class LaneTables:
    """The arrays for ``kept`` values."""

    def __init__(self, nest: Nest, kept: Sequence[Expr], elements: int, lanes: int) -> None:
        self._b = nest.b
        self._found = [(e, self._b.array("per_lane", e.dtype, elements + lanes)) for e in kept]
        self.reads = any(e.kind == "load" for e in walk(*kept))  # else vectors may go beyond the end: the arrays have room

    def fill(self, here: Lanes | Scope, at: Rvalue) -> None:
        """For the lanes of ``here``, the first of which is the ``at``-th element of its part of a row."""
        for e, array in self._found:
            self._b.store(array, at, here.value(e))

    def values(self, at: Rvalue, lanes: int) -> list[tuple[Expr, Rvalue]]:
        """Those of the ``lanes`` at the ``at``-th element."""
        return [(e, self._b.let("kept", self._b.load(array, at, lanes))) for e, array in self._found]


def _worth(e: Expr, nest: Nest) -> bool:
    if nest.table.deps(e) != {axis(nest.lane_axis or 0)} or e.dtype not in (DType.F32, DType.I64):
        return False
    return sum(map(_cycles, walk(e))) >= _WORTH


def _cycles(e: Expr) -> float:
    is_bound = e.kind == "call" and e.attr in ("min", "max") and e.dtype is DType.I64
    return _BOUND_CYCLES if is_bound else operation_cycles(e)
