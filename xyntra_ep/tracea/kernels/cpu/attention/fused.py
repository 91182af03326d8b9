"""attention.fused: softmax(score(q k^T)) v without ever storing the scores to memory.

    pack    columns of k -> panels, transposed in registers
            rows of v, if they lie far apart and are many
    run     for block of rows of one head:
                for pass over at most 512 columns of k:
                    tiles of products -> a stack buffer in L1
                    per row: the score's expression and the maximum, exp, sum; what earlier passes gave is rescaled when
                    the maximum grows
                    tiles of weighted sums, rows of v read in place
                    the last pass: times 1 / total in registers -> store

Up to 512 columns there is one pass, which is the plain softmax. Columns that a causal mask, a window or an end of the keys hides
from all rows of a block are left out; when the mask's number is finite that is exact only if every row has a score far above it,
so the kernel looks, and does the rest of the columns where that fails (a row whose visible scores are as low as the mask). Where
the mask is added to the scores, it looks at the rows of q and the packed columns of k, too: elements that are huge, or no
numbers, show. A few rows of q have kernels of their own, see `_few.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Attention, Operand
from xyntra_ep.tracea.kernels.cpu.attention._few import build_few
from xyntra_ep.tracea.kernels.cpu.attention._large import LargeElements
from xyntra_ep.tracea.kernels.cpu.attention._pack import pack_keys, pack_values, packed_of
from xyntra_ep.tracea.kernels.cpu.attention._scores import Scores
from xyntra_ep.tracea.kernels.cpu.attention._shape import FEW, AttentionShape, shape_of
from xyntra_ep.tracea.kernels.cpu.attention._softmax import RowStates, Weighing
from xyntra_ep.tracea.kernels.cpu.attention._sweep import Ranges, Sweep, ranges_of
from xyntra_ep.tracea.kernels.cpu.attention._tile_list import BlockRows, TileList
from xyntra_ep.tracea.kernels.cpu.attention._tiles import Products, SumArguments, WeightedSums
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, tile_refusal, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.cpu.shared.row_parts import rows_of_block
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import (
    Axis,
    BuildContext,
    Config,
    KernelCall,
    TempBuffer,
    ValueBuffer,
    Variant,
)
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Offset, Rvalue, Var, index

WIDEST = 512  # columns of v whose sums fit the stack
BLOCK = 24  # rows of q at most that share what is read of k and v
WIDE = 256  # of depth and width together
STRIP = 32  # columns of a tile at most: 12 x 32 keeps q's broadcasts and v's rows in balance


def admits(op: Attention, context: BuildContext) -> str | None:
    q, k, v = op.inputs[:3]
    if not all(o.dtype.is_float for o in (q, k, v)):
        return f"q, k, v are {q.dtype}, {k.dtype}, {v.dtype}, not floats"
    width = v.shape[3]
    if not isinstance(width, int):
        return "the head size of v is known only at run time"
    if not 0 < width <= WIDEST:
        return f"the head size of v is {width}, not in 1..{WIDEST}"
    return None


def space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    rows, columns = tile_space(context.caps)
    return [rows, Axis(name="columns", values=tuple(c for c in columns.values if c <= STRIP))]


def default(op: Attention, context: BuildContext) -> Config:
    return best_tile(min(STRIP, 2 * context.caps.lanes), context.caps)


def cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return float(typical(_cost(_shape(op, config, context), context))) + 300.0


def build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    """Where the number of rows shows only in a run, either the kernels for few rows have work, or the others."""
    shape = _shape(op, config, context)
    calls = build_few(op, FEW, context) if shape.takes_few_rows else []
    if shape.packs == 0:
        return calls
    keys = pack_keys(shape, context)
    values = pack_values(shape, context) if shape.packs_v != 0 else None
    tiles = None if shape.table is None else TileList(shape, shape.table, *_blocks(shape))
    attend = _Attend(shape, keys, values, tiles, context).call()
    lists = None if tiles is None else tiles.call(context)
    many = [call for call in (keys, values, lists) if call is not None]
    return [*calls, *many, replace(attend, units=attend.units * shape.packs)]


def _shape(op: Attention, config: Config, context: BuildContext) -> AttentionShape:
    shape = shape_of(op, _tile(config, context), context, looks=True)
    return replace(shape, groups=_groups(shape))


def _groups(shape: AttentionShape) -> int:
    """How many tiles of rows go over the columns together. Six rows of AVX2 wait for k and v from L2 (Zen 4, 2048 columns, heads
    of 128: 95 to 85 ms). Twelve do so less, and of wide heads their scores and sums would no longer fit L1 (256: 80 to 86 ms)."""
    rows = shape.tile.rows
    is_wide = not isinstance(shape.depth, int) or shape.depth + shape.width > WIDE
    if rows >= BLOCK // 2 and is_wide:
        return 1
    groups = max(1, BLOCK // rows)
    return max(1, min(groups, -(-shape.rows // rows))) if isinstance(shape.rows, int) else groups


def _blocks(shape: AttentionShape) -> tuple[Size, BlockRows]:
    """How many blocks of rows there are, and which rows one of them has."""
    most = shape.block_rows
    return ceildiv(shape.rows, most), lambda k, block: rows_of_block(k, shape.rows, most, block)


def _tile(config: Config, context: BuildContext) -> Tile:
    lanes = context.caps.lanes
    return Tile(rows=config["rows"], vectors=config["columns"] // lanes, lanes=lanes)


def _cost(shape: AttentionShape, context: BuildContext) -> Size:
    """The arithmetic at the machine's peak, and a quarter for softmax and packing, of the scores that are computed."""
    scores = product([*shape.batch, shape.rows, shape.columns]) * shape.sixteenths // 16
    flops = 2 * scores * (shape.depth + shape.width) * 5 // 4
    return flops // max(1, int(context.caps.fma_gflops))


