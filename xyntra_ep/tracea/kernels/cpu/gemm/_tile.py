"""The register tile: rows x vectors accumulators over the whole of k, the inner loop of every matrix product here.

    for k:  load `vectors` vectors of b; for each row: broadcast one element of a, `vectors` fused multiply-adds

In narrower types a step of k is a word (``Words``): a lane of b holds two or four of its rows, a word of a is broadcast, and one
instruction multiplies them all.

b is read as rows of vectors (a packed panel or a matrix in place; floats, or integers that are widened), a only as scalars, so
a may have any strides. k runs from 0 to its end in every tile: apart from the phases of very small ones, a sum does not depend
on how the rows were divided.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Prefetching
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TILE_ROW_BYTES, ClampedQuadDot, PairDot, QuadDot, ShortDot
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Elem,
    Fma,
    Offset,
    Pointer,
    Rvalue,
    Splat,
    Var,
    f32,
    i32,
    index,
)

Dot = type[PairDot] | type[ShortDot] | type[QuadDot] | type[ClampedQuadDot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How operands lie in words of 32 bits: the types of a and of b in memory, as wide as each other, and what multiplies."""

    name: str
    left: DType
    right: DType
    dot: Dot
    sums: DType = DType.I32

    @property
    def depth(self) -> int:
        """Elements of a word, one after the other along k."""
        return 4 // self.left.bytes

    @property
    def tile_depth(self) -> int:
        """Elements of a row of a in a matrix tile, and of b in a tile's row."""
        return TILE_ROW_BYTES // self.left.bytes


BF16_PAIRS = Words(name="pairs", left=DType.BF16, right=DType.BF16, dot=PairDot, sums=DType.F32)
I16_PAIRS = Words(name="shorts", left=DType.I16, right=DType.I16, dot=ShortDot)
BYTE_QUADS = Words(name="quads", left=DType.U8, right=DType.I8, dot=QuadDot)
CLAMPED_QUADS = Words(name="clamped", left=DType.U8, right=DType.I8, dot=ClampedQuadDot)  # exact with an ``Excess`` beside them

