"""The register tile: rows x vectors accumulators over the whole of k, the inner loop of every matrix product here.

    for k:  load `vectors` vectors of b; for each row: broadcast one element of a, `vectors` fused multiply-adds

In bfloat16 a step of k is a pair: a lane of b holds two of its rows, a pair of a is broadcast, and one instruction does both.

b is read as rows of vectors (a packed panel or a matrix in place; floats, or integers that are widened), a only as scalars, so
a may have any strides. k runs from 0 to its end in every tile: apart from the phases of very small ones, a sum does not depend
on how the rows were divided.

A rounding error grows with the length of its chain of additions, so deep sums are sums of sums: after about ``CHAIN`` products
the accumulators are added to totals in L1. On BERT that costs 1 % and halves the difference to ONNX Runtime, whose chains are as
long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PairDot
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Convert,
    Elem,
    Fma,
    Offset,
    Pointer,
    PointerType,
    Rvalue,
    Splat,
    Var,
    f32,
    i32,
    index,
    lt,
    vmin,
)

LINE_BYTES = 64
CHAIN = 256  # products that are added up in one go
AHEAD_BYTES = 32 << 10  # how far ahead a tile fetches for itself: nearer, memory's latency shows (measured: 4 to 32 KiB)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """``unroll``: steps of k in one turn of the loop. ``pairs``: a step is a pair of bfloat16, not one f32."""

    rows: int
    vectors: int
    lanes: int
    unroll: int = 4
    pairs: bool = False

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

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
    """What to fetch into L2 meanwhile: in each turn of the k loop ``lines`` cache lines, ``step`` elements further on for each
    step of k.

    The number is a literal, since a loop would cut the turn in pieces: compilers then spill sums (15 % of the time). Where fewer
    lines are wanted the step is shorter, and a line is asked for again, which is nearly free.
    """

    pointer: Pointer
    lines: int
    step: Rvalue


def elements_of_a_line(pointer: Pointer) -> int:
    kind = pointer.vtype
    assert isinstance(kind, PointerType)
    return LINE_BYTES // kind.dtype.bytes


def lines_of_a_turn(tile: Tile, elements_of_line: int) -> int:
    """The cache lines of a packed panel that one turn of the k loop uses."""
    return max(1, (2 if tile.pairs else 1) * tile.columns * tile.unroll // elements_of_line)


def fetch_itself(tile: Tile, pointer: Pointer) -> Ahead:
    """For a tile that is bound by memory: what it will itself need, far enough ahead."""
    line = elements_of_a_line(pointer)
    lines = lines_of_a_turn(tile, line)
    far = Offset(pointer, index(AHEAD_BYTES * line // LINE_BYTES))
    return Ahead(pointer=far, lines=lines, step=index(lines * line // tile.unroll))


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
    most: int | None = None,
) -> list[list[Rvalue]]:
    """Emit the loops; returns the sums by row and vector. ``depth``: steps of k; ``count``: b has only so many columns from its
    pointer on; ``start``: what the sums start from (rows and columns at stride 1), zero without it; ``most``: a bound of
    ``depth`` where that is known at run time only."""
    zero = Const(f32(tile.lanes), 0.0)
    sums = [[[block.variable("c", zero) for _ in range(tile.vectors)] for _ in range(tile.rows)] for _ in range(tile.phases)]
    if start is not None:
        for i, row in enumerate(sums[0]):
            for j, c in enumerate(row):
                block.assign(c, block.load(start.pointer, index(i) * start.row + j * tile.lanes, tile.lanes))
    whole = block.let("whole", depth - depth % tile.unroll) if tile.unroll > 1 else depth

    def turns(begin: Rvalue, end: Rvalue) -> None:
        with block.loop("k", begin, end, tile.unroll) as k:
            line = block.let("line", k * ahead.step) if ahead is not None else index(0)
            for u in range(tile.unroll):
                _step(block, tile, a, b, sums[u % tile.phases], k + u, count)
                if ahead is not None:
                    for i in range(u * ahead.lines // tile.unroll, (u + 1) * ahead.lines // tile.unroll):
                        block.prefetch(ahead.pointer, line + i * elements_of_a_line(ahead.pointer))

    length = _chain_length(tile, int(depth.value) if isinstance(depth, Const) else most)
    totals = None
    if length is None:
        turns(index(0), whole)
    else:
        totals = _Totals(block, tile, sums)
        with block.loop("first", 0, whole, length) as first:
            last = block.let("last", vmin(first + length, whole))
            turns(first, last)
            with block.when(lt(last, whole)):  # the last chain stays in registers
                totals.add()
    if tile.unroll > 1 and depth % tile.unroll != index(0):
        with block.loop("k", whole, depth) as k:
            _step(block, tile, a, b, sums[0], k, count)
    if totals is not None:
        totals.finish()
    for phase in range(1, tile.phases):
        for row, more in zip(sums[0], sums[phase], strict=True):
            for c, d in zip(row, more, strict=True):
                block.assign(c, c + d)
    return [list(row) for row in sums[0]]


class _Totals:
    """Sums of the chains before, in memory."""

    def __init__(self, block: BlockBuilder, tile: Tile, sums: Sequence[Sequence[Sequence[Var]]]) -> None:
        self._block, self._lanes = block, tile.lanes
        self._sums = [c for phase in sums for row in phase for c in row]
        self._array = block.array("total", DType.F32, len(self._sums) * tile.lanes)
        for i in range(len(self._sums)):
            block.store(self._array, i * tile.lanes, Const(f32(tile.lanes), 0.0))

    def add(self) -> None:
        """totals += sums; sums = 0."""
        for i, c in enumerate(self._sums):
            at = i * self._lanes
            self._block.store(self._array, at, self._block.load(self._array, at, self._lanes) + c)
            self._block.assign(c, Const(f32(self._lanes), 0.0))

    def finish(self) -> None:
        """sums += totals."""
        for i, c in enumerate(self._sums):
            self._block.assign(c, c + self._block.load(self._array, i * self._lanes, self._lanes))


def _chain_length(tile: Tile, depth: int | None) -> int | None:
    """Steps of k in a chain, whole turns of the loop; None for a single one. Of bfloat16 the operands' rounding is larger."""
    number = 1 if tile.pairs or depth is None else round(depth / (CHAIN * tile.phases))
    return None if depth is None or number < 2 else -(-depth // number // tile.unroll) * tile.unroll


def _step(block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, sums: list[list[Var]], k: Rvalue, count: Rvalue | None) -> None:
    lanes = tile.lanes
    if tile.pairs:
        _step_of_pairs(block, tile, a, b, sums, k)
        return
    columns = [
        block.let("w", _as_float(block.load(b.pointer, k * b.row + j * lanes, lanes, _left(count, j * lanes))))
        for j in range(tile.vectors)
    ]
    for i in range(tile.rows):
        element = block.load(a.pointer, index(i) * a.row + k * a.step, 1)
        x = block.let("x", Splat(f32(lanes), element) if lanes > 1 else element)
        for c, w in zip(sums[i], columns, strict=True):
            block.assign(c, Fma(x, w, c))


def _step_of_pairs(block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, sums: list[list[Var]], k: Rvalue) -> None:
    lanes = tile.lanes
    columns = [block.let("w", block.load_pairs(b.pointer, k * b.row + 2 * j * lanes, lanes)) for j in range(tile.vectors)]
    for i in range(tile.rows):
        x = block.let("x", Splat(i32(lanes), block.load_pairs(a.pointer, index(i) * a.row + k * a.step)))
        for c, w in zip(sums[i], columns, strict=True):
            block.assign(c, PairDot(x, w, c))


def _as_float(value: Rvalue) -> Rvalue:
    """Weights may be stored as integers, to be scaled when they are summed."""
    return value if value.type.elem is Elem.F32 else Convert(f32(value.type.lanes), value)


def _left(count: Rvalue | None, used: int) -> Rvalue | None:
    return None if count is None else count - used
