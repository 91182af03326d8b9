"""The register tile: rows x vectors accumulators over the whole of k, the inner loop of every matrix product here.

    for k:  load `vectors` vectors of b; for each row: broadcast one element of a, `vectors` fused multiply-adds

In bfloat16 a step of k is a pair: a lane of b holds two of its rows, a pair of a is broadcast, and one instruction does both.

b is read as rows of vectors (a packed panel, or a matrix in place), a only as scalars, so a may have any strides. k runs from
0 to its end in every tile: apart from the phases of very small ones, a sum does not depend on how the rows were divided.
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.builder import BlockBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PairDot
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Pointer, Rvalue, Splat, Var, f32, i32, index

LINE_BYTES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """``unroll``: steps of k in one turn of the loop. ``pairs``: a step is a pair of bfloat16, not one f32."""

    rows: int
    vectors: int
    lanes: int
    unroll: int = 4
    pairs: bool = False

    @property
    def line(self) -> int:
        """Elements of a packed panel in a cache line."""
        return LINE_BYTES // (2 if self.pairs else 4)

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
class NextPanel:
    """What to fetch into L2 meanwhile: ``rate`` lines in each turn of the k loop."""

    pointer: Pointer
    rate: Rvalue


def accumulate(
    block: BlockBuilder,
    tile: Tile,
    a: Matrix,
    b: Matrix,
    depth: Rvalue,
    *,
    count: Rvalue | None = None,
    ahead: NextPanel | None = None,
) -> list[list[Rvalue]]:
    """Emit the loops; returns the sums by row and vector. ``depth``: steps of k; ``count``: b has only so many columns from its
    pointer on."""
    zero = Const(f32(tile.lanes), 0.0)
    sums = [[[block.variable("c", zero) for _ in range(tile.vectors)] for _ in range(tile.rows)] for _ in range(tile.phases)]
    whole = block.let("whole", depth - depth % tile.unroll) if tile.unroll > 1 else depth
    line_step = block.let("stride", ahead.rate * (tile.line // tile.unroll)) if ahead is not None else index(0)
    with block.loop("k", 0, whole, tile.unroll) as k:
        for u in range(tile.unroll):
            _step(block, tile, a, b, sums[u % tile.phases], k + u, count)
        if ahead is not None:
            with block.loop("line", 0, ahead.rate) as line:
                block.prefetch(ahead.pointer, k * line_step + line * tile.line)
    if tile.unroll > 1 and depth % tile.unroll != index(0):
        with block.loop("k", whole, depth) as k:
            _step(block, tile, a, b, sums[0], k, count)
    for phase in range(1, tile.phases):
        for first, more in zip(sums[0], sums[phase], strict=True):
            for c, d in zip(first, more, strict=True):
                block.assign(c, c + d)
    return [list(row) for row in sums[0]]


def _step(block: BlockBuilder, tile: Tile, a: Matrix, b: Matrix, sums: list[list[Var]], k: Rvalue, count: Rvalue | None) -> None:
    lanes = tile.lanes
    if tile.pairs:
        _step_of_pairs(block, tile, a, b, sums, k)
        return
    columns = [
        block.let("w", block.load(b.pointer, k * b.row + j * lanes, lanes, _left(count, j * lanes))) for j in range(tile.vectors)
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


def _left(count: Rvalue | None, used: int) -> Rvalue | None:
    return None if count is None else count - used
