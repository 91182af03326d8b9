"""The kernel that multiplies, for every way in which b can be laid out.

A unit is one panel of b's columns and a chunk of the row blocks, in one batch. Units of consecutive numbers walk the panels
in order, so what one fetches ahead the next one uses. How many there are follows from the shape alone, and a sum is never
divided between units: results are the same for any number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.given_size import decided_by
from xyntra_ep.tracea.kernels.cpu.gemm._choice import FEW_BLOCKS, product_ns, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._columns import ExcessCode, ExcessPanels, ListedCode, ListedPanels, PanelLayout
from xyntra_ep.tracea.kernels.cpu.gemm._finish import SharedFinish, is_long
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows, rows_in_place
from xyntra_ep.tracea.kernels.cpu.gemm._pack import pack_panel
from xyntra_ep.tracea.kernels.cpu.gemm._parts import BLOCKS, one_part, parts_of
from xyntra_ep.tracea.kernels.cpu.gemm._rows import RowBlocks, TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile, lines_of_iteration
from xyntra_ep.tracea.kernels.cpu.gemm._tile_code import TileCode
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import Const, Offset, Pointer, Rvalue, Select, f32, index, le, lt, vmax, vmin

UNITS = 32  # enough for 16 threads to end at about the same time
ROW_BLOCKS = 4  # a unit of fewer does not pay for reading its panel
UNIT_NS = 10_000  # what a unit should take at least where the panels stay in the cache


def multiply(
    shape: GemmShape,
    tile: Tile,
    b: PanelLayout,
    context: BuildContext,
    words_of_a: LeftRows | None = None,
    listed: ExcessPanels | ListedPanels | None = None,
    second: SecondProduct | None = None,
) -> KernelCall:
    """The call that computes all of ``shape.op`` from packed or readable panels. ``words_of_a``: its rows for a tile of words, of
    whole words; ``listed``: what clamped words leave out, or the only steps there are; ``second``: of f32, what the sums go on
    with."""
    return _Multiply(shape, tile, b, context, words_of_a, listed, second).call()


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondProduct:
    """Another product in the same sums: ``rows`` with so many neighbouring ``steps`` times panels like those of b, of f32."""

    rows: LeftRows
    b: PanelLayout
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """Blocks of rows [begin, end) of one panel. ``a``, ``b``: where these start; ``together``: how many blocks fetch together."""

    begin: Rvalue
    end: Rvalue
    a: Rvalue
    b: Rvalue
    batch: list[Rvalue]
    chunk: Rvalue
    column: Rvalue
    together: Rvalue


class _Multiply:
    def __init__(
        self,
        shape: GemmShape,
        tile: Tile,
        b: PanelLayout,
        context: BuildContext,
        words_of_a: LeftRows | None,
        listed: ExcessPanels | ListedPanels | None,
        second: SecondProduct | None,
    ) -> None:
        self.shape = shape
        self.rows_of_a = words_of_a or rows_in_place(shape)
        self.steps = ceildiv(shape.depth, tile.depth) if tile.words else shape.depth
        if isinstance(listed, ListedPanels):
            self.steps = 0
        self.op = shape.op
        self.tile = tile
        self.copied = b.copied
        # What a unit copies it reads as a packed panel.
        self.b = replace(b, dtype=DType.F32, row=None, padded=True) if b.copied else b
        self.caps = context.caps
        self.panels = b.panels.number
        is_exact = tile.sums is DType.I32
        self.rows_first = not b.copied and _fits(shape, b.dtype.bytes if is_exact else DType.F32.bytes, self.caps.l2_bytes // 2)
        self.fetch = b.fetch and tile.lanes > 1
        # Of integers nothing is gained by shorter chains of additions.
        self.parts = None if is_exact else parts_of(self.steps, tile.lanes if b.copied else tile.unroll)
        if second is not None and self.parts is None:
            assert isinstance(self.steps, int)
            self.parts = one_part(self.steps, tile.unroll)
        a, out = self.op.inputs[0], self.op.output
        stem = f"xy_gemm_{a.dtype if tile.words is None else tile.words.name}"
        k = KernelBuilder(f"{stem}_{tile.rows}x{tile.columns}_{self.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", a.dtype if tile.words is None else tile.words.left)
        self.weights = k.buffer("w", b.dtype)
        self.listed = listed
        listed_code = None
        if listed is not None:
            listed_code = ListedCode(k, listed) if isinstance(listed, ListedPanels) else ExcessCode(k, listed, tile)
        self.second = second
        if second is not None:
            self.left, self.right = k.buffer("left", DType.F32), k.buffer("right", DType.F32)
        result = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(
            k, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1, rough=is_rough(self.op)
        )
        self.code = TileCode(
            kernel=k,
            shape=shape,
            layout=self.b,
            a_row=self.rows_of_a.row,
            steps=self.steps,
            parts=self.parts,
            fetch=self.fetch,
            caps=self.caps,
            out=result,
            epilogue=self.epilogue,
            shared_finish=SharedFinish(k, self.epilogue, self.op.output, result)
            if is_long(self.epilogue) or self.parts is not None
            else None,
            listed=listed_code,
        )
        self.second_code = None
        if second is not None:
            parts = one_part(second.steps, tile.unroll)
            self.second_code = replace(
                self.code, layout=second.b, a_row=second.rows.row, steps=second.steps, parts=parts, fetch=False
            )

    def call(self) -> KernelCall:
        chunks = self._units()
        arithmetic = product_ns(self.shape, self.caps, self.b.panels.columns, self.tile.words)
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(
                self.rows_of_a.buffer,
                self.b.buffer,
                *(() if self.listed is None else self.listed.buffers),
                *(() if self.second is None else (self.second.rows.buffer, self.second.b.buffer)),
                ValueBuffer(value=self.op.output.value),
                *self.epilogue.buffers,
            ),
            params=params,
            units=product(self.shape.batch_extents) * self.panels * chunks,
            cost_ns=smax(arithmetic, weight_ns(self.shape, self.caps, self.b.dtype)),
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

            here = _Unit(begin=begin, end=end, a=a_at, b=b_at, batch=batch, chunk=chunk, column=column, together=together)

            def rows_of_unit(sizes: list[int], among_others: bool) -> None:
                def rows_of_panel(vectors: int) -> None:
                    self._rows(replace(tile, vectors=vectors), blocks, here, sizes, among_others)

                self.b.panels.for_each_width(k, panel, rows_of_panel)

            if not self.fetch or isinstance(number, int):
                rows_of_unit(block_sizes(shape.m, tile.rows), number != 1)
            else:
                with k.when(lt(1, blocks.number)):
                    rows_of_unit(list(range((tile.rows + 1) // 2, tile.rows + 1)), True)
                with k.otherwise():
                    rows_of_unit(list(range(1, tile.rows + 1)), False)
        return chunks

    def _rows(self, tile: Tile, blocks: RowBlocks, unit: _Unit, sizes: list[int], among_others: bool) -> None:
        """The blocks of rows of a unit."""
        k, parts = self.k, self.parts
        tiles = self.code.family(tile, sizes, among_others)
        more = None if self.second_code is None else self.second_code.family(tile, sizes, among_others, "second")
        shares = self.fetch and among_others

        def call(
            block: Rvalue, number: Rvalue, first: Rvalue, steps: Size, rate: Rvalue, partial: Sequence[Rvalue]
        ) -> list[Rvalue]:
            """A tile from the step ``first`` on; ``number``: of the block, among those that fetch together. Where it is."""
            row = k.let("row", blocks.start(block))
            at = [*unit.batch, row, unit.column]
            w = unit.b + first * self.code.row_of_b(tile)
            fetched = self._share(tile, w, number, unit.chunk, rate, steps) if shares else []
            a = unit.a + row * k.param(self.rows_of_a.row) + first * self.code.step_of_a(tile)
            pointers = [Offset(self.a, a), panel or Offset(self.weights, w)]
            tiles.call(blocks.rows(block), [*pointers, *fetched, *partial, *self.code.position(tile, at)])
            return at

        panel = self._scratch(tile) if self.copied else None
        if parts is None:
            if panel is not None:
                self._copy(tile, unit, panel, index(0), k.param(self.steps))
            rate = self._rate(tile, unit.together) if shares else index(0)
            with k.loop("block", unit.begin, unit.end) as block:
                call(block, block, index(0), self.steps, rate, [])
            return
        size = tile.rows * tile.columns
        most = 2 * BLOCKS if self.copied else BLOCKS  # each time through the parts copies them
        scratch = k.array("partial", DType.F32, (most if among_others else 1) * size)
        with k.loop("some", unit.begin, unit.end, most) as some:
            stop = k.let("stop", vmin(some + most, unit.end))
            rate = self._rate(tile, stop - some) if shares else index(0)
            with k.loop("at", 0, k.let("size", (stop - some) * size), tile.lanes) as at:
                k.store(scratch, at, Const(f32(tile.lanes), 0.0))
            with k.loop("part", 0, parts.number) as part:
                first = k.let("first", part * parts.length)
                last = k.let("last", vmin(first + parts.length, k.param(self.steps)))
                if panel is not None:
                    self._copy(tile, unit, panel, first, last)
                with k.loop("block", some, stop) as block:
                    sums = k.pointer("sums", scratch, (block - some) * size)
                    partial = [sums, k.let("steps", last - first)]
                    place = call(block, block - some, first, parts.length, rate, partial)
                    with k.when(le(k.param(self.steps), last)):
                        if more is not None:
                            self._go_on(tile, more, unit, blocks.rows(block), sums, place)
                        self.code.finish(tile, sums, blocks.rows(block), place)

    def _go_on(self, tile: Tile, tiles: TileFamily, unit: _Unit, rows: Rvalue, sums: Pointer, at: Sequence[Rvalue]) -> None:
        """The second product of a block of ``rows`` at (batch..., row, column) ``at``, onto its ``sums``."""
        k, second, code = self.k, self.second, self.second_code
        assert second is not None
        assert code is not None
        left = second.rows.start(k, unit.batch, at[-2])
        right = self._batch_offset(second.b.offset, second.b.batch_strides, unit.batch) + unit.column * k.param(second.b.column)
        pointers = [Offset(self.left, left), Offset(self.right, right)]
        tiles.call(rows, [*pointers, sums, k.param(second.steps), *code.position(tile, at)])

    def _scratch(self, tile: Tile) -> Offset:
        """Where a part of a panel is copied to."""
        steps = self.steps if self.parts is None else self.parts.length
        assert isinstance(steps, int)
        return Offset(self.k.array("panel", DType.F32, max(1, steps) * tile.columns), index(0))

    def _copy(self, tile: Tile, unit: _Unit, panel: Offset, first: Rvalue, last: Rvalue) -> None:
        """Steps [first, last) of a unit's panel."""
        k, b = self.k, self.shape.op.inputs[1]
        row, column = b.strides[-2:]
        pack_panel(
            k,
            source=k.pointer("from", self.weights, unit.b + first * k.param(row)),
            strides=(row, column),
            depth=k.let("depth", last - first),
            valid=k.let("valid", k.param(self.shape.n) - unit.column),
            columns=tile.columns,
            lanes=tile.lanes,
            panel=panel,
        )

    def _batch_offset(self, offset: Size, strides: tuple[Size, ...], batch: list[Rvalue]) -> Rvalue:
        total = self.k.param(offset)
        for stride, coordinate in zip(strides, batch, strict=True):
            total = total + coordinate * self.k.param(stride)
        return total

    def _rate(self, tile: Tile, blocks: Rvalue) -> Rvalue:
        """Lines to fetch in each iteration of the k loop, so that ``blocks`` of rows together fetch one panel once."""
        lines = lines_of_iteration(tile, elements_of_a_line(self.weights))
        return self.k.let("rate", (blocks + (lines - 1)) // vmax(blocks, 1))

    def _share(self, tile: Tile, w: Rvalue, block: Rvalue, chunk: Rvalue, rate: Rvalue, steps: Size) -> list[Rvalue]:
        """Where what ``block`` fetches starts, and how far each stream of it goes on with each step of k. What follows is as
        large as the ``steps`` from ``w`` on that are in use: the next ones, or the next panel's.

        Where bursts are wanted a few blocks fetch nothing: the processor does.

        The blocks before may have fetched all of it already; and where rows come first, the first chunk brings in what then
        stays. The fetches then go to the panel in use.
        """
        k, unroll, streams = self.k, tile.unroll, self.code.streams(tile)
        step = k.param(steps) * self.code.row_of_panel(tile)  # the size of what follows too, or a vector more
        pace = k.let("pace", rate * (elements_of_a_line(self.weights) // (unroll * streams)))
        done = k.let("done", block * pace * k.param(steps // unroll * unroll))
        missing = lt(done * streams, step)
        if self.rows_first:
            missing = missing * lt(chunk, 1)
        following = Select(missing, step + done, index(0))
        if self.caps.prefetching is Prefetching.BURST:
            few = k.let("few", le(lines_of_iteration(tile, elements_of_a_line(self.weights)), rate * FEW_BLOCKS))
            following = Select(few, index(0), following)
            pace = k.let("pace", Select(few, index(0), pace))
        return [Offset(self.weights, k.let("following", w + following)), pace]

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
            length = decided_by("blocks", max(ROW_BLOCKS, min(int(UNIT_NS / tile_ns), of_a, of_result)), depth)
            return ceildiv(blocks, length), length
        panel = 4 * self.steps * tile.columns
        is_large = isinstance(panel, int) and panel > self.caps.l2_bytes // 6  # a second chunk would read it from L3 again
        wanted = ceildiv(UNITS // 2 if is_large else UNITS, self.panels * product(shape.batch_extents))
        return smax(1, smin(wanted, ceildiv(blocks, BLOCKS if self.copied else ROW_BLOCKS))), None


def _fits(shape: GemmShape, element_bytes: int, limit_bytes: int) -> bool:
    return isinstance(shape.depth, int) and isinstance(shape.n, int) and element_bytes * shape.depth * shape.n <= limit_bytes
