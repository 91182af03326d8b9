"""Which columns of k a block of rows sees, and each of its rows, by the bounds of a causal mask.

What a bound has beside the row is computed where a block begins: a size, or a number that is read for its batch and head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.shared.column_bounds import ROW, Bound, Bounds
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, index, le, vmax, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Columns [begin, end); None: from the first, to the last."""

    begin: Rvalue | None
    end: Rvalue | None


class Sight:
    """Tell it of a block with ``enter``; then ``block`` are the columns that any row of it sees, in whole panels."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape) -> None:
        self._k = kernel
        self._shape = shape
        self.bounds = Bounds() if shape.causal is None else shape.causal.bounds
        self.block = Span(begin=None, end=None)
        domain = (*shape.batch, shape.rows, shape.columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self._read: dict[Expr, Epilogue] = {}
        for bound in (*self.bounds.ends, *self.bounds.begins):
            if bound.offset.kind not in ("const", "size") and bound.offset not in self._read:
                offset = Epilogue(kernel, bound.offset, shape.op.inputs, domain, groups, lane_group=3)
                self._read[bound.offset] = offset
        self._offsets: dict[Expr, Rvalue] = {}

    @property
    def buffers(self) -> Sequence[ValueBuffer]:
        return [buffer for offset in self._read.values() for buffer in offset.buffers]

    def enter(self, head: Sequence[Rvalue], first: Rvalue, count: Rvalue) -> None:
        """A block of ``count`` rows from ``first`` on, of the head at batch and head ``head``."""
        k, shape = self._k, self._shape
        for expr, epilogue in self._read.items():
            value = epilogue.at(k).value([*head, index(0), index(0)], {}, 1)
            self._offsets[expr] = k.let("offset", Convert(INDEX, value))
        panel, columns = shape.tile.columns, k.param(shape.columns)
        begin: Rvalue | None = None
        end: Rvalue | None = None
        if self.bounds.ends:
            # Whole panels, so that later passes start at one.
            reach = vmax(_least([self._of_block(bound, first, count, last=True) for bound in self.bounds.ends]), 0)
            end = k.let("sight", vmin((reach + (panel - 1)) // panel * panel, columns))
        if self.bounds.begins:
            start = _greatest([self._of_block(bound, first, count, last=False) for bound in self.bounds.begins])
            begin = k.let("from", vmax(vmin(start, columns if end is None else end), 0) // panel * panel)
        self.block = Span(begin=begin, end=end)

    def of_row(self, row: Rvalue) -> Span:
        """The columns that a row of the block sees; what was read is kept within [0, columns]."""
        k, read = self._k, bool(self._read)
        ends = [self._of_row(bound, row) for bound in self.bounds.ends]
        begins = [self._of_row(bound, row) for bound in self.bounds.begins]

        def within(x: Rvalue) -> Rvalue:
            return vmax(vmin(x, k.param(self._shape.columns)), 0) if read else x

        return Span(
            begin=k.let("hidden", within(_greatest(begins))) if begins else None,
            end=(k.let("end", within(_least(ends))) if read else _least(ends)) if ends else None,
        )

    def _offset(self, bound: Bound, more: int = 0) -> Rvalue:
        if bound.offset in self._offsets:
            return self._offsets[bound.offset] + more
        size: Size = bound.offset.attr
        return self._k.param(size + more)

    def _of_row(self, bound: Bound, row: Rvalue) -> Rvalue:
        if bound.query is None:
            return self._offset(bound)
        return (row if bound.query is ROW else row % self._period(bound)) + self._offset(bound)

    def _of_block(self, bound: Bound, first: Rvalue, count: Rvalue, *, last: bool) -> Rvalue:
        """The bound of the row that has the greatest one, or the least."""
        if bound.query is None:
            return self._offset(bound)
        if bound.query is ROW:
            return first + count + self._offset(bound, -1) if last else first + self._offset(bound)
        k, period = self._k, self._period(bound)
        query = k.let("query", first % period)
        if last:
            return vmin(query + count, period) - 1 + self._offset(bound)
        # A block that goes over the end of the queries of one head has the first one of the next.
        return Select(le(query + count, period), query, index(0)) + self._offset(bound)

    def _period(self, bound: Bound) -> Rvalue:
        assert bound.query is not None
        size: Size = bound.query.args[1].attr
        return self._k.param(size)


def _least(values: Sequence[Rvalue]) -> Rvalue:
    least = values[0]
    for value in values[1:]:
        least = vmin(least, value)
    return least


def _greatest(values: Sequence[Rvalue]) -> Rvalue:
    greatest = values[0]
    for value in values[1:]:
        greatest = vmax(greatest, value)
    return greatest
