"""How a block of rows goes over the columns of k: in passes whose scores fit the first-level cache, as far as a row can see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.attention._sight import Span
from xyntra_ep.tracea.kernels.cpu.attention._softmax import RowStates
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

    def sum(self, column: Rvalue, here: Rvalue, first: Rvalue, last: Rvalue) -> None:
        """Add the weighted sums, to nothing in the ``first`` pass; in the ``last`` one, the output."""
        ...


@dataclass(frozen=True, slots=True)
class Sweep:
    """``large``: whether scores of columns within a range may be anything, where masks are added."""

    k: KernelBuilder
    shape: AttentionShape
    block: Block
    large: Callable[[Sequence[tuple[Rvalue, Rvalue]]], Rvalue] | None = None

    def emit(self, seen: Span) -> None:
        """All passes of a block that sees what is ``seen``."""
        k, shape, block = self.k, self.shape, self.block
        columns = k.param(shape.columns)
        if shape.causal is None:
            self._passes(index(0), columns)
            return
        low, high = self._ends(seen)
        if not shape.may_see_more:
            self._passes(low, high)
            return
        masked = shape.causal.masked if shape.causal.limit is None else 0.75 * shape.causal.masked
        hidden = [(high, columns)] * (seen.end is not None) + [(index(0), low)] * (seen.begin is not None)
        some = [lt(begin, end) for begin, end in hidden]
        wanted = k.variable("wanted", index(1))  # whether there is anything to do in the next part
        with k.loop("part", 0, 1 + len(hidden)) as part, k.when(wanted):  # in sight, then what is hidden
            begins, ends = zip((low, high), *hidden, strict=True)
            begin, end = k.let("begin", _chosen(part, begins)), k.let("end", _chosen(part, ends))

            def more(last: Rvalue) -> Rvalue:
                """Whether a hidden part follows the ``last`` pass: it may have weight in some row."""
                in_sight = k.let("hidden", lt(part, 1) & (some[0] if len(some) == 1 else some[0] | some[1]))
                weighs = in_sight & block.states.may_weigh(block.count, masked)
                k.assign(wanted, weighs if len(hidden) == 1 else weighs | binary("eq", part, 1))
                if self.large is not None:
                    with k.when(in_sight & last & (1 - wanted)):
                        k.assign(wanted, self.large(hidden))
                return wanted

            self._passes(begin, end, more, binary("eq", part, 0))

    def emit_part(self, seen: Span, part: Rvalue, parts: Size) -> None:
        """The passes of one of ``parts`` of nearly the same length of what is ``seen``."""
        k, panel = self.k, self.shape.tile.columns
        low, high = self._ends(seen)
        number = k.param(parts)
        share = (high - low + (number - 1)) // number
        each = k.let("share", (share + (panel - 1)) // panel * panel)
        begin = k.let("begin", vmin(low + part * each, high))
        self._passes(begin, k.let("end", vmin(begin + each, high)))

    def _ends(self, seen: Span) -> tuple[Rvalue, Rvalue]:
        return index(0) if seen.begin is None else seen.begin, self.k.param(self.shape.columns) if seen.end is None else seen.end

    def _passes(
        self, begin: Rvalue, end: Rvalue, more: Callable[[Rvalue], Rvalue] | None = None, new: Rvalue | None = None
    ) -> None:
        """Columns [begin, end), in passes of equal length, at least one. ``more``: whether other passes follow these; ``new``:
        whether none were before."""
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
            first = binary("eq", pass_, 0)
            block.sum(column, here, first if new is None else k.let("first", first & new), last)


def _chosen(part: Rvalue, of: Sequence[Rvalue]) -> Rvalue:
    """Of number ``part``."""
    chosen = of[-1]
    for i in range(len(of) - 2, -1, -1):
        chosen = Select(binary("eq", part, i), of[i], chosen)
    return chosen
