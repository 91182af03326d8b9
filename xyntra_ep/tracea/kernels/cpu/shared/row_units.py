"""How rows become the work units of a CPU kernel, and a row's elements vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax
from xyntra_ep.tracea.kernels.shared.loops.lane_tables import LaneTables
from xyntra_ep.tracea.kernels.shared.loops.nest import Scope
from xyntra_ep.tracea.kernels.shared.loops.plan import Loop
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, index, le, lt, vmax, vmin

BLOCK = 4096  # elements of one work unit: about a microsecond (the runtime joins units to tasks), and 16 KiB of floats


@dataclass(frozen=True, slots=True)
class Units:
    """Rows as work units: ``loops`` per row, ``rows_per_unit`` of them in a unit."""

    loops: tuple[Loop, ...]
    rows_per_unit: Size

    @property
    def rows(self) -> Size:
        return product(loop.extent for loop in self.loops)

    @property
    def count(self) -> Size:
        return ceildiv(self.rows, self.rows_per_unit)


def units_of(loops: Sequence[Loop], elements_per_row: Size, elements: int = BLOCK) -> Units:
    """Units of about so many ``elements``; a function of the shape alone."""
    if isinstance(elements_per_row, int):
        return Units(tuple(loops), max(1, elements // max(1, elements_per_row)))
    return Units(tuple(loops), smax(1, elements // elements_per_row))


def equal_part(k: KernelBuilder, number: Rvalue, whole: Rvalue | int, parts: Size) -> tuple[Rvalue, Rvalue]:
    """Where part ``number`` of ``parts`` equal ones begins and ends."""
    return k.let("begin", number * whole // k.param(parts)), k.let("end", (number + 1) * whole // k.param(parts))


@contextmanager
def rows_of_units(b: KernelBuilder, units: Units) -> Iterator[list[Rvalue]]:
    """The loop over the rows of this call's units; gives the coordinates in ``units.loops``.

    Coordinates are divided out once per unit and then counted up, because a division costs more than a short row.
    """
    extents = [loop.extent for loop in units.loops]
    with b.units() as unit:
        if not extents:
            yield []
            return
        if units.rows_per_unit == 1:
            yield b.split(unit, extents)
            return
        per_unit = b.param(units.rows_per_unit)
        first = b.let("first", unit * per_unit)
        last = b.let("last", vmin(first + per_unit, b.param(units.rows)))
        if len(extents) == 1:
            with b.loop("row", first, last) as row:
                yield [row]
            return
        counters = [b.variable("c", value) for value in b.split(first, extents)]
        with b.loop("row", first, last):
            yield list(counters)
            _count_up(b, counters, extents)


def in_runs(units: Units) -> bool:
    """Whether several rows of a unit may differ along the last axis only."""
    return len(units.loops) > 1 and units.rows_per_unit != 1


@contextmanager
def scopes_of_units(
    b: KernelBuilder, units: Units, scope: Scope, before_run: Callable[[dict[int, Rvalue]], None] | None = None
) -> Iterator[tuple[dict[int, Rvalue], Scope]]:
    """As ``rows_of_units``: the coordinate of each axis in ``units.loops``, and ``scope`` with those axes bound.

    Rows that differ along the last axis only are a loop of their own, a run: what depends on the others is computed outside of
    it, and so is what ``before_run`` writes, given their coordinates.
    """
    loops = units.loops
    if not in_runs(units):
        with rows_of_units(b, units) as coordinates:
            axes = {loop.axis: c for loop, c in zip(loops, coordinates, strict=True)}
            yield axes, scope.bind(axes)
        return
    last, extents = loops[-1], [loop.extent for loop in loops]
    with b.units() as unit:
        per_unit, extent = b.param(units.rows_per_unit), b.param(last.extent)
        first = b.let("first", unit * per_unit)
        count = vmin(per_unit, b.param(units.rows) - first)
        *outer, start = b.split(first, extents)
        counters = [b.variable("c", value) for value in outer]
        stop = b.let("stop", start + count)  # counted on from the first of these loops, whatever its length
        with b.loop("run", 0, (stop + extent - 1) // extent) as run:
            axes = {loop.axis: c for loop, c in zip(loops, counters, strict=False)}
            around = scope.bind(axes)
            if before_run is not None:
                before_run(axes)
            passed = b.let("passed", run * extent)
            with b.loop("row", vmax(start - passed, 0), vmin(extent, stop - passed)) as row:
                yield {**axes, last.axis: row}, around.bind({last.axis: row})
            _count_up(b, counters, extents[:-1])


def _count_up(b: KernelBuilder, counters: Sequence[Var], extents: Sequence[Size]) -> None:
    b.assign(counters[-1], counters[-1] + 1)
    if len(counters) > 1:
        with b.when(le(b.param(extents[-1]), counters[-1])):
            b.assign(counters[-1], 0)
            _count_up(b, counters[:-1], extents[:-1])


@dataclass(frozen=True, slots=True)
class Span:
    """``lanes`` elements at ``at`` (only ``count`` of them, if given)."""

    at: Rvalue
    lanes: int
    count: Rvalue | None = None


def spans(
    b: BlockBuilder,
    begin: Rvalue | int,
    end: Rvalue,
    lanes: int,
    unroll: int,
    masked: bool,
    emit: Callable[[list[Span]], None],
) -> None:
    """Cover [begin, end): loops over ``unroll`` vectors, over one, and then a masked vector or single elements."""
    start = index(begin) if isinstance(begin, int) else begin
    if lanes > 1:
        for width in (lanes * unroll, lanes) if unroll > 1 else (lanes,):
            start = _whole(b, start, end, lanes, width, emit)
        if masked:
            rest = b.let("rest", end - start)
            if rest == index(0):
                return
            if isinstance(rest, Const):
                emit([Span(start, lanes, rest)])
                return
            with b.when(lt(0, rest)):
                emit([Span(start, lanes, rest)])
            return
    if start != end:
        with b.loop("s", start, end) as at:
            emit([Span(at, 1)])


def fill_tables(b: KernelBuilder, tables: LaneTables, outside: Scope, begin: Rvalue, end: Rvalue, lanes: int) -> None:
    """The values of a part of a row from ``begin`` up to ``end``."""

    def fill(group: Sequence[Span]) -> None:
        for span in group:
            tables.fill(outside.lanes(span.at, span.lanes), span.at - begin)

    if tables.reads:
        spans(b, begin, end, lanes, 1, False, fill)
        return
    with b.loop("t", begin, end, lanes) as at:
        fill([Span(at, lanes)])


def _whole(b: BlockBuilder, start: Rvalue, end: Rvalue, lanes: int, width: int, emit: Callable[[list[Span]], None]) -> Rvalue:
    stop = b.let("stop", start + (end - start) // width * width)
    if stop == start:
        return start
    with b.loop("i", start, stop, width) as at:
        emit([Span(at + lanes * k if k else at, lanes) for k in range(width // lanes)])
    return stop
