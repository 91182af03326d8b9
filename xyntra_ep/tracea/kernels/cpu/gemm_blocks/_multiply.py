"""The kernel that multiplies f32 rows by panels of integers that are scaled in blocks.

    few rows    tile over the integers, widened in registers                   a byte read for two weights, bound by memory
    more        panel -> f32 scratch in L2, then the ordinary tile over it     the widening is paid once, not for every tile
                in bfloat16: pairs of weights in the scratch, and a in rows of bfloat16 (AVX512_BF16 where it is fast)
                in int8: bytes in the scratch, and a in bytes with a scale for each block of a row (AVX2 and more)

A scratch holds a part of k, of whole blocks; where k is longer, the sums of the parts before wait in a second scratch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import BlockGemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm._rows import RowBlocks, TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, Matrix, Tile
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._bytes import BytePanels
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._one_row import OneRow
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._panels import FloatPanels, Panels
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._tiles import FewRows
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import GROUP, PackedWeights, Panel
from xyntra_ep.tracea.kernels.cpu.shared.streams import elements_of_a_line
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Column, Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Const, Offset, PointerType, Rvalue, Type, Var, f32, index, le

DIRECT = 2  # blocks of rows up to which widening in registers costs less than a panel of f32
UNITS = 32  # as for f32 weights
LEAST_BLOCKS, MOST_BLOCKS = 8, 16  # blocks of rows in a unit: each unit widens its panel, and keeps its sums
SCRATCH_BYTES = 144 << 10  # of one part of a panel, as floats


def multiply(
    shape: GemmShape, weights: PackedWeights, buffers: tuple[TempBuffer, ...], cost_ns: Size, context: BuildContext
) -> list[KernelCall]:
    """The calls that compute all of ``weights.op`` from what ``_pack.pack`` made."""
    return _Multiply(shape, weights, context).calls(buffers, cost_ns)


def multiplies_pairs(op: BlockGemm, caps: Capabilities) -> bool:
    """Whether many rows are multiplied in bfloat16."""
    return op.product is Product.BF16 and caps.avx512_bf16


def multiplies_bytes(op: BlockGemm, caps: Capabilities) -> bool:
    """Whether many rows are multiplied in bytes."""
    return op.product is Product.INT8 and op.bits == 4 and caps.multiplies_nibbles


def part_of_depth(weights: PackedWeights, dtype: DType = DType.F32) -> int:
    """How much of k one scratch of ``dtype`` holds: parts of about equal length, of whole blocks."""
    block = weights.op.block
    most = max(1, SCRATCH_BYTES // (dtype.bytes * weights.tile.columns * block))
    parts = max(1, -(-weights.blocks // most))
    return max(1, -(-weights.blocks // parts)) * block


TileBody = Callable[[FunctionBuilder, Tile, list[Var], list[Var]], None]  # (block, tile, its data, where it stands)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Walk:
    """What a unit covers: blocks [begin, end) of the rows, one panel; where a starts."""

    blocks: RowBlocks
    begin: Rvalue
    end: Rvalue
    a: Rvalue
    panel: Panel
    batch: list[Rvalue]
    column: Rvalue


class _Multiply:
    def __init__(self, shape: GemmShape, weights: PackedWeights, context: BuildContext) -> None:
        self.shape = shape
        self.weights = weights
        self.op = weights.op
        self.tile = weights.tile
        self.depth = weights.depth
        self.caps = context.caps
        few = isinstance(shape.m, int) and -(-shape.m // self.tile.rows) <= DIRECT
        words = BF16_PAIRS if multiplies_pairs(self.op, self.caps) and not few else None
        in_bytes = multiplies_bytes(self.op, self.caps) and not few
        self.strict = context.strict
        a, out = self.op.inputs[0], self.op.output
        form = f"int{self.op.bits}x{self.op.block}{'_bytes' if in_bytes else '' if words is None else '_pairs'}"
        k = KernelBuilder(f"xy_gemm_{a.dtype}_{form}_{self.tile.rows}x{self.tile.columns}_{self.caps.isa}")
        k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {self.op.epilogue}")
        self.k = k
        self.a = k.buffer("a", a.dtype)
        self.panels: Panels = (
            BytePanels(k, shape, weights, context) if in_bytes else FloatPanels(k, shape, weights, self.a, words, context)
        )
        self.part = part_of_depth(weights, self.panels.dtype)
        self.integers = k.buffer("w", weights.dtype)
        self.scales = k.buffer("scales", weights.scale_dtype)
        self.zeros = None if weights.zero_dtype is None else k.buffer("zeros", weights.zero_dtype)
        self.out = k.buffer("out", out.dtype, writable=True)
        groups = shape.groups
        self.epilogue = Epilogue(k, self.op.epilogue, self.op.inputs, self.op.domain, groups, len(groups) - 1)

    def calls(self, buffers: tuple[TempBuffer, ...], cost_ns: Size) -> list[KernelCall]:
        chunks = self._units()
        kernel, params = self.k.finish()
        a, out = (ValueBuffer(value=operand.value) for operand in (self.op.inputs[0], self.op.output))
        run = KernelCall(
            kernel=kernel,
            buffers=(a, *self.panels.buffers, *buffers, out, *self.epilogue.buffers),
            params=params,
            units=product(self.shape.batch_extents) * self.weights.panels * chunks,
            cost_ns=cost_ns,
        )
        return [*self.panels.calls, run]

    # -- the loops over panels and rows

    def _units(self) -> Size:
        """The kernel's body; returns the number of chunks of rows."""
        k, shape, panels = self.k, self.shape, self.weights.panels
        blocks = divide_rows(k, shape.m, self.tile.rows)
        number = ceildiv(shape.m, self.tile.rows)
        wanted = ceildiv(UNITS, panels * product(shape.batch_extents))
        chunks = smax(1, smax(ceildiv(number, MOST_BLOCKS), smin(wanted, ceildiv(number, LEAST_BLOCKS))))
        with k.units() as unit:
            *batch, panel, chunk = k.split(unit, [*shape.batch_extents, panels, chunks])
            walk = _Walk(
                blocks=blocks,
                begin=k.let("begin", chunk * blocks.number // k.param(chunks)),
                end=k.let("end", (chunk + 1) * blocks.number // k.param(chunks)),
                a=k.let("a_at", address(k, self.op.inputs[0], batch)),
                panel=self._panel(panel),
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

    def _panel(self, number: Rvalue) -> Panel:
        k, weights = self.k, self.weights
        factors = k.let("factors", number * weights.factors_of_panel)
        return Panel(
            integers=k.pointer("panel", self.integers, number * weights.of_panel),
            scales=Offset(self.scales, factors),
            zeros=None if self.zeros is None else Offset(self.zeros, factors),
        )

    def _sizes(self, few: bool) -> list[int]:
        """The sizes of blocks where there are at most ``DIRECT`` of them, or where there are more."""
        m, most = self.shape.m, self.tile.rows
        if isinstance(m, int):
            return block_sizes(m, most)
        return list(range(1 if few else (DIRECT * most + 1) // (DIRECT + 1), most + 1))

    def _direct(self, walk: _Walk) -> None:
        k, panel = self.k, walk.panel
        own = [("w", self.weights.dtype), ("scales", self.weights.scale_dtype)]
        data: list[Rvalue] = [panel.integers, panel.scales]
        if panel.zeros is not None and self.weights.zero_dtype is not None:
            own.append(("zeros", self.weights.zero_dtype))
            data.append(panel.zeros)
        given = [(name, PointerType(dtype)) for name, dtype in own]
        given.insert(0, ("a", PointerType(self.op.inputs[0].dtype)))
        tiles = self._family("direct", few=True, data=given, body=self._direct_tile)
        with k.loop("rows", walk.begin, walk.end) as block:
            row = k.let("row", walk.blocks.start(block))
            a_at = Offset(self.a, walk.a + row * k.param(self.shape.a_row))
            tiles.call(walk.blocks.rows(block), [a_at, *data, *walk.batch, row, walk.column])

    def _widened(self, walk: _Walk) -> None:
        k, columns = self.k, self.tile.columns
        scratch = k.array("scratch", self.panels.dtype, self.part * columns)
        last = max(0, self.depth - 1) // self.part * self.part
        panel, floats = PointerType(self.panels.dtype, writable=True), PointerType(DType.F32, writable=True)
        if not last:
            alone = [*self.panels.arguments, ("w", panel)]
            finish = self._family("finish", few=False, data=alone, body=self._only_tile)
            self._part(walk, finish, [scratch], index(0), self.depth)
            return
        rows = MOST_BLOCKS * self.tile.rows
        sums = k.array("sums", DType.F32, rows * columns)
        with k.loop("zero", 0, rows * columns, self.tile.lanes) as i:
            k.store(sums, i, Const(f32(self.tile.lanes), 0.0))
        both = [*self.panels.arguments, ("w", panel), ("sums", floats)]
        add = self._family("add", few=False, data=both, body=self._adding_tile)
        finish = self._family("finish", few=False, data=both, body=self._last_tile)
        with k.loop("first", 0, last, self.part) as first:
            self._part(walk, add, [scratch, sums], first, self.part)
        self._part(walk, finish, [scratch, sums], index(last), self.depth - last)

    def _part(self, walk: _Walk, tiles: TileFamily, data: list[Var], first: Rvalue, length: int) -> None:
        """Steps ``first`` to ``first + length`` of the panel, widened, times all rows of the unit."""
        k, weights, op = self.k, self.weights, self.op
        blocks = -(-length // op.block)
        self.panels.widen(walk.panel, data[0], k.let("first_block", first // index(op.block)), blocks)
        size, line = blocks * weights.groups_of_block * weights.of_group, elements_of_a_line(walk.panel.integers)
        following = k.let("following", first // index(GROUP) * weights.of_group + size)
        with k.loop("rows", walk.begin, walk.end) as block:
            done, number = block - walk.begin, walk.end - walk.begin
            fetched, fetch = done * size // number, (done + 1) * size // number
            with k.loop("line", k.let("fetched", fetched), k.let("fetch", fetch), line) as place:
                k.prefetch(walk.panel.integers, following + place)  # the part that follows, in this panel or the next
            pointers: list[Rvalue] = [data[0]]
            if len(data) > 1:
                row = walk.blocks.start(block) - walk.blocks.start(walk.begin)
                pointers.append(Offset(data[1], row * self.tile.columns))
            row = k.let("row", walk.blocks.start(block))
            rows = self.panels.data(walk.panel, walk.batch, row, first)
            tiles.call(walk.blocks.rows(block), [*rows, *pointers, *walk.batch, row, walk.column])

    # -- the tiles

    def _family(self, stem: str, *, few: bool, data: Sequence[tuple[str, Type | PointerType]], body: TileBody) -> TileFamily:
        """Tiles with the arguments ``data``, the batch coordinates, row and column."""
        position = [*(f"batch{i}" for i in range(len(self.shape.batch))), "row", "column"]
        arguments = [*data, *((name, INDEX) for name in position)]

        def of_rows(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
            split = len(data)
            body(block, replace(self.tile if few else self.panels.tile, rows=rows), args[:split], args[split:])

        return TileFamily(self.k, f"{stem}_{self.tile.columns}", self._sizes(few), arguments, of_rows)

    def _direct_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        panel = Panel(integers=data[1], scales=data[2], zeros=data[3] if len(data) > 3 else None)
        fetch = tile.lanes > 1 and self.caps.prefetching is not Prefetching.BURST
        a = self._rows_of_a(data[0])
        if tile.rows == 1 and not self.strict:
            sums = OneRow(block, self.weights, a, panel, fetch).sums()
        else:
            registers = self.caps.vector_registers
            sums = FewRows(block, self.weights, tile, a, panel, fetch=fetch, registers=registers).sums()
        self._finish(block, tile, sums, at)

    def _only_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        *given, scratch = data
        self._finish(block, tile, self.panels.sums(block, tile, given, scratch, self.depth, None), at)

    def _adding_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        *given, scratch, kept = data
        sums = self.panels.sums(block, tile, given, scratch, self.part, self._matrix(kept))
        for i, row in enumerate(sums):
            for j, c in enumerate(row):
                block.store(kept, i * tile.columns + j * tile.lanes, c)

    def _last_tile(self, block: FunctionBuilder, tile: Tile, data: list[Var], at: list[Var]) -> None:
        *given, scratch, kept = data
        depth = (self.depth - 1) % self.part + 1
        self._finish(block, tile, self.panels.sums(block, tile, given, scratch, depth, self._matrix(kept)), at)

    def _rows_of_a(self, pointer: Var) -> Matrix:
        return Matrix(pointer=pointer, row=self.k.param(self.shape.a_row), step=self.k.param(self.shape.a_k))

    def _matrix(self, pointer: Var) -> Matrix:
        return Matrix(pointer=pointer, row=index(self.tile.columns), step=index(1))

    def _finish(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var]) -> None:
        """Epilogue, store."""
        if self.weights.columns % tile.columns == 0:
            self._store(block, tile, sums, at, None)
            return
        left = block.let("left", self.weights.columns - at[-1])
        with block.when(le(tile.columns, left)):
            self._store(block, tile, sums, at, None)
        with block.otherwise():
            self._store(block, tile, sums, at, left)

    def _store(self, block: FunctionBuilder, tile: Tile, sums: list[list[Rvalue]], at: list[Var], left: Rvalue | None) -> None:
        *batch, first_row, first_column = at
        columns = [
            Column(
                points=[[*batch, first_row + i, first_column + j * tile.lanes] for i in range(tile.rows)],
                accs=[of_row[j] for of_row in sums],
                count=None if left is None else block.let("count", left - j * tile.lanes),
            )
            for j in range(tile.vectors)
        ]
        self.epilogue.at(block).finish(self.op.output, self.out, tile.lanes, columns)
