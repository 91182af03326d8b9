"""A block of rows done in parts, each by a tile made for exactly its size: few sizes, so there is little to compile.

11 rows are 8 and 3, 5 are 4 and 1. Four rows of two vectors still keep the multipliers busy, and fewer are met in the last
block only; where a block takes its second matrix from a cache, that costs nothing that can be measured.
"""

from __future__ import annotations

from collections.abc import Callable

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, binary, index, le, lt, vmin

Wholes = Callable[[int, Rvalue], None]  # does all rows before the second in parts of the first

STEP = 4  # parts are multiples of it, but for a rest and a whole block


def part_sizes(rows: Size, most: int) -> list[int]:
    """The sizes that blocks of ``most`` rows, the last one shorter, are divided into; the largest first."""
    blocks = {min(most, rows), rows % most or most} if isinstance(rows, int) else set(range(1, most + 1))
    return sorted({part for block in blocks for part in _parts(block, most) if part}, reverse=True)


def _parts(rows: int, most: int) -> tuple[int, int]:
    return (rows, 0) if rows == most else (rows // STEP * STEP, rows % STEP)


def rows_of_block(kernel: KernelBuilder, rows: Size, most: int, block: Rvalue) -> tuple[Rvalue, Rvalue]:
    """(first row of a block, its number of rows)."""
    first = kernel.let("first", block * most)
    return first, kernel.let("count", vmin(kernel.param(rows) - first, most))


def in_parts(kernel: KernelBuilder, sizes: list[int], rows: Rvalue, emit: Callable[[int, Rvalue], None]) -> None:
    """Emit all of a block, whose ``rows`` are in parts of ``sizes``: ``emit(size, row)`` does those from its row ``row`` on."""
    k = kernel
    if len(sizes) == 1:
        emit(sizes[0], index(0))
        return
    done = k.variable("done", index(0))

    def larger(first: int) -> None:
        """The largest part that fits, of the sizes from number ``first`` on."""
        if first == len(sizes) or sizes[first] < STEP:
            return
        with k.when(le(sizes[first], rows)):
            emit(sizes[first], index(0))
            k.assign(done, index(sizes[first]))
        if first + 1 < len(sizes) and sizes[first + 1] >= STEP:
            with k.otherwise():
                larger(first + 1)

    larger(0)
    left = k.let("left", rows - done)
    for size in sizes:
        if size < STEP:
            with k.when(binary("eq", left, size)):
                emit(size, done)


def in_groups(
    k: KernelBuilder, most: int, sizes: list[int], rows: Rvalue, emit: Callable[[int, Rvalue], None], wholes: Wholes | None = None
) -> None:
    """As ``in_parts``, of a block that has several times the rows of the largest tile."""
    if sizes[0] < most:
        in_parts(k, sizes, rows, emit)
        return
    end = k.let("end", rows - rows % most)
    if wholes is not None:
        wholes(most, end)
    else:
        with k.loop("row", 0, end, most) as row:
            emit(most, row)
    rest = [size for size in sizes if size < most]
    if rest:
        with k.when(lt(end, rows)):
            in_parts(k, rest, k.let("rest", rows - end), lambda size, row: emit(size, end + row))