# -- the kernel


class _Attend:
    def __init__(
        self,
        shape: AttentionShape,
        keys: KernelCall,
        values: KernelCall | None,
        tiles: TileList | None,
        context: BuildContext,
    ) -> None:
        self.shape, self.tiles = shape, tiles
        self.context = context
        op, tile = shape.op, shape.tile
        k = KernelBuilder(f"xy_attention_{shape.q.dtype}_{tile.rows}x{tile.columns}_{context.caps.isa}")
        k.note(f"rows = {shape.rows}, columns = {shape.columns}, depth = {shape.depth}, width = {shape.width}")
        k.note(f"score: {op.score}")
        self.k = k
        self.buffers: list[ValueBuffer | TempBuffer] = []
        self.q = self._buffer("q", shape.q.dtype, ValueBuffer(value=shape.q.value))
        self.v = self._buffer("v", shape.v.dtype, ValueBuffer(value=shape.v.value))
        self.out = k.buffer("out", op.output.dtype, writable=True)
        self.buffers.append(ValueBuffer(value=op.output.value))
        self.packed_keys = self._buffer("keys", DType.F32, packed_of(keys))
        self.packed_values = self._buffer("values", DType.F32, packed_of(values)) if values is not None else None
        self.listed = self._buffer("tiles", DType.I32, tiles.buffer) if tiles is not None else None
        self.sight = Sight(k, shape.op, shape.bounds, shape.tile.columns)
        self.scores = Scores(k, shape, self.sight)

    def _buffer(self, stem: str, dtype: DType, buffer: ValueBuffer | TempBuffer) -> Var:
        self.buffers.append(buffer)
        return self.k.buffer(stem, dtype)

    def call(self) -> KernelCall:
        shape = self.shape
        self._body()
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(*self.buffers, *self.sight.buffers, *self.scores.buffers),
            params=params,
            units=product(shape.batch) * ceildiv(shape.rows, shape.block_rows),
            cost_ns=_cost(shape, self.context),
        )

    def _body(self) -> None:
        """A unit is one block of rows of one head."""
        k, shape, most = self.k, self.shape, self.shape.block_rows
        self.products = Products(k, shape)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(shape.op.output.shape)]
        result = Epilogue(k, acc(), shape.op.inputs, shape.op.output.shape, groups, lane_group=3)
        self.sums = WeightedSums(k, shape, result, self.out)
        self.weights = k.array("scores", DType.F32, most * shape.score_stride)
        self.sums_so_far = None if shape.is_single_pass else k.array("sums", DType.F32, most * shape.sum_stride)
        self.states = RowStates(k, shape, self.weights, Weighing(find_top=self.scores.find_top, factor=self.scores.factor))
        with k.units() as unit:
            batch, head, block = k.split(unit, [*shape.batch, ceildiv(shape.rows, most)])
            self.head = [batch, head]
            self.first, self.count = rows_of_block(k, shape.rows, most, block)
            self.sight.enter(self.head, self.first, self.count)
            if self.tiles is not None and self.listed is not None:
                ranges = self.tiles.ranges(k, self.listed, self.head, block)
            else:
                ranges = ranges_of(k, shape, self.sight.columns())
            self.scores.enter(self.head, self.first, self.weights)
            self.states.reset()
            Sweep(k, shape, self, None if shape.limit is None else self._large).emit(ranges)

    def weigh(self, column: Rvalue, here: Rvalue) -> None:
        self._multiply(column, here)
        self.scores.begin(column)
        self.states.weigh(self.count, here)

    def _large(self, ranges: Ranges) -> Rvalue:
        """Whether the block's rows of q, or the hidden columns of k, have an element that is not within the mask's limit."""
        k, shape, tile = self.k, self.shape, self.shape.tile
        assert shape.limit is not None and isinstance(shape.depth, int)
        lanes = tile.lanes if shape.q.strides[3] == 1 and shape.depth % tile.lanes == 0 else 1
        rows, keys = LargeElements(k, lanes, shape.limit), LargeElements(k, tile.lanes, shape.limit)
        with k.loop("i", 0, self.count) as i:
            at = self._head(shape.q) + (self.first + i) * k.param(shape.q.strides[2])
            rows.look(k.pointer("row", self.q, at), index(shape.depth), shape.q.strides[3])
        head = self._packed_head(shape.k) * k.param(shape.panels * tile.columns * shape.depth)
        with k.loop("range", ranges.seen, ranges.seen + ranges.hidden) as j:
            begin, end = ranges.at(j)
            whole = (end - begin + (tile.columns - 1)) // tile.columns * tile.columns  # zeros past the last column
            keys.look(k.pointer("rest", self.packed_keys, head + begin * shape.depth), whole * shape.depth)
        return k.let("large", rows.found | keys.found)

    def sum(self, column: Rvalue, here: Rvalue, first: Rvalue, last: Rvalue) -> None:
        k, shape = self.k, self.shape
        running = None if self.sums_so_far is None else (self.sums_so_far, self.states.factors, first, last)

        def call(v: Var, at: Rvalue, v_row: Rvalue) -> None:
            rows_of_v = Offset(v, k.let("v_at", at + column * v_row))
            args = SumArguments(
                v_row=v_row, columns=here, scales=self.states.scales, head=self.head, row=self.first, running=running
            )
            self.sums.call(self.count, self.weights, rows_of_v, args)

        def in_place() -> None:
            call(self.v, self._head(shape.v), k.param(shape.v.strides[2]))

        def packed() -> None:
            assert self.packed_values is not None
            at = self._packed_head(shape.v) * k.param(shape.columns * shape.sum_stride)
            call(self.packed_values, at, index(shape.sum_stride))

        if isinstance(shape.packs_v, int):
            (packed if shape.packs_v else in_place)()
            return
        with k.when(k.param(shape.packs_v)):
            packed()
        with k.otherwise():
            in_place()

    def _packed_head(self, operand: Operand) -> Rvalue:
        """Which of the packed matrices of k or v is the unit's."""
        number: Rvalue = index(0)
        for i in self.shape.heads_of(operand):
            number = number * self.k.param(self.shape.batch[i]) + self.head[i]
        return number

    def _head(self, operand: Operand) -> Rvalue:
        """Where the unit's head starts in ``operand``."""
        return address(self.k, operand, self.head)

    def _multiply(self, column: Rvalue, here: Rvalue) -> None:
        """q times ``here`` columns of k from ``column`` on."""
        k, shape = self.k, self.shape
        q = Offset(self.q, k.let("q_at", self._head(shape.q) + self.first * k.param(shape.q.strides[2])))
        matrix = shape.panels * shape.tile.columns * shape.depth
        start = k.let("keys", self._packed_head(shape.k) * k.param(matrix))
        with k.loop("t", 0, here, shape.tile.columns) as t:
            panel = Offset(self.packed_keys, start + (column + t) * k.param(shape.depth))
            self.products.call(self.count, q, panel, Offset(self.weights, t))


VARIANTS = [
    Variant(
        name="attention.fused",
        op=Attention,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
