"""The kernel that multiplies f32 rows by panels of 8-bit weights.

    few rows    tile over the integers, widened in registers                   one byte read for each weight, bound by memory
    more        panel -> f32 scratch in L2, then the ordinary tile over it     the widening is paid once, not for every tile

In both a column's scale multiplies its sums, after the last of them. A scratch holds a part of k; where k is longer, the sums of
the parts before wait in a second scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm._choice import product_ns, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._rows import RowBlocks, TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Matrix, Tile, accumulate, fetch_itself
from xyntra_ep.tracea.kernels.cpu.shared.streams import LINE_BYTES
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Convert, Offset, PointerType, Rvalue, Type, Var, f32, index, le

DIRECT = 2  # blocks of rows up to which widening in registers costs less than a panel of f32
UNITS = 32  # as for f32 weights
LEAST_BLOCKS, MOST_BLOCKS = 8, 16  # blocks of rows in a unit: each unit widens its panel, and keeps its sums
SCRATCH_BYTES = 144 << 10  # of one part of a panel, as f32


def multiply(shape: GemmShape, tile: Tile, weights: TempBuffer, scales: TempBuffer, context: BuildContext) -> KernelCall:
    """The call that computes all of ``shape.op`` from what ``_pack.quantise`` made."""
    return _Multiply(shape, tile, context).call(weights, scales)


def part_of_depth(depth: int, tile: Tile) -> int:
    """How much of k one scratch holds: parts of about equal length, multiples of the unrolling."""
    most = SCRATCH_BYTES // (4 * tile.columns)
    parts = max(1, -(-depth // most))
    return max(1, -(-depth // parts // tile.unroll)) * tile.unroll


TileBody = Callable[[FunctionBuilder, Tile, list[Var], list[Var]], None]  # (block, tile, its data, where it stands)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """What a unit covers: blocks [begin, end) of the rows, one panel; where a and the panel start."""

    blocks: RowBlocks
    begin: Rvalue
    end: Rvalue
    a: Rvalue
    w: Rvalue
    batch: list[Rvalue]
    column: Rvalue


class _Multiply:
    def __init__(self, shape: GemmShape, tile: Tile, context: BuildContext) -> None:
        assert isinstance(shape.depth, int)
        self.shape = shape
        self.op = shape.op
        self.tile = tile
        self.depth = shape.depth
        self.part = part_of_depth(self.depth, tile)
        self.caps = context.caps
        self.panels = ceildiv(shape.n, tile.columns)
        a, out = self.op.inputs[0], self.op.output
        k = KernelBuilder(f"xy_gemm_{a.dtype}_int8_{tile.rows}x{tile.columns}_{self.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", a.dtype)
        self.weights = k.buffer("w", DType.I8)
        self.scales = k.buffer("scales", DType.F32)
        self.out = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(k, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1)

    def call(self, weights: TempBuffer, scales: TempBuffer) -> KernelCall:
        chunks = self._units()
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=self.op.inputs[0].value),
                weights,
                scales,
                ValueBuffer(value=self.op.output.value),
                *self.epilogue.buffers,
            ),
            params=params,
            units=product(self.shape.batch_extents) * self.panels * chunks,
            cost_ns=product_ns(self.shape, self.caps) + weight_ns(self.shape, self.caps) // 4,
        )

    # -- the loops over panels and rows

    def _units(self) -> Size:
        """The kernel's body; returns the number of chunks of rows."""
        k, shape = self.k, self.shape
        blocks = divide_rows(k, shape.m, self.tile.rows)
        number = ceildiv(shape.m, self.tile.rows)
        wanted = ceildiv(UNITS, self.panels * product(shape.batch_extents))
        chunks = smax(1, smax(ceildiv(number, MOST_BLOCKS), smin(wanted, ceildiv(number, LEAST_BLOCKS))))
        with k.units() as unit:
            *batch, panel, chunk = k.split(unit, [*shape.batch_extents, self.panels, chunks])
            a_at = address(k, self.op.inputs[0], batch)
            walk = _Walk(
                blocks=blocks,
                begin=k.let("begin", chunk * blocks.number // k.param(chunks)),
                end=k.let("end", (chunk + 1) * blocks.number // k.param(chunks)),
                a=k.let("a_at", a_at),
                w=k.let("w_at", panel * (self.depth * self.tile.columns)),
                batch=batch,
                column=k.let("column", panel * self.tile.columns),
            )
            if isinstance(number, int):
                (self._direct if number <= DIRECT else self._widened)(walk)
            else:
                with k.when(le(blocks.number, DIRECT)):
                    self._direct(walk)
                with k.otherwise():
                    self._widened(walk)
        return chunks

    def _sizes(self, few: bool) -> list[int]:
        """The sizes of blocks where there are at most ``DIRECT`` of them, or where there are more."""
        m, most = self.shape.m, self.tile.rows
        if isinstance(m, int):
            return block_sizes(m, most)
        return list(range(1 if few else (DIRECT * most + 1) // (DIRECT + 1), most + 1))

    def _direct(self, walk: _Walk) -> None:
        k = self.k
        tiles = self._family("direct", few=True, data=("w",), body=self._direct_tile)
        with k.loop("block", walk.begin, walk.end) as block:
            tiles.call(walk.blocks.rows(block), self._arguments(walk, block, index(0), [Offset(self.weights, walk.w)]))

    def _widened(self, walk: _Walk) -> None:
        k, columns = self.k, self.tile.columns
        scratch = k.array("scratch", DType.F32, self.part * columns)
        last = max(0, self.depth - 1) // self.part * self.part
        if not last:
            finish = self._family("finish", few=False, data=("w",), body=self._only_tile)
            self._part(walk, finish, [scratch], index(0), index(self.depth))
            return
        rows = MOST_BLOCKS * self.tile.rows
        sums = k.array("sums", DType.F32, rows * columns)
        with k.loop("zero", 0, rows * columns, self.tile.lanes) as i:
            k.store(sums, i, Const(f32(self.tile.lanes), 0.0))
        add = self._family("add", few=False, data=("w", "sums"), body=self._adding_tile)
        finish = self._family("finish", few=False, data=("w", "sums"), body=self._last_tile)
        with k.loop("first", 0, last, self.part) as first:
            self._part(walk, add, [scratch, sums], first, index(self.part))
        self._part(walk, finish, [scratch, sums], index(last), index(self.depth - last))

    def _part(self, walk: _Walk, tiles: TileFamily, data: list[Var], first: Rvalue, length: Rvalue) -> None:
        """Rows ``first`` to ``first + length`` of the panel, widened, times all rows of the unit."""
        k, tile, scratch = self.k, self.tile, data[0]
        source = k.pointer("part", self.weights, walk.w + first * tile.columns)
        with k.loop("k", 0, length) as step:
            for j in range(0, tile.columns, tile.lanes):
                at = step * tile.columns + j
                k.store(scratch, at, Convert(f32(tile.lanes), k.load(source, at, tile.lanes)))
        bytes_of_part = length * tile.columns
        with k.loop("block", walk.begin, walk.end) as block:
            done, number = block - walk.begin, walk.end - walk.begin
            fetched, fetch = done * bytes_of_part // number, (done + 1) * bytes_of_part // number
            with k.loop("line", k.let("fetched", fetched), k.let("fetch", fetch), LINE_BYTES) as line:
                k.prefetch(source, bytes_of_part + line)  # the part that follows, in this panel or the next
            pointers: list[Rvalue] = [scratch]
            if len(data) > 1:
                row = walk.blocks.start(block) - walk.blocks.start(walk.begin)
                pointers.append(Offset(data[1], row * tile.columns))
            tiles.call(walk.blocks.rows(block), self._arguments(walk, block, first, pointers))

    # -- the tiles

    def _family(self, stem: str, *, few: bool, data: tuple[str, ...], body: TileBody) -> TileFamily:
        """Tiles with the arguments a, ``data``, the batch coordinates, row and column."""
        own = {"w": PointerType(DType.I8) if few else PointerType(DType.F32, True), "sums": PointerType(DType.F32, True)}
        position = [*(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column"]
        arguments: list[tuple[str, Type | PointerType]] = [("a", PointerType(self.op.inputs[0].dtype))]
        arguments += [(name, own[name]) for name in data]
        arguments += [(name, INDEX) for name in position]

        def of_rows(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            tile = Tile(rows=rows, vectors=self.tile.vectors, lanes=self.tile.lanes, unroll=self.tile.unroll)
            split = 1 + len(data)
            body(block, tile, args[:split], args[split:])

        return TileFamily(self.k, f"{stem}_{self.tile.columns}", self._sizes(few), arguments, of_rows)

    def _arguments(self, walk: _Walk, block: Rvalue, first: Rvalue, data: Sequence[Rvalue]) -> list[Rvalue]:
        row = self.k.let("row", walk.blocks.start(block))
        a_at = walk.a + row * self.k.param(self.shape.a_row) + first * self.k.param(self.shape.a_k)
        return [Offset(self.a, a_at), *data, *walk.batch, row, walk.column]

    def _direct_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        ahead = fetch_itself(block, tile, data[1], index(self.depth), self.caps) if tile.lanes > 1 else None
        sums = accumulate(block, tile, self._rows_of_a(data[0]), self._panel(data[1]), index(self.depth), ahead=ahead)
        self._finish(block, tile, sums, at)

    def _only_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        sums = accumulate(block, tile, self._rows_of_a(data[0]), self._panel(data[1]), index(self.depth))
        self._finish(block, tile, sums, at)

    def _adding_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        start = self._panel(data[2])
        sums = accumulate(block, tile, self._rows_of_a(data[0]), self._panel(data[1]), index(self.part), start=start)
        for i, row in enumerate(sums):
            for j, c in enumerate(row):
                block.store(data[2], i * tile.columns + j * tile.lanes, c)

    def _last_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        depth = index((self.depth - 1) % self.part + 1)
        sums = accumulate(block, tile, self._rows_of_a(data[0]), self._panel(data[1]), depth, start=self._panel(data[2]))
        self._finish(block, tile, sums, at)

    def _rows_of_a(self, pointer: Var) -> Matrix:
        return Matrix(pointer=pointer, row=self.k.param(self.shape.a_row), step=self.k.param(self.shape.a_k))

    def _panel(self, pointer: Var) -> Matrix:
        return Matrix(pointer=pointer, row=index(self.tile.columns), step=index(1))

    def _finish(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var]) -> None:
        """Scale, epilogue, store."""
        if self.shape.n % tile.columns == 0:
            self._store(block, tile, sums, at, None)
            return
        left = block.let("left", self.k.param(self.shape.n) - at[-1])
        with block.when(le(tile.columns, left)):
            self._store(block, tile, sums, at, None)
        with block.otherwise():
            self._store(block, tile, sums, at, left)

    def _store(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var], left: Rvalue | None) -> None:
        here = self.epilogue.at(block)
        *batch, first_row, first_column = at
        for j in range(tile.vectors):
            column = first_column + j * tile.lanes
            count = None if left is None else block.let("count", left - j * tile.lanes)
            scale = block.let("scale", block.load(self.scales, column, tile.lanes))
            for i in range(tile.rows):
                point = [*batch, first_row + i, column]
                value = here.value(point, block.let("sum", sums[i][j] * scale), tile.lanes, count)
                here.store(self.op.output, self.out, point, value, count)
