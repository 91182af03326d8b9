"""The tiles of scores that a mask leaves, as lists: a kernel makes them, the one that multiplies goes by them.

    list    for block of rows of a mask: over panels of columns: has any row of the block any weight there?
            neighbours that have are one range; [block] -> how many ranges, 0, begin and end of each, the number of columns

A mask that is constant is gone through once, when the session begins; another one in each run, which takes one of its elements
where attention takes the products of a row and a column for every head. What lies between the ranges is hidden.
"""

from __future__ import annotations

from collections.abc import Callable

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.attention._sweep import Ranges
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.mask_table import MaskTable
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    Const,
    Convert,
    Iota,
    Reduce,
    Rvalue,
    Select,
    Var,
    binary,
    f32,
    i32,
    index,
    le,
    lt,
    splat,
    vmax,
    vmin,
)

BlockRows = Callable[[KernelBuilder, Rvalue], tuple[Rvalue, Rvalue]]  # number of a block -> (first row, how many)


class TileList:
    """``blocks``: of rows, ``rows_of`` which rows they have."""

    def __init__(self, shape: AttentionShape, table: MaskTable, blocks: Size, rows_of: BlockRows) -> None:
        self._shape, self._table, self._rows_of = shape, table, rows_of
        follows = table.axes
        self._heads = [i for i in (0, 1) if i in follows]
        self._blocks: Size = blocks if 2 in follows else 1
        self._stride = 3 + 2 * ceildiv(shape.panels + 1, 2)  # every other panel at most begins a range
        self._maps = product([*(shape.batch[i] for i in self._heads), self._blocks])

    @property
    def buffer(self) -> TempBuffer:
        return TempBuffer(name="tiles", size_bytes=self._maps * self._stride * DType.I32.bytes)

    def call(self, context: BuildContext) -> KernelCall:
        """The kernel that makes the lists. A unit is one block of rows."""
        shape, tile, table = self._shape, self._shape.tile, self._table
        k = KernelBuilder(f"xy_attention_tiles_{tile.columns}_{context.caps.isa}")
        k.note(f"seen: {table.seen}")
        domain = (*shape.batch, shape.rows, shape.columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self._seen = Epilogue(k, table.seen, shape.op.inputs, domain, groups, lane_group=3)
        tiles = k.buffer("tiles", DType.I32, writable=True)
        columns = k.param(shape.columns)
        with k.units() as unit:
            *heads, block = k.split(unit, [*(shape.batch[i] for i in self._heads), self._blocks])
            head = dict(zip(self._heads, heads, strict=True))
            point = [head.get(i, index(0)) for i in (0, 1)]
            first, count = (index(0), index(1)) if self._blocks == 1 and 2 not in table.axes else self._rows_of(k, block)
            start = k.let("start", unit * k.param(self._stride))
            number, opened = k.variable("number", index(0)), k.variable("opened", index(0))

            def put(at: Rvalue, column: Rvalue) -> None:
                k.store(tiles, start + at, Convert(i32(1), column))

            put(index(1), index(0))
            with k.loop("t", 0, columns, tile.columns) as t:
                any_ = self._any(k, point, (first, count), t, columns)
                with k.when(any_ & (1 - opened)):
                    put(number * 2 + 2, t)
                with k.when(opened & (1 - any_)):
                    put(number * 2 + 3, t)
                    k.assign(number, number + 1)
                k.assign(opened, any_)
            with k.when(opened):
                put(number * 2 + 3, columns)
                k.assign(number, number + 1)
            with k.when(binary("eq", number, 0)):  # rows that see nothing have one range, which is empty
                put(index(2), index(0))
                put(index(3), index(0))
                k.assign(number, index(1))
            put(number * 2 + 2, columns)
            put(index(0), number)
        kernel, params = k.finish()
        elements = self._maps * shape.columns * (shape.block_rows if 2 in table.axes else 1)
        reads = {shape.op.inputs[e.attr].value for e in walk(table.seen) if e.kind == "load"}
        return KernelCall(
            kernel=kernel,
            buffers=(*self._seen.buffers, self.buffer),
            params=params,
            units=self._maps,
            cost_ns=elements // tile.lanes + 1,
            phase=Phase.PREPARE if all(map(context.is_constant, reads)) else Phase.RUN,
        )

    def _any(self, k: KernelBuilder, point: list[Rvalue], rows: tuple[Rvalue, Rvalue], t: Rvalue, columns: Rvalue) -> Rvalue:
        """1 where any of the rows has any weight in the panel at column ``t``, else 0."""
        tile, zero = self._shape.tile, Const(f32(self._shape.tile.lanes), 0.0)
        found = [k.variable("found", zero) for _ in range(tile.vectors)]
        left = k.let("left", vmin(columns - t, tile.columns))

        def look(row: Rvalue, *, whole: bool) -> None:
            here = self._seen.at(k)
            for j, so_far in enumerate(found):
                at = [*point, row, t + j * tile.lanes]
                count = None if whole else k.let("count", left - j * tile.lanes)
                value = here.value(at, {}, tile.lanes, count)
                if count is not None:
                    inside = lt(Iota(i32(tile.lanes)), splat(Convert(i32(1), count), tile.lanes))
                    value = Select(inside, value, zero)
                k.assign(so_far, vmax(value, so_far))

        with k.loop("row", rows[0], rows[0] + rows[1]) as row:
            with k.when(le(tile.columns, left)):
                look(row, whole=True)
            with k.otherwise():
                look(row, whole=False)
        best: Rvalue = found[0]
        for other in found[1:]:
            best = vmax(best, other)
        return k.let("any", Convert(INDEX, lt(Const(f32(1), 0.0), Reduce("max", best))) & 1)

    def ranges(self, k: KernelBuilder, tiles: Var, head: list[Rvalue], block: Rvalue) -> Ranges:
        """What the kernel that has the lists as ``tiles`` reads of a block."""
        shape = self._shape
        number: Rvalue = index(0)
        for i in self._heads:
            number = number * k.param(shape.batch[i]) + head[i]
        if self._blocks != 1 or 2 in self._table.axes:
            number = number * k.param(self._blocks) + block
        start = k.let("list", number * k.param(self._stride))

        def entry(at: Rvalue) -> Rvalue:
            return Convert(INDEX, k.load(tiles, start + at))

        count = k.let("ranges", entry(index(0)))
        whole = binary("eq", entry(index(2)), 0) & binary("eq", entry(index(3)), k.param(shape.columns))

        def at(j: Rvalue) -> tuple[Rvalue, Rvalue]:
            """Range j, or gap j - count."""
            place = k.let("place", Select(lt(j, count), j * 2 + 2, (j - count) * 2 + 1))
            return k.let("begin", entry(place)), k.let("end", entry(place + 1))

        return Ranges(seen=count, hidden=count + 1, some=k.let("some", 1 - whole), at=at)
