"""The kernel that multiplies, for every way in which b can be laid out.

A unit is one panel of b's columns and a chunk of the row blocks, in one batch. Units of consecutive numbers walk the panels
in order, so what one fetches ahead the next one uses. How many there are follows from the shape alone, and a sum is never
divided between units: results are the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.cpu._gemm_columns import PanelLayout
from xyntra_ep.tracea.kernels.cpu._gemm_finish import SharedFinish, is_long
from xyntra_ep.tracea.kernels.cpu._gemm_left import LeftRows, rows_in_place
from xyntra_ep.tracea.kernels.cpu._gemm_parts import BLOCKS, parts_of
from xyntra_ep.tracea.kernels.cpu._gemm_rows import RowBlocks, TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu._gemm_shape import GemmShape, product_ns, weight_ns
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Tile, elements_of_a_line, lines_of_a_turn
from xyntra_ep.tracea.kernels.cpu._gemm_tile_code import TileCode
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Offset, Rvalue, Select, index, lt, vmax, vmin

UNITS = 32  # enough for 16 threads to end at about the same time
ROW_BLOCKS = 4  # a unit of fewer does not pay for reading its panel
UNIT_NS = 10_000  # what a unit should take at least where the panels stay in the cache


def multiply(
    shape: GemmShape, tile: Tile, b: PanelLayout, context: BuildContext, pairs_of_a: LeftRows | None = None
) -> KernelCall:
    """The call that computes all of ``shape.op`` from packed or readable panels. ``pairs_of_a``: its rows for a tile of pairs, of
    an even number of elements."""
    return _Multiply(shape, tile, b, context, pairs_of_a).call()


class _Multiply:
    def __init__(self, shape: GemmShape, tile: Tile, b: PanelLayout, context: BuildContext, pairs_of_a: LeftRows | None) -> None:
        self.shape = shape
        self.rows_of_a = pairs_of_a or rows_in_place(shape)
        self.steps = ceildiv(shape.depth, 2) if tile.pairs else shape.depth
        self.op = shape.op
        self.tile = tile
        self.b = b
        self.caps = context.caps
        self.panels = b.panels.number
        self.rows_first = _fits(shape, self.caps.l2_bytes // 2)
        self.fetch = b.fetch and tile.lanes > 1
        self.parts = parts_of(self.steps, tile, self.caps.l2_bytes) if self.fetch and not self.rows_first else None
        a, out = self.op.inputs[0], self.op.output
        stem = "xy_gemm_pairs" if tile.pairs else f"xy_gemm_{a.dtype}"
        k = KernelBuilder(f"{stem}_{tile.rows}x{tile.columns}_{self.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", DType.BF16 if tile.pairs else a.dtype)
        self.weights = k.buffer("w", b.dtype)
        result = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(
            k, context.program, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1, rough=is_rough(self.op)
        )
        self.code = TileCode(
            kernel=k,
            shape=shape,
            layout=b,
            a_row=self.rows_of_a.row,
            steps=self.steps,
            parts=self.parts,
            fetch=self.fetch,
            isa=self.caps.isa,
            out=result,
            epilogue=self.epilogue,
            shared_finish=SharedFinish(k, self.epilogue, self.op.output, result) if is_long(self.epilogue) else None,
        )

    def call(self) -> KernelCall:
        chunks = self._units()
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(
                self.rows_of_a.buffer,
                self.b.buffer,
                ValueBuffer(value=self.op.output.value),
                *self.epilogue.buffers,
            ),
            params=params,
            units=product(self.shape.batch_extents) * self.panels * chunks,
            cost_ns=smax(product_ns(self.shape, self.caps, self.b.panels.columns), weight_ns(self.shape, self.caps)),
        )

    # -- the loops over panels and rows

    def _units(self) -> Size:
        """The kernel's body; returns the number of chunks of rows."""
        k, shape, tile = self.k, self.shape, self.tile
        blocks = divide_rows(k, shape.m, tile.rows)
        number = ceildiv(shape.m, tile.rows)
        chunks, length = self._chunks()
        together = blocks.number if length is None else k.let("together", vmin(blocks.number, length))
        with k.units() as unit:
            order = (chunks, self.panels) if self.rows_first else (self.panels, chunks)
            *batch, outer, inner = k.split(unit, [*shape.batch_extents, *order])
            chunk, panel = (outer, inner) if self.rows_first else (inner, outer)
            if length is None:
                begin = k.let("begin", chunk * blocks.number // k.param(chunks))
                end = k.let("end", (chunk + 1) * blocks.number // k.param(chunks))
            else:
                begin = k.let("begin", chunk * length)
                end = k.let("end", vmin(begin + length, blocks.number))
            column = k.let("column", self.b.panels.start(panel))
            b_at = k.let("b_at", self._batch_offset(self.b.offset, self.b.batch_strides, batch) + column * k.param(self.b.column))
            a_at = k.let("a_at", self._batch_offset(self.rows_of_a.offset, self.rows_of_a.batch_strides, batch))

            def rows_of_unit(sizes: list[int], among_others: bool) -> None:
                self.b.panels.for_each_width(k, panel, lambda vectors: rows_of_panel(vectors, sizes, among_others))

            def rows_of_panel(vectors: int, sizes: list[int], among_others: bool) -> None:
                tile = replace(self.tile, vectors=vectors)
                tiles = self.code.family(tile, sizes, among_others)
                shares = self.fetch and among_others
                if shares and self.parts is not None:
                    self._rows_in_parts(tiles, tile, blocks, (begin, end), (a_at, b_at), [*batch, column])
                    return
                rate = self._rate(tile, together) if shares else index(0)
                with k.loop("block", begin, end) as block:
                    row = k.let("row", blocks.start(block))
                    args: list[Rvalue] = [
                        Offset(self.a, a_at + row * k.param(self.rows_of_a.row)),
                        Offset(self.weights, b_at),
                    ]
                    if shares:
                        args += self._share(tile, b_at, block, chunk, rate)
                    tiles.call(blocks.rows(block), [*args, *batch, row, column])

            if not self.fetch or isinstance(number, int):
                rows_of_unit(block_sizes(shape.m, tile.rows), number != 1)
            else:
                with k.when(lt(1, blocks.number)):
                    rows_of_unit(list(range((tile.rows + 1) // 2, tile.rows + 1)), True)
                with k.otherwise():
                    rows_of_unit(list(range(1, tile.rows + 1)), False)
        return chunks

    def _rows_in_parts(
        self,
        tiles: TileFamily,
        tile: Tile,
        blocks: RowBlocks,
        unit: tuple[Rvalue, Rvalue],
        at: tuple[Rvalue, Rvalue],
        position: list[Rvalue],
    ) -> None:
        """The blocks of a ``unit``, part after part of k; ``at``: where its rows of a and its panel start."""
        k, parts = self.k, self.parts
        assert parts is not None
        scratch = k.array("partial", DType.F32, BLOCKS * tile.rows * tile.columns)
        *batch, column = position
        with k.loop("some", *unit, BLOCKS) as some:
            stop = k.let("stop", vmin(some + BLOCKS, unit[1]))
            rate = self._rate(tile, stop - some)
            with k.loop("part", 0, parts.number) as part:
                first = k.let("first", part * parts.length)
                last = k.let("last", vmin(first + parts.length, k.param(self.steps)))
                panel = k.let("panel", at[1] + first * self.code.row_of_panel(tile))
                with k.loop("block", some, stop) as block:
                    row = k.let("row", blocks.start(block))
                    args: list[Rvalue] = [
                        Offset(self.a, at[0] + row * k.param(self.rows_of_a.row) + first * self.code.step_of_a(tile)),
                        Offset(self.weights, panel),
                        *self._share(tile, panel, block - some, index(0), rate, parts.length),
                        Offset(scratch, (block - some) * (tile.rows * tile.columns)),
                        first,
                        last,
                    ]
                    tiles.call(blocks.rows(block), [*args, *batch, row, column])

    def _batch_offset(self, offset: Size, strides: tuple[Size, ...], batch: list[Rvalue]) -> Rvalue:
        total = self.k.param(offset)
        for stride, coordinate in zip(strides, batch, strict=True):
            total = total + coordinate * self.k.param(stride)
        return total

    def _rate(self, tile: Tile, blocks: Rvalue) -> Rvalue:
        """Lines to fetch in each turn of the k loop, so that ``blocks`` of rows together fetch one panel once."""
        lines = lines_of_a_turn(tile, elements_of_a_line(self.weights))
        return self.k.let("rate", (blocks + (lines - 1)) // vmax(blocks, 1))

    def _share(
        self, tile: Tile, b_at: Rvalue, block: Rvalue, chunk: Rvalue, rate: Rvalue, steps: Size | None = None
    ) -> list[Rvalue]:
        """Where the part of the next panel starts that ``block`` fetches, and how far it goes on with each step of k. ``steps``:
        of what follows, if that is a part of a panel.

        The blocks before may have fetched all of it already; and where rows come first, the first chunk brings in what then
        stays. The fetches then go to the panel in use.
        """
        k, unroll = self.k, tile.unroll
        steps = self.steps if steps is None else steps
        step = k.param(steps) * self.code.row_of_panel(tile)  # the size of what follows too, or a vector more
        pace = k.let("pace", rate * (elements_of_a_line(self.weights) // unroll))
        done = k.let("done", block * pace * k.param(steps // unroll * unroll))
        missing = lt(done, step)
        if self.rows_first:
            missing = missing * lt(chunk, 1)
        return [Offset(self.weights, k.let("following", b_at + Select(missing, step + done, index(0)))), pace]

    def _chunks(self) -> tuple[Size, int | None]:
        """(chunks of row blocks, blocks in each; None when the blocks are shared out evenly)."""
        shape, tile = self.shape, self.tile
        blocks = ceildiv(shape.m, tile.rows)
        if self.rows_first:
            # b stays in L2, so the rows of a chunk should too, and the result's rows near L1: a panel's edges share their lines
            # with the next one's. And a chunk should be worth a unit.
            depth, width = shape.depth, shape.n
            assert isinstance(depth, int)
            assert isinstance(width, int)
            tile_ns = 2 * tile.rows * tile.columns * depth / self.caps.fma_gflops + 10
            of_a = self.caps.l2_bytes // 4 // max(1, tile.rows * depth * 4)
            of_result = self.caps.l2_bytes // 16 // max(1, tile.rows * width * 4)
            length = max(ROW_BLOCKS, min(int(UNIT_NS / tile_ns), of_a, of_result))
            return ceildiv(blocks, length), length
        wanted = ceildiv(UNITS if self.parts is None else UNITS // 2, self.panels * product(shape.batch_extents))
        return smax(1, smin(wanted, ceildiv(blocks, ROW_BLOCKS))), None


def _fits(shape: GemmShape, limit_bytes: int) -> bool:
    return isinstance(shape.depth, int) and isinstance(shape.n, int) and 4 * shape.depth * shape.n <= limit_bytes
