"""Memory is read faster in several streams: a processor's own prefetcher runs some lines ahead in each page that is read in
order, and one page at a time does not keep the memory busy.

Emerald Rapids, one core, weights of BERT at 128 rows from memory while matrix tiles are multiplied: 8.5 GB/s by prefetches of one
line after the other (a prefetch holds one of 16 fill buffers until its line is there), 9.7 GB/s of eight parts side by side. So
it is on Intel's, which alone have these tiles; elsewhere order is better (`Prefetching`).
"""

from __future__ import annotations

from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, PointerType, Rvalue

LINE_BYTES = 64
STREAMS = 8


def elements_of_a_line(pointer: Pointer) -> int:
    kind = pointer.vtype
    assert isinstance(kind, PointerType)
    return LINE_BYTES // kind.dtype.bytes


def fetch_beside(block: BlockBuilder, pointer: Pointer, length: int, first: Rvalue, count: Rvalue) -> None:
    """Prefetch ``count`` cache lines of ``length`` elements at ``pointer``: those with numbers from ``first`` on, where line i is
    the (i / STREAMS)-th of part i mod STREAMS. ``length``: the same number of whole lines in each part."""
    line = elements_of_a_line(pointer)
    part, rest = divmod(length, line * STREAMS)
    assert not rest
    with block.loop("line", 0, count) as i:
        number = block.let("number", first + i)
        block.prefetch(pointer, (number % STREAMS * part + number // STREAMS) * line)


def fetch_burst(block: BlockBuilder, pointer: Pointer, first: Rvalue, stop: Rvalue) -> None:
    """Prefetch the cache lines [first, stop) from ``pointer`` on, into L2."""
    size = elements_of_a_line(pointer)
    with block.loop("line", first, stop) as line:
        block.prefetch(pointer, line * size)
