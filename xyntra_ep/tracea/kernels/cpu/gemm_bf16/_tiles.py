"""The kernel that multiplies in matrix tiles: blocks of at most 32 x 32 of the result in four tile registers.

    for k step of 16 words:  load two tiles of b (16 words x 16 each), for each of two tiles of a (16 x 16 words): load it,
                             two products

so each load serves one product, which is what keeps the unit for products busy. a is loaded from its rows, b from panels of words
of 16 columns. The sums go through a scratch in L1, from where the epilogue takes them as vectors: row by row between the steps of
the next block, because the vector units have nothing else to do then.

All blocks have the same height, because a tile's shape is configured once for all. The last one starts as many rows earlier as
it would reach beyond the end, and leaves to the block before what both of them have computed.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tiles_peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import ROW_BLOCKS, UNITS
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily, TileFunction
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Words
from xyntra_ep.tracea.kernels.cpu.shared.row_units import equal_part
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line, fetch_beside
from xyntra_ep.tracea.kernels.cpu.shared.waiting_sums import WaitingSums
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.shared.words import as_words
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import TILE_ROW_BYTES, TILE_ROWS, PairDot, QuadDot, TileDot, TileZero
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Offset,
    PointerType,
    Rvalue,
    Select,
    Type,
    Var,
    index,
    le,
    lt,
    vmax,
    vmin,
)

TILE_COLUMNS = TILE_ROW_BYTES // 4  # sums in a row of a tile
COLUMNS = 2 * TILE_COLUMNS
BLOCK_ROWS = 2 * TILE_ROWS
_SUMS_OF_BLOCK = BLOCK_ROWS * COLUMNS
_SUMS, _A, _B = ((0, 1), (2, 3)), (4, 5), (6, 7)  # tile registers


def multiply_tiles(
    shape: GemmShape, words: Words, left: LeftRows, depth: int, weights: TempBuffer, chunk_bytes: int, context: BuildContext
) -> KernelCall:
    """The call that computes all of ``shape.op``. ``depth``: of rows of a and of panels, whole steps; ``chunk_bytes`` of a should
    stay in L2 while the panels pass by."""
    return _Tiles(shape, words, left, depth, weights, chunk_bytes, context).call()


class _Tiles:
    def __init__(
        self,
        shape: GemmShape,
        words: Words,
        left: LeftRows,
        depth: int,
        weights: TempBuffer,
        chunk_bytes: int,
        context: BuildContext,
    ) -> None:
        self.shape = shape
        self.op = shape.op
        self.left = left
        self.weights = weights
        assert words.dot is PairDot or words.dot is QuadDot
        self.words, self.dot = words, words.dot
        self.depth = depth
        self.steps = depth // words.tile_depth
        self.lanes = context.caps.lanes
        self.caps = context.caps
        self.panels = ceildiv(shape.n, COLUMNS)
        self.step = COLUMNS * self.depth
        self.longest_chunk = max(1, chunk_bytes // (BLOCK_ROWS * depth * words.left.bytes))
        fits = isinstance(shape.n, int) and words.right.bytes * depth * shape.n <= context.caps.l2_bytes // 2
        self.fetch = not fits
        out = self.op.output
        k = KernelBuilder(f"xy_gemm_tiles_{words.name}_{out.dtype}_{context.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", words.left)
        self.w = k.buffer("w", words.right)
        self.out = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(
            k, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1, rough=is_rough(self.op)
        )

    def call(self) -> KernelCall:
        chunks, groups = self._units()
        kernel, params = self.k.finish()
        arithmetic = 2 * self.shape.m * self.shape.n * self.depth * product(self.shape.batch_extents)
        return KernelCall(
            kernel=kernel,
            buffers=(self.left.buffer, self.weights, ValueBuffer(value=self.op.output.value), *self.epilogue.buffers),
            params=params,
            units=product(self.shape.batch_extents) * chunks * groups,
            cost_ns=arithmetic // max(1, int(tiles_peak_of(self.words, self.caps)))
            + self.panels * self.words.right.bytes * self.step // max(1, int(self.caps.dram_gbs)),
        )

    # -- the loops over chunks, panels and blocks

    def _units(self) -> tuple[Size, Size]:
        """The kernel's body; returns the number of chunks of rows and of groups of panels."""
        k, shape = self.k, self.shape
        m = k.param(shape.m)
        number = k.let("blocks", (m + (BLOCK_ROWS - 1)) // BLOCK_ROWS)
        some = k.let("some", vmax(number, 1))  # no rows, no blocks: the division must not trap
        height = k.let("height", vmax((m + (some - 1)) // some, 1))
        upper, lower = self._halves(height)
        tiles, last = self._blocks(), self._last()
        chunks, groups = self._chunks()
        rate = self._rate(number, chunks) if self.fetch else index(0)
        wide = TILE_ROW_BYTES
        of_tiles = [*[(upper, wide)] * 2, *[(lower, wide)] * 2, (upper, wide), (lower, wide), *[(index(TILE_ROWS), wide)] * 2]
        scratch = k.array("scratch", self.words.sums, 2 * _SUMS_OF_BLOCK)
        ready = WaitingSums(k, scratch, _SUMS_OF_BLOCK, len(shape.batch) + 4)
        with k.tiles(of_tiles), k.units() as unit:
            *batch, chunk, group = k.split(unit, [*shape.batch_extents, chunks, groups])
            begin, end = equal_part(k, chunk, number, chunks)
            first, stop = equal_part(k, group, k.param(self.panels), groups)
            with k.loop("block", begin, end) as block:
                row = k.let("row", block * height)
                start = k.let("start", vmin(row, m - height))
                a_at = k.let("a_at", self.left.start(k, batch, start))
                with k.loop("panel", first, stop) as panel:
                    w_at = k.let("w_at", panel * self.step)
                    args: list[Rvalue] = [Offset(self.a, a_at), Offset(self.w, w_at)]
                    if self.fetch:
                        args += [Offset(self.w, w_at + self.step), (block - begin) * rate * self.steps, rate]
                    tiles.call(self._tile_rows(height), [*args, upper, ready.free, *ready.arguments])
                    column = k.let("column", panel * COLUMNS)
                    ready.replace([row - start, vmin(height, m - row), *batch, row, column])
        last.call(k, ready.arguments)
        return chunks, groups

    def _halves(self, height: Rvalue) -> tuple[Rvalue, Rvalue]:
        """Rows of the upper and the lower tiles; of the lower ones 1 when there are none, because it must be something."""
        k, half = self.k, (height + 1) // 2
        if self._always_two():
            return half, k.let("lower", height - half)
        two = lt(TILE_ROWS, height)
        upper = k.let("upper", Select(two, half, height))
        lower = k.let("lower", Select(two, height - upper, index(1)))
        return upper, lower

    def _always_two(self) -> bool:
        m = self.shape.m
        return isinstance(m, int) and m > TILE_ROWS

    def _tile_rows(self, height: Rvalue) -> Rvalue:
        return index(1) + lt(TILE_ROWS, height)

    def _chunks(self) -> tuple[Size, Size]:
        """(chunks of row blocks, groups of panels): as many as keep a in L2, and enough for all threads.

        Panels from memory are read once a chunk: a unit has one. Where all stay in L2 it has few rows and many panels, so that
        whole rows of the result come one after another."""
        blocks, batches = ceildiv(self.shape.m, BLOCK_ROWS), product(self.shape.batch_extents)
        if not self.fetch:
            chunks = smax(1, smin(UNITS, blocks))
            return chunks, smin(self.panels, ceildiv(UNITS, chunks * smax(1, batches)))
        for_threads = smin(ceildiv(UNITS, self.panels * batches), ceildiv(blocks, ROW_BLOCKS))
        return smax(1, smax(for_threads, ceildiv(blocks, self.longest_chunk))), self.panels

    def _rate(self, number: Rvalue, chunks: Size) -> Rvalue:
        """Lines to fetch in each step of k, so that the blocks of a chunk fetch the next panel once."""
        least = self.k.let("least", vmax(number // self.k.param(chunks), 1))
        lines = COLUMNS * self.words.tile_depth // elements_of_a_line(self.w)
        return self.k.let("rate", (least + (lines - 1)) // least)

    # -- the block

    def _blocks(self) -> TileFamily:
        m = self.shape.m
        of_b = PointerType(self.words.right)
        arguments: list[tuple[str, Type | PointerType]] = [("a", PointerType(self.words.left)), ("w", of_b)]
        if self.fetch:
            arguments += [("following", of_b), ("fetched", INDEX), ("rate", INDEX)]
        arguments += [("upper", INDEX), ("sums", self._scratch), *self._of_ready()]
        sizes = [1, 2] if not isinstance(m, int) else [2 if self._always_two() else 1]
        return TileFamily(self.k, "block", sizes, arguments, self._block)

    @property
    def _scratch(self) -> PointerType:
        return PointerType(self.words.sums, writable=True)

    def _of_ready(self) -> list[tuple[str, Type | PointerType]]:
        names = ["skip", "rows", *(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column"]
        return [("ready", self._scratch), *((name, INDEX) for name in names)]

    def _last(self) -> TileFunction:
        """The epilogue of a block that none follows."""
        b = FunctionBuilder("last")
        args = [b.argument(name, kind) for name, kind in self._of_ready()]
        self._finish(b, args, index(0), args[2])
        captured = b.capture()
        return TileFunction(self.k.function(b.finish()), captured)

    def _block(self, block: FunctionBuilder, tile_rows: int, args: list[Var]) -> None:
        a, w = args[:2]
        ahead = args[2:5] if self.fetch else None
        upper, sums, *ready = args[5:] if self.fetch else args[2:]
        for i in range(tile_rows):
            for register in _SUMS[i]:
                block.emit(TileZero(register))
        row, tile_depth = self.k.param(self.left.row), self.words.tile_depth
        rows_in_step = -(-BLOCK_ROWS // self.steps)
        with block.loop("step", 0, self.steps) as step:
            for i in range(tile_rows):
                block.tile_load(_A[i], a, upper * row * i + step * tile_depth, row)
                for j, register in enumerate(_SUMS[i]):
                    if i == 0:
                        block.tile_load(_B[j], w, step * (tile_depth * TILE_COLUMNS) + j * TILE_COLUMNS * self.depth, tile_depth)
                    block.emit(TileDot(register, _A[i], _B[j], self.dot))
            if ahead is not None:
                fetch_beside(block, ahead[0], self.step, ahead[1] + step * ahead[2], ahead[2])
            rows = ready[2]
            first = block.let("first", vmin(step * rows_in_step, rows))
            self._finish(block, ready, first, block.let("next", vmin(first + rows_in_step, rows)))
        for i in range(tile_rows):
            for j, register in enumerate(_SUMS[i]):
                block.tile_store(register, sums, upper * (i * COLUMNS) + j * TILE_COLUMNS, COLUMNS)

    def _finish(self, block: FunctionBuilder, ready: Sequence[Var], begin: Rvalue, end: Rvalue) -> None:
        """Rows [begin, end) of the block that is ready."""
        column = ready[-1]
        if self.shape.n % COLUMNS == 0:
            self._rows(block, ready, begin, end, None)
            return
        left = block.let("left", self.k.param(self.shape.n) - column)
        with block.when(le(COLUMNS, left)):
            self._rows(block, ready, begin, end, None)
        with block.otherwise():
            self._rows(block, ready, begin, end, left)

    def _rows(self, block: FunctionBuilder, ready: Sequence[Var], begin: Rvalue, end: Rvalue, left: Rvalue | None) -> None:
        sums, skip, _, *batch, first_row, first_column = ready
        with block.loop("i", begin, end) as i:
            here = self.epilogue.at(block)
            row = block.let("row", first_row + i)
            for j in range(0, COLUMNS, self.lanes):
                count = None if left is None else block.let("count", left - j)
                point = [*batch, row, first_column + j]
                acc = block.let("acc", as_words(block.load(sums, (skip + i) * COLUMNS + j, self.lanes)))
                here.store(self.op.output, self.out, point, here.value(point, acc, self.lanes, count), count)
