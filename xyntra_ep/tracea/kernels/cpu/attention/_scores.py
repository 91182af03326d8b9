"""From products of q and k to scores: the score's expression, and -inf past the end, in the pass that looks for the maximum.

The products lie in the first-level cache and that pass reads them anyway, so the expression is printed once for a kernel and
not once for every tile: what an attention takes to compile is mostly this.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.score_multiple import multiple_of
from xyntra_ep.tracea.kernels.shared.sight import Sight, Span
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Iota,
    Offset,
    Rvalue,
    Select,
    Var,
    f32,
    i32,
    index,
    lt,
    splat,
    vmax,
    vmin,
)

LOWEST = float("-inf")


class Scores:
    """Finishes the scores of a block's rows in place; tell it of the block with ``enter``, of the pass with ``begin``.

    ``factor``: what a score is to be multiplied with after all: a score that is a multiple of its product is left alone.
    """

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, sight: Sight) -> None:
        self._k = kernel
        self._shape = shape
        self._sight = sight
        op, mask = shape.op, shape.causal
        domain = (*shape.batch, shape.rows, shape.columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]

        def epilogue(root: Expr) -> Epilogue:
            return Epilogue(kernel, root, op.inputs, domain, groups, lane_group=3)

        self._inside = epilogue(op.score if mask is None else mask.visible)
        # A mask that is added is a part of every score that it hides.
        self._adds = mask is not None and mask.limit is not None and mask.bounds != Bounds()
        self._edge = epilogue(op.score) if self._adds else self._inside
        multiple = None if self._adds or shape.may_see_more else multiple_of(self._inside.root)
        self._is_raw = multiple is not None
        self.factor = 1.0 if multiple is None else multiple
        self._head: Sequence[Rvalue] = ()
        self._first: Rvalue = index(0)
        self._column: Rvalue = index(0)
        self._products: Var | None = None

    @property
    def buffers(self) -> Sequence[ValueBuffer]:
        return [*self._inside.buffers, *(self._edge.buffers if self._adds else ())]

    def enter(self, head: Sequence[Rvalue], first: Rvalue, products: Var) -> None:
        """A block of rows from ``first`` on, of the head at batch and head ``head``; its rows of ``products`` lie
        ``score_stride`` apart."""
        self._head, self._first, self._products = head, first, products

    def begin(self, column: Rvalue) -> None:
        """A pass whose products begin at ``column``."""
        self._column = column

    def find_top(self, i: Rvalue, columns: Rvalue) -> Rvalue:
        """Finish row i of the block, whole panels over ``columns`` columns; a vector whose largest lane is its maximum."""
        k, tile = self._k, self._shape.tile
        assert self._products is not None
        row = k.let("s", self._first + i)
        scores = Offset(self._products, k.let("row", i * self._shape.score_stride))
        span = self._sight.of_row(row)
        seen = columns
        whole_from: Rvalue = index(0)
        if span.end is not None:
            seen = vmax(vmin(seen, span.end - self._column), 0)
        whole = k.let("whole", seen // tile.columns * tile.columns)
        if span.begin is not None:
            start = (vmax(span.begin - self._column, 0) + (tile.columns - 1)) // tile.columns * tile.columns
            whole_from = k.let("whole_from", vmin(start, whole))
        tops = [k.variable("top", Const(f32(tile.lanes), LOWEST)) for _ in range(tile.vectors)]

        def finish(t: Rvalue, left: Rvalue | None) -> None:
            here = (self._inside if left is None else self._edge).at(k)
            for j, top in enumerate(tops):
                at = t + j * tile.lanes
                count = None if left is None else k.let("left", left - j * tile.lanes)
                value = k.let("value", k.load(scores, at, tile.lanes))
                column = self._column + at
                if not self._is_raw:
                    value = here.value([*self._head, row, column], value, tile.lanes, count)
                if count is not None or not self._is_raw:
                    value = k.let("score", self._masked(value, span, column, count))
                    k.store(scores, at, value)
                k.assign(top, vmax(value, top))  # leaves NaN out

        with k.loop("t", whole_from, whole, tile.columns) as t:
            finish(t, None)
        if span.begin is None:
            with k.loop("t", whole, columns, tile.columns) as t:
                finish(t, columns - t)
        else:
            with k.loop("side", 0, 2) as side:  # before what the row sees, and behind it
                end = Select(side, columns, whole_from)
                with k.loop("t", Select(side, whole, index(0)), k.let("until", end), tile.columns) as t:
                    finish(t, columns - t)
        best: Rvalue = tops[0]
        for other in tops[1:]:
            best = vmax(best, other)
        return best

    def _masked(self, value: Rvalue, span: Span, column: Rvalue, count: Rvalue | None) -> Rvalue:
        """``value`` with what is out of sight replaced; ``count`` None: nothing is."""
        if count is None:
            return value
        lanes = max(1, value.type.lanes)
        mask = self._shape.causal
        if mask is not None and not self._adds:
            masked = Const(f32(lanes), mask.masked)
            if span.end is not None:
                seen = self._k.let("seen", span.end - column)
                value = Select(_below(seen, lanes), value, masked)
            if span.begin is not None:
                hidden = self._k.let("hidden", span.begin - column)
                value = Select(_below(hidden, lanes), masked, value)
        return Select(_below(count, lanes), value, Const(f32(lanes), LOWEST))


def _below(count: Rvalue, lanes: int) -> Rvalue:
    """The lanes whose number is less than ``count``."""
    return lt(Iota(i32(lanes)), splat(Convert(i32(1), count), lanes))
