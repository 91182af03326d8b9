"""Which loops to write for a domain: their order, which of them are one, and how rows become work units."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, evaluate, known_nonnegative, product, smax, symbols_of
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.kernels.cpu._index import AccessTable, axes_used
from xyntra_ep.tracea.kernels.cpu._index_range import without_axis
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, index, le, lt, vmin

BLOCK = 4096  # elements of one work unit: about a microsecond (the runtime joins units to tasks), and 16 KiB of floats
TYPICAL = 128  # what a cost estimate takes an unknown dimension to be


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


def units_of(loops: Sequence[Loop], elements_per_row: Size) -> Units:
    """Units of about BLOCK elements; a function of the shape alone."""
    if isinstance(elements_per_row, int):
        return Units(tuple(loops), max(1, BLOCK // max(1, elements_per_row)))
    return Units(tuple(loops), smax(1, BLOCK // elements_per_row))


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
    b: KernelBuilder,
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


def _whole(b: KernelBuilder, start: Rvalue, end: Rvalue, lanes: int, width: int, emit: Callable[[list[Span]], None]) -> Rvalue:
    stop = b.let("stop", start + (end - start) // width * width)
    if stop == start:
        return start
    with b.loop("i", start, stop, width) as at:
        emit([Span(at + lanes * k if k else at, lanes) for k in range(width // lanes)])
    return stop


def typical(size: Size) -> int:
    """``size`` with every symbol at a usual value, for estimates."""
    return evaluate(size, dict.fromkeys(symbols_of(size), TYPICAL))
