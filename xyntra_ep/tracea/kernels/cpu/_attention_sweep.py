"""How a block of rows goes over the columns of k: in passes whose scores fit the first-level cache, as far as a row can see."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from xyntra_ep.tracea.kernels.cpu._attention_shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu._attention_softmax import RowStates
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Select, binary, index, le, lt, vmax, vmin


class Block(Protocol):
    """What is done in a pass over the columns [column, column + here) for a block of rows."""

    first: Rvalue  # row
    count: Rvalue  # of rows
    states: RowStates

    def weigh(self, column: Rvalue, here: Rvalue) -> None:
        """Scores, and weights from them."""
        ...

    def sum(self, column: Rvalue, here: Rvalue, last: Rvalue) -> None:
        """Add the weighted sums; in the ``last`` pass, the output."""
        ...


@dataclass(frozen=True, slots=True)
class Sweep:
    k: KernelBuilder
    shape: AttentionShape
    block: Block
    large: Callable[[Rvalue], Rvalue] | None = (
        None  # whether scores of columns from one on may be anything, where masks are added
    )

    def emit(self) -> None:
        """All passes."""
        k, shape, block = self.k, self.shape, self.block
        columns = k.param(shape.columns)
        if shape.causal is None:
            self._passes(index(0), columns)
            return
        # Past the last row's sight nothing is visible; whole panels, so that later passes start at one.
        panel = shape.tile.columns
        reach = vmax(block.first + block.count + k.param(shape.causal.reach - 1), 0)
        sight = k.let("sight", vmin((reach + (panel - 1)) // panel * panel, columns))
        masked = shape.causal.masked
        if shape.causal.limit is not None:
            masked = 0.75 * masked
        elif math.isinf(masked):
            self._passes(index(0), sight)
            return
        wanted = k.variable("wanted", index(1))  # whether there is anything to do in the next part
        with k.loop("part", 0, 2) as part, k.when(wanted):  # in sight, then hidden
            begin, end = k.let("begin", part * sight), k.let("end", Select(part, columns, sight))

            def more(last: Rvalue) -> Rvalue:
                """Whether the hidden part follows the ``last`` pass: it may have weight in some row."""
                hidden = k.let("hidden", lt(part, 1) & lt(sight, columns))
                k.assign(wanted, hidden & block.states.may_weigh(block.count, masked))
                if self.large is not None:
                    with k.when(hidden & last & (1 - wanted)):
                        k.assign(wanted, self.large(sight))
                return wanted

            self._passes(begin, end, more)

    def _passes(self, begin: Rvalue, end: Rvalue, more: Callable[[Rvalue], Rvalue] | None = None) -> None:
        """Columns [begin, end), in passes of equal length, at least one. ``more``: whether other passes follow these."""
        k, shape, block = self.k, self.shape, self.block
        panel, most = shape.tile.columns, shape.pass_columns
        length = k.let("length", end - begin)
        number = k.let("passes", vmax((length + (most - 1)) // most, 1))
        each = k.let("each", vmax((length + (number - 1)) // number + (panel - 1), panel) // panel * panel)
        with k.loop("pass", 0, number) as pass_:
            column = k.let("column", begin + pass_ * each)
            here = k.let("here", vmax(vmin(each, end - column), 0))
            block.weigh(column, here)
            last = k.let("last", le(number, pass_ + 1))
            if more is not None:
                last = k.let("last", last & binary("eq", more(last), 0))
            with k.when(last):
                block.states.finish()
            block.sum(column, here, last)