NEAR = 2  # cache lines for each lane: how far ahead a tile fetches in order. 0.5 to 2 KiB are alike with 8 lanes


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """``unroll``: steps of k in one iteration of the loop. ``words``: what a step is, where it is not one f32."""

    rows: int
    vectors: int
    lanes: int
    unroll: int = 4
    words: Words | None = None

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def depth(self) -> int:
        """Of one step: how many elements along k."""
        return 1 if self.words is None else self.words.depth

    @property
    def sums(self) -> DType:
        """In what the products are summed up."""
        return DType.F32 if self.words is None else self.words.sums

    @property
    def phases(self) -> int:
        """Accumulator sets, taken in turn by the steps of k: a tile of few rows would wait for the latency of its sums."""
        phases = 1
        while phases < self.unroll and self.rows * self.vectors * phases < 8:
            phases *= 2
        return phases


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """Where element (i, k) of a, or (k, j) of b, lies: pointer + i * row + k * step. Vectors of b lie along j, at stride 1."""

    pointer: Pointer
    row: Rvalue
    step: Rvalue


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """What to fetch meanwhile, into L2 or, ``locality`` 3, into L1: in each iteration of the k loop ``lines`` cache lines,
    ``apart`` elements from one to the next, ``step`` elements further on for each step of k.

    The number is a literal, since a loop would cut the iteration in pieces: compilers then spill sums (15 % of the time). Where
    fewer lines are wanted the step is shorter, and a line is asked for again, which is nearly free.
    """

    pointer: Pointer
    lines: int
    step: Rvalue
    apart: Rvalue
    locality: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Steps that are in a list: what words of a panel leave out (gemm_integer/_excess.py), or all that are not zero
    (gemm_sparse). ``a``: the rows that these multiply; ``offsets``: how many there are, then where each begins in such a row;
    ``rows``: of b, one after the other."""

    a: Matrix
    offsets: Pointer
    rows: Pointer


def lines_of_iteration(tile: Tile, elements_of_line: int) -> int:
    """The cache lines of a packed panel that one iteration of the k loop uses."""
    return max(1, tile.depth * tile.columns * tile.unroll // elements_of_line)


def fetch_itself(block: BlockBuilder, tile: Tile, pointer: Pointer, steps: Rvalue, caps: Capabilities) -> Ahead | None:
    """For a tile that is bound by memory: what it will use next; None where the processor's own prefetchers do better.

    With far streams: what lies behind the ``steps`` of k in use, which is as large. Each line of an iteration is of a stream of
    its own: a processor's prefetcher goes ahead within a page, and one page at a time does not keep the memory busy (Emerald
    Rapids, one row, 48 columns: 15.4 GB/s, in order 14.4). Else a little ahead in the panel and in the one behind it (Zen 4, one
    row, 16 columns: 25.8 GB/s; 15.0 by far streams, as they and the loads want different pages): into L1 for several rows, which
    wait for L2, too (6 x 4096 x 8192: 6.8 ms, else 10.2), into L2 for one, which does not (7 % faster)."""
    if caps.prefetching is Prefetching.BURST:
        return None
    line = elements_of_a_line(pointer)
    lines = lines_of_iteration(tile, line)
    if caps.prefetching is not Prefetching.FAR:
        near = Offset(pointer, index(NEAR * tile.lanes * line))
        step, locality = index(lines * line // tile.unroll), 2 if tile.rows == 1 else 3
        return Ahead(pointer=near, lines=lines, step=step, apart=index(line), locality=locality)
    stream = block.let("stream", steps // tile.unroll * line)
    return Ahead(pointer=Offset(pointer, stream * lines), lines=lines, step=index(line // tile.unroll), apart=stream)


def accumulate(
    block: BlockBuilder,
    tile: Tile,
    a: Matrix,
    b: Matrix,
    depth: Rvalue,
    *,
    count: Rvalue | None = None,
    ahead: Ahead | None = None,
    start: Matrix | None = None,
    whole_iterations: bool = False,
    listed: Listed | None = None,
) -> list[list[Rvalue]]:
    """Emit the loops; returns the sums by row and vector. ``depth``: steps of k, known to be a multiple of ``unroll`` with
    ``whole_iterations``; ``count``: b has only so many columns from its pointer on; ``start``: what the sums start from (rows and
    columns at stride 1), zero without it; ``listed``: further steps."""
    zero = Const(f32(tile.lanes), 0.0) if tile.sums is DType.F32 else Const(i32(tile.lanes), 0)
    sums = [[[block.variable("c", zero) for _ in range(tile.vectors)] for _ in range(tile.rows)] for _ in range(tile.phases)]
    if start is not None:
        for i, row in enumerate(sums[0]):
            for j, c in enumerate(row):
                block.assign(c, block.load(start.pointer, index(i) * start.row + j * tile.lanes, tile.lanes))
    if depth != index(0):
        _steps(block, tile, a, b, sums, depth, count, ahead, whole_iterations)
    if listed is not None:
        with block.loop("more", 0, block.let("number", block.load(listed.offsets, 0))) as more:
            moved = Offset(listed.a.pointer, block.let("at", block.load(listed.offsets, more + 1)))
            rows = Matrix(pointer=Offset(listed.rows, more * b.row), row=b.row, step=b.step)
            _step(block, tile, replace(listed.a, pointer=moved), rows, sums[0], index(0), None)
    for phase in range(1, tile.phases):
        for row, others in zip(sums[0], sums[phase], strict=True):
            for c, d in zip(row, others, strict=True):
                block.assign(c, c + d)
    return [list(row) for row in sums[0]]


def _steps(
    block: BlockBuilder,
    tile: Tile,
    a: Matrix,
    b: Matrix,
    sums: list[list[list[Var]]],
    depth: Rvalue,
    count: Rvalue | None,
    ahead: Ahead | None,
    whole_iterations: bool,
) -> None:
    """All of them, for ``sums`` in phases."""
    has_rest = tile.unroll > 1 and not whole_iterations
    whole = block.let("whole", depth - depth % tile.unroll) if has_rest else depth
    with block.loop("k", 0, whole, tile.unroll) as k:
        line = block.let("line", k * ahead.step) if ahead is not None else index(0)
        for u in range(tile.unroll):
            _step(block, tile, a, b, sums[u % tile.phases], k + u, count)
            if ahead is not None:
                for i in range(u * ahead.lines // tile.unroll, (u + 1) * ahead.lines // tile.unroll):
                    block.prefetch(ahead.pointer, line + i * ahead.apart, ahead.locality)
    if has_rest and depth % tile.unroll != index(0):
        with block.loop("k", whole, depth) as k:
            _step(block, tile, a, b, sums[0], k, count)


def _step(block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, sums: list[list[Var]], k: Rvalue, count: Rvalue | None) -> None:
    lanes = tile.lanes
    if tile.words is not None:
        _step_of_words(block, tile, tile.words, a, b, sums, k)
        return
    columns = [
        block.let("w", as_float(block.load(b.pointer, k * b.row + j * lanes, lanes, _left(count, j * lanes))))
        for j in range(tile.vectors)
    ]
    for i in range(tile.rows):
        element = block.load(a.pointer, index(i) * a.row + k * a.step, 1)
        x = block.let("x", Splat(f32(lanes), element) if lanes > 1 else element)
        for c, w in zip(sums[i], columns, strict=True):
            block.assign(c, Fma(x, w, c))


def _step_of_words(block: BlockBuilder, tile: Tile, words: Words, a: Matrix, b: Matrix, sums: list[list[Var]], k: Rvalue) -> None:
    lanes = tile.lanes
    starts = (k * b.row + words.depth * j * lanes for j in range(tile.vectors))
    columns = [block.let("w", block.load_words(b.pointer, at, lanes)) for at in starts]
    for i in range(tile.rows):
        word = block.load_words(a.pointer, index(i) * a.row + k * a.step)
        x = block.let("x", Splat(i32(lanes), word) if lanes > 1 else word)
        for c, w in zip(sums[i], columns, strict=True):
            block.assign(c, words.dot(x, w, c))


def as_float(value: Rvalue) -> Rvalue:
    """Integers that are multiplied as floats: weights that are scaled when they are summed, or bytes whose sums are short."""
    return value if value.type.elem is Elem.F32 else Convert(f32(value.type.lanes), value)


def _left(count: Rvalue | None, used: int) -> Rvalue | None:
    return None if count is None else count - used
