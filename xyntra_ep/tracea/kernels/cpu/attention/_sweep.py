"""How a block of rows goes over the columns of k: in passes whose scores fit the first-level cache, as far as a row can see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.attention._softmax import RowStates
from xyntra_ep.tracea.kernels.shared.sight import Span, chosen
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, binary, index, le, lt, vmax, vmin


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranges:
    """Of columns, by number, ``at`` gives (begin, end): first those that a block sees, ``seen`` of them, then those that are
    hidden from it, ``hidden``, of which ``some`` says whether any has columns at all."""

    seen: Rvalue
    hidden: Rvalue
    some: Rvalue
    at: Callable[[Rvalue], tuple[Rvalue, Rvalue]]


def ranges_of(k: KernelBuilder, shape: AttentionShape, seen: Span) -> Ranges:
    """Of a block that sees one range."""
    low, high = ends_of(k, shape, seen)
    columns = k.param(shape.columns)
    hidden = [(high, columns)] * (seen.end is not None) + [(index(0), low)] * (seen.begin is not None)
    begins, ends = zip((low, high), *hidden, strict=True)
    some = [lt(begin, end) for begin, end in hidden] or [index(0)]

    def at(j: Rvalue) -> tuple[Rvalue, Rvalue]:
        if j == index(0):
            return low, high
        return k.let("begin", chosen(j, begins)), k.let("end", chosen(j, ends))

    return Ranges(
        seen=index(1),
        hidden=index(len(hidden)),
        some=some[0] if len(some) == 1 else some[0] | some[1],
        at=at,
    )


def ends_of(k: KernelBuilder, shape: AttentionShape, seen: Span) -> tuple[Rvalue, Rvalue]:
    return index(0) if seen.begin is None else seen.begin, k.param(shape.columns) if seen.end is None else seen.end


@dataclass(frozen=True, slots=True)
class Sweep:
    """``large``: whether scores of the columns that are hidden may be anything, where masks are added."""

    k: KernelBuilder
    shape: AttentionShape
    block: Block
    large: Callable[[Ranges], Rvalue] | None = None

    def emit(self, ranges: Ranges) -> None:
        """All passes of a block over what it sees, and where it turns out that the rest may have weight, over that."""
        k, shape, block = self.k, self.shape, self.block
        if not shape.may_see_more:
            if ranges.seen == index(1):
                self._passes(*ranges.at(index(0)))
                return
            with k.loop("range", 0, ranges.seen) as j:
                self._passes(*ranges.at(j), lambda last: lt(j + 1, ranges.seen), binary("eq", j, 0))
            return
        limit = k.variable("limit", ranges.seen)
        with k.loop("range", 0, ranges.seen + ranges.hidden) as j, k.when(lt(j, limit)):

            def more(last: Rvalue) -> Rvalue:
                """Whether another range follows the ``last`` pass: one that is seen, or a hidden one that may have weight."""
                with k.when(last & binary("eq", j + 1, ranges.seen) & ranges.some):
                    weighs = k.variable("weighs", block.states.may_weigh(block.count, shape.masked))
                    if self.large is not None:
                        with k.when(1 - weighs):
                            k.assign(weighs, self.large(ranges))
                    k.assign(limit, limit + weighs * ranges.hidden)
                return lt(j + 1, limit)

            self._passes(*ranges.at(j), more, binary("eq", j, 0))

    def emit_part(self, seen: Span, part: Rvalue, parts: Size) -> None:
        """The passes of one of ``parts`` of nearly the same length of what is ``seen``."""
        k, panel = self.k, self.shape.tile.columns
        low, high = ends_of(k, self.shape, seen)
        number = k.param(parts)
        share = (high - low + (number - 1)) // number
        each = k.let("share", (share + (panel - 1)) // panel * panel)
        begin = k.let("begin", vmin(low + part * each, high))
        self._passes(begin, k.let("end", vmin(begin + each, high)))

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
