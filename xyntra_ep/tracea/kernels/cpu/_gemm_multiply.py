"""The kernel that multiplies, for every way in which b can be laid out.

A unit is one panel of b's columns and a chunk of the row blocks, in one batch. Units of consecutive numbers walk the panels
in order, so what one fetches ahead the next one uses. How many there are follows from the shape alone, and a sum is never
divided between units: results are the same for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.cpu._gemm_columns import Panels
from xyntra_ep.tracea.kernels.cpu._gemm_left import LeftRows, rows_in_place
from xyntra_ep.tracea.kernels.cpu._gemm_rows import TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu._gemm_shape import GemmShape, product_ns, weight_ns
from xyntra_ep.tracea.kernels.cpu._gemm_tile import (
    Ahead,
    Matrix,
    Tile,
    accumulate,
    elements_of_a_line,
    fetch_itself,
    lines_of_a_turn,
)
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Isa
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

UNITS = 32  # enough for 16 threads to end at about the same time
ROW_BLOCKS = 4  # a unit of fewer does not pay for reading its panel
SHARES = 3  # a tile fetches at most this part of a panel while it uses one: more gets in the way of its own loads
UNIT_NS = 10_000  # what a unit should take at least where the panels stay in the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLayout:
    """Where the panel of columns from c on starts: offset + batch . batch_strides + c * column; rows of b follow ``row`` apart,
    those of a packed panel (None) one after the other.

    ``padded``: a panel is readable to its last column, beyond the end of b. ``fetch``: it may come from memory, so the one
    before fetches it.
    """

    panels: Panels
    buffer: ValueBuffer | TempBuffer
    dtype: DType
    offset: Size
    batch_strides: tuple[Size, ...]
    column: Size
    row: Size | None
    padded: bool
    fetch: bool


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
        a, out = self.op.inputs[0], self.op.output
        stem = "xy_gemm_pairs" if tile.pairs else f"xy_gemm_{a.dtype}"
        k = KernelBuilder(f"{stem}_{tile.rows}x{tile.columns}_{self.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", DType.BF16 if tile.pairs else a.dtype)
        self.weights = k.buffer("w", b.dtype)
        self.out = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(
            k, context.program, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1, rough=is_rough(self.op)
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
                tiles = self._tiles(tile, sizes, among_others)
                shares = self.fetch and among_others
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

    def _batch_offset(self, offset: Size, strides: tuple[Size, ...], batch: list[Rvalue]) -> Rvalue:
        total = self.k.param(offset)
        for stride, coordinate in zip(strides, batch, strict=True):
            total = total + coordinate * self.k.param(stride)
        return total

    def _rate(self, tile: Tile, blocks: Rvalue) -> Rvalue:
        """Lines to fetch in each turn of the k loop, so that ``blocks`` of rows together fetch one panel once."""
        lines = lines_of_a_turn(tile, elements_of_a_line(self.weights))
        return self.k.let("rate", (blocks + (lines - 1)) // vmax(blocks, 1))

    def _share(self, tile: Tile, b_at: Rvalue, block: Rvalue, chunk: Rvalue, rate: Rvalue) -> list[Rvalue]:
        """Where the part of the next panel starts that ``block`` fetches, and how far it goes on with each step of k.

        The blocks before may have fetched all of it already; and where rows come first, the first chunk brings in what then
        stays. The fetches then go to the panel in use.
        """
        k, unroll = self.k, tile.unroll
        step = k.param(self.b.column) * tile.columns  # the next panel's size too, or a vector more
        pace = k.let("pace", rate * (elements_of_a_line(self.weights) // unroll))
        done = k.let("done", block * pace * k.param(self.steps // unroll * unroll))
        missing = lt(done, step)
        if self.rows_first:
            missing = missing * lt(chunk, 1)
        return [Offset(self.weights, k.let("following", b_at + Select(missing, step + done, index(0)))), pace]

    def _chunks(self) -> tuple[Size, int | None]:
        """(chunks of row blocks, blocks in each; None when the blocks are shared out evenly)."""
        shape, tile = self.shape, self.tile
        blocks = ceildiv(shape.m, tile.rows)
        if self.rows_first:
            # b stays in L2, so the rows of a chunk should too, of a and of the result; and a chunk should be worth a unit.
            depth, width = shape.depth, shape.n
            assert isinstance(depth, int)
            assert isinstance(width, int)
            tile_ns = 2 * tile.rows * tile.columns * depth / self.caps.fma_gflops + 10
            fitting = self.caps.l2_bytes // 4 // max(1, tile.rows * (depth + width) * 4)
            length = max(ROW_BLOCKS, min(int(UNIT_NS / tile_ns), fitting))
            return ceildiv(blocks, length), length
        wanted = ceildiv(UNITS, self.panels * product(shape.batch_extents))
        return smax(1, smin(wanted, ceildiv(blocks, ROW_BLOCKS))), None

    # -- the tile

    def _tiles(self, wide: Tile, sizes: list[int], among_others: bool) -> TileFamily:
        """``among_others``: the tiles of several blocks of rows, which together fetch the next panel."""
        arguments: list[tuple[str, Type | PointerType]] = [
            ("a", PointerType(DType.BF16 if self.tile.pairs else self.op.inputs[0].dtype)),
            ("w", PointerType(self.b.dtype)),
        ]
        shares = self.fetch and among_others
        if shares:
            arguments += [("following", PointerType(self.b.dtype)), ("pace", INDEX)]
        position = [*(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column"]

        def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            tile = replace(wide, rows=rows)
            ahead = None
            if shares:
                lines = max(1, lines_of_a_turn(tile, elements_of_a_line(args[1])) // SHARES)
                ahead = Ahead(pointer=args[2], lines=lines, step=args[3])
            elif self.fetch:
                ahead = fetch_itself(tile, args[1])
            self._tile(block, tile, args[:2], ahead, args[4:] if shares else args[2:])

        return TileFamily(
            self.k,
            f"{'tile' if among_others else 'alone'}_{wide.columns}",
            sizes,
            [*arguments, *((name, INDEX) for name in position)],
            body,
        )

    def _tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], ahead: Ahead | None, at: list[Var]) -> None:
        a, w = data
        param = self.k.param
        step = index(2) if tile.pairs else param(self.shape.a_k)
        a_matrix = Matrix(pointer=a, row=param(self.rows_of_a.row), step=step)
        packed = tile.columns * (2 if tile.pairs else 1)
        b_matrix = Matrix(pointer=w, row=index(packed) if self.b.row is None else param(self.b.row), step=index(1))

        def whole(count: Rvalue | None) -> None:
            in_loop = None if self.b.padded else count
            sums = accumulate(block, tile, a_matrix, b_matrix, param(self.steps), count=in_loop, ahead=ahead)
            self._finish(block, tile, sums, at, count)

        if self.b.panels.is_inside(tile.vectors, self.shape.n):
            whole(None)
            return
        left = block.let("left", param(self.shape.n) - at[-1])
        if self._masks_are_free():
            whole(left)
            return
        with block.when(le(tile.columns, left)):
            whole(None)
        with block.otherwise():
            whole(left)

    def _masks_are_free(self) -> bool:
        stored = {self.op.output.dtype, *(() if self.b.padded else (self.b.dtype,))}
        return self.caps.isa is Isa.AVX512 and stored <= {DType.F32, DType.BF16}

    def _finish(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var], left: Rvalue | None) -> None:
        here = self.epilogue.at(block)
        *batch, first_row, first_column = at
        rows = [first_row + i for i in range(tile.rows)]
        # Column by column: what depends on the column alone (a bias) is loaded once and needs one register.
        for j in range(tile.vectors):
            column = first_column + j * tile.lanes
            count = None if left is None else block.let("count", left - j * tile.lanes)
            for i, row in enumerate(rows):
                point = [*batch, row, column]
                value = here.value(point, sums[i][j], tile.lanes, count)
                here.store(self.op.output, self.out, point, value, count)


def _fits(shape: GemmShape, limit_bytes: int) -> bool:
    return isinstance(shape.depth, int) and isinstance(shape.n, int) and 4 * shape.depth * shape.n <= limit_bytes
