"""Which columns of k a block of rows sees, and each of its rows, by the bounds of a mask: on CPUs and GPUs alike.

These are the tiles of `core_ir/tile_graph.py` that exist, as a kernel computes them: one range for each block of rows. What a
bound has beside the row is computed where a block begins: a size, or a number that is read for its batch and head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.shared.column_bounds import ROW, Bound, Bounds
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Rvalue, Select, binary, index, le, vmax, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Columns [begin, end), or panels of them; None: from the first, to the last."""

    begin: Rvalue | None
    end: Rvalue | None


class Sight:
    """Tell it of a block with ``enter``, then ask. ``panel``: so many columns are computed together."""

    def __init__(self, kernel: KernelBuilder, op: Attention, bounds: Bounds, panel: int) -> None:
        self._k, self.bounds, self._panel = kernel, bounds, panel
        self._columns = op.inputs[1].shape[2]
        domain = (*op.inputs[0].shape[:3], self._columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self._read: dict[Expr, Epilogue] = {}
        for bound in (*bounds.ends, *bounds.begins):
            if bound.offset.kind not in ("const", "size") and bound.offset not in self._read:
                offset = Epilogue(kernel, bound.offset, op.inputs, domain, groups, lane_group=3)
                self._read[bound.offset] = offset
        self._offsets: dict[Expr, Rvalue] = {}

    @property
    def buffers(self) -> Sequence[ValueBuffer]:
        return [buffer for offset in self._read.values() for buffer in offset.buffers]

    def enter(self, head: Sequence[Rvalue], first: Rvalue, count: Rvalue) -> None:
        """A block of ``count`` rows from ``first`` on, of the head at batch and head ``head``."""
        self._first, self._count = first, count
        for expr, epilogue in self._read.items():
            value = epilogue.at(self._k).value([*head, index(0), index(0)], {}, 1)
            self._offsets[expr] = self._k.let("offset", Convert(INDEX, value))

    def columns(self) -> Span:
        """Those that any row of the block sees, in whole panels."""
        k, panel, columns = self._k, self._panel, self._k.param(self._columns)
        end = begin = None
        if self.bounds.ends:
            # Whole panels, so that later passes start at one.
            end = k.let("sight", vmin(self._end() * panel, columns))
        if self.bounds.begins:
            start = self._begin()
            begin = k.let("from", vmax(vmin(start, columns if end is None else end), 0) // panel * panel)
        return Span(begin=begin, end=end)

    def panels(self) -> tuple[Rvalue, Rvalue]:
        """The same, counted in panels: the first, and the one behind the last."""
        k, panel = self._k, self._panel
        all_ = k.param(ceildiv(self._columns, panel))
        end = k.let("seen", vmin(self._end(), all_)) if self.bounds.ends else all_
        if not self.bounds.begins:
            return index(0), end
        return k.let("from", vmin(vmax(self._begin(), 0) // panel, end)), end

    def _end(self) -> Rvalue:
        """Panels up to the last that a row sees, which may be more than there are."""
        panel = self._panel
        reach = vmax(_least([self._of_block(bound, last=True) for bound in self.bounds.ends]), 0)
        return (reach + (panel - 1)) // panel

    def _begin(self) -> Rvalue:
        """The first column that a row sees, if not an earlier one; it may be none that there is."""
        return _greatest([self._of_block(bound, last=False) for bound in self.bounds.begins])

    def of_row(self, row: Rvalue) -> Span:
        """The columns that a row of the block sees; what was read is kept within [0, columns]."""
        k, read = self._k, bool(self._read)
        ends = [self._of_row(bound, row) for bound in self.bounds.ends]
        begins = [self._of_row(bound, row) for bound in self.bounds.begins]

        def within(x: Rvalue) -> Rvalue:
            return vmax(vmin(x, k.param(self._columns)), 0) if read else x

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

    def _of_block(self, bound: Bound, *, last: bool) -> Rvalue:
        """The bound of the row that has the greatest one, or the least."""
        first, count = self._first, self._count
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


def chosen(part: Rvalue, of: Sequence[Rvalue]) -> Rvalue:
    """Of number ``part``."""
    found = of[-1]
    for i in range(len(of) - 2, -1, -1):
        found = Select(binary("eq", part, i), of[i], found)
    return found
