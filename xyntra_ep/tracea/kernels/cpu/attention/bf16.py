"""attention.bf16_tiles, attention.bf16_pairs: products of bfloat16, sums and softmax in f32.

    pack    columns of k and rows of v -> panels of pairs
    run     for block of rows of one head:
                rows of q -> bfloat16, whole tiles deep
                for pass over the columns of k:
                    products of q and k -> a stack buffer, as they leave the tiles
                    per row: the score's expression, maximum; exp -> weights in bfloat16, sum
                    products of the weights and v, added to sums on the stack
                sums / total -> store

The products are so fast that the softmax takes most of the time: its exponential is only as exact as bfloat16 can show, and a
score that is a positive multiple of its product is not even written back, because the factor fits into the exponent's.
"""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, lt, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Attention, Operand, Product
from xyntra_ep.tracea.kernels.cpu.attention._bf16_pack import (
    LANES,
    depth_of,
    pack_key_pairs,
    pack_value_pairs,
    padded,
    reads_pairs,
    width_of,
)
from xyntra_ep.tracea.kernels.cpu.attention._bf16_pairs import ROWS as PAIR_ROWS
from xyntra_ep.tracea.kernels.cpu.attention._bf16_pairs import PairProducts
from xyntra_ep.tracea.kernels.cpu.attention._bf16_tiles import ROWS as TILE_ROWS
from xyntra_ep.tracea.kernels.cpu.attention._bf16_tiles import TileProducts
from xyntra_ep.tracea.kernels.cpu.attention._few import build_few
from xyntra_ep.tracea.kernels.cpu.attention._pack import packed_of
from xyntra_ep.tracea.kernels.cpu.attention._scores import Scores
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape, shape_of
from xyntra_ep.tracea.kernels.cpu.attention._softmax import RowStates, Weighing, normalised
from xyntra_ep.tracea.kernels.cpu.attention._sweep import Sweep, ranges_of
from xyntra_ep.tracea.kernels.cpu.gemm._rows import divide_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Offset,
    Rvalue,
    Var,
    index,
    splat,
)

DEEPEST = 512
FEW = 12  # rows for which a copy of k and v does not pay


def _refusal(op: Attention, context: BuildContext) -> str | None:
    q, k, v = op.inputs[:3]
    if op.product is not Product.BF16:
        return f"the product is {op.product}, not bf16"
    for name, operand in (("q", q), ("k", k), ("v", v)):
        size = operand.shape[3]
        if operand.dtype not in (DType.F32, DType.BF16):
            return f"{name} is {operand.dtype}, not f32 or bf16"
        if not isinstance(size, int) or not 0 < size <= DEEPEST:
            return f"the head size of {name} is {size}, not in 1..{DEEPEST}"
        if operand.strides[3] != 1:
            return f"rows of {name} are not contiguous"
    rows = q.shape[2]
    if isinstance(rows, int) and rows <= FEW:
        return f"{rows} rows of q do not pay for copies of k and v"
    return None


def _admits_tiles(op: Attention, context: BuildContext) -> str | None:
    if not context.caps.amx_bf16:
        return "no matrix tiles of bfloat16"
    return _refusal(op, context)


def _admits_pairs(op: Attention, context: BuildContext) -> str | None:
    if not context.caps.avx512_bf16:
        return "no fast products of bfloat16 pairs"
    return _refusal(op, context)


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return float(typical(_cost(_shape(op, TILE_ROWS, context), context))) + 300.0


def _cost(shape: AttentionShape, context: BuildContext) -> Size:
    """The products at the machine's peak, and two vectors of scores in five nanoseconds for the softmax, of the scores that are
    computed."""
    scores = product([*shape.batch, shape.rows, shape.columns]) * shape.sixteenths // 16
    flops = 2 * scores * (shape.depth + shape.width)
    return flops // max(1, int(context.caps.bf16_gflops)) + scores // 6


def _shape(op: Attention, rows: int, context: BuildContext) -> AttentionShape:
    return shape_of(op, Tile(rows=rows, vectors=2, lanes=LANES), context)


def _build_tiles(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    return _build(_shape(op, TILE_ROWS, context), context, "tiles")


def _build_pairs(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    return _build(_shape(op, PAIR_ROWS, context), context, "pairs")


def _build(shape: AttentionShape, context: BuildContext, form: str) -> list[KernelCall]:
    keys, values = pack_key_pairs(shape, context), pack_value_pairs(shape, context)
    calls = [keys, values, _Attend(shape, keys, values, context, form).call()]
    if isinstance(shape.rows, int):
        return calls
    # A decoder's step is known by its size only when it runs: either the one kernel has work then, or the three have.
    many = lt(FEW, shape.rows)
    return [*build_few(shape.op, FEW, context), *(replace(call, units=call.units * many) for call in calls)]


class _Attend:
    """The kernel that follows the packing. A unit is one block of rows of one head."""

    def __init__(self, shape: AttentionShape, keys: KernelCall, values: KernelCall, context: BuildContext, form: str) -> None:
        self.shape = shape
        self.context = context
        self.k = k = KernelBuilder(f"xy_attention_bf16_{form}_{shape.q.dtype}_{context.caps.isa}")
        k.note(f"rows = {shape.rows}, columns = {shape.columns}, depth = {shape.depth}, width = {shape.width}")
        k.note(f"score: {shape.op.score}")
        self.buffers: list[ValueBuffer | TempBuffer] = []
        self.q = self._buffer("q", shape.q.dtype, ValueBuffer(value=shape.q.value))
        self.out = self._buffer("out", shape.op.output.dtype, ValueBuffer(value=shape.op.output.value), writable=True)
        self.keys = self._buffer("keys", DType.BF16, packed_of(keys))
        self.values = self._buffer("values", DType.BF16, packed_of(values))
        self.sight = Sight(k, shape.op, shape.bounds, shape.tile.columns)
        self.finish = Scores(k, shape, self.sight)
        self.products = TileProducts(k, shape) if form == "tiles" else PairProducts(k, shape)

    def _buffer(self, stem: str, dtype: DType, buffer: ValueBuffer | TempBuffer, writable: bool = False) -> Var:
        self.buffers.append(buffer)
        return self.k.buffer(stem, dtype, writable)

    def call(self) -> KernelCall:
        shape = self.shape
        self._body()
        kernel, params = self.k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=(*self.buffers, *self.sight.buffers, *self.finish.buffers),
            params=params,
            units=product(shape.batch) * ceildiv(shape.rows, shape.tile.rows),
            cost_ns=_cost(shape, self.context),
        )

    def _body(self) -> None:
        k, shape, tile = self.k, self.shape, self.shape.tile
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(shape.op.output.shape)]
        self.result = Epilogue(k, acc(), shape.op.inputs, shape.op.output.shape, groups, lane_group=3)
        blocks = divide_rows(k, shape.rows, tile.rows)
        self.query = k.array("query", DType.BF16, tile.rows * depth_of(shape))
        self.scores = k.array("scores", DType.F32, tile.rows * shape.score_stride)
        self.weights = k.array("weights", DType.BF16, tile.rows * shape.score_stride)
        self.sums = k.array("sums", DType.F32, tile.rows * width_of(shape))
        find_top, factor = self.finish.find_top, self.finish.factor
        how = Weighing(find_top=find_top, target=self.weights, function="exp2_weight_bf16", factor=factor)
        self.states = RowStates(k, shape, self.scores, how)
        with self.products.around(), k.units() as unit:
            batch, head, block = k.split(unit, [*shape.batch, ceildiv(shape.rows, tile.rows)])
            self.head = [batch, head]
            self.first, self.count = k.let("first", blocks.start(block)), k.let("count", blocks.rows(block))
            self.sight.enter(self.head, self.first, self.count)
            ranges = ranges_of(k, shape, self.sight.columns())
            self.finish.enter(self.head, self.first, self.scores)
            self.states.reset()
            self._copy_rows()
            Sweep(k, shape, self).emit(ranges)

    def _copy_rows(self) -> None:
        """q in bfloat16, zeros past d."""
        k, q, depth = self.k, self.shape.q, depth_of(self.shape)
        size = q.shape[3]
        assert isinstance(size, int)
        start = k.let("q_at", self._start(q) + self.first * k.param(q.strides[2]))
        pairs = reads_pairs(q)
        step = 2 * LANES if pairs else LANES
        with k.loop("i", 0, self.count) as i:
            source, target = Offset(self.q, start + i * k.param(q.strides[2])), Offset(self.query, i * depth)
            for d in range(0, depth, step):
                left = max(0, size - d)
                if pairs:
                    count = index(left // 2) if left < step else None
                    k.store_words(target, d, k.load_words(source, d, LANES, count))
                else:
                    k.store(target, d, k.load(source, d, LANES, index(left) if left < step else None))

    def _start(self, operand: Operand) -> Rvalue:
        """Where the unit's head starts in ``operand``."""
        return address(self.k, operand, self.head)

    def _matrix(self, operand: Operand, size: Size) -> Rvalue:
        """Where the unit's matrix starts in the packed k or v, whose matrices have ``size`` elements."""
        number: Rvalue = index(0)
        for i in self.shape.heads_of(operand):
            number = number * self.k.param(self.shape.batch[i]) + self.head[i]
        return number * self.k.param(size)

    # -- one pass

    def weigh(self, column: Rvalue, here: Rvalue) -> None:
        k, shape = self.k, self.shape
        self.finish.begin(column)
        depth = depth_of(shape)
        keys = Offset(self.keys, k.let("keys", self._matrix(shape.k, padded(shape.columns) * depth) + column * depth))
        self.products.scores(self.count, self.query, keys, here, self.scores)
        self.states.weigh(self.count, here)

    def sum(self, column: Rvalue, here: Rvalue, first: Rvalue, last: Rvalue) -> None:
        k, shape, width = self.k, self.shape, width_of(self.shape)
        first = k.let("begins", first)
        with k.when(1 - first), k.loop("i", 0, self.count) as i:
            factor = k.let("factor", splat(k.let("f", k.load(self.states.factors, i)), LANES))
            with k.loop("e", 0, width, LANES) as e:
                at = i * width + e
                k.store(self.sums, at, k.load(self.sums, at, LANES) * factor)
        start = self._matrix(shape.v, padded(shape.columns) * width)
        values = Offset(self.values, k.let("values", start + column * LANES))
        rounded = k.let("rounded", (here + 31) // 32 * 32)
        self.products.sums(self.count, self.weights, values, rounded, first, self.sums)
        with k.when(last):
            self._write()

    def _write(self) -> None:
        k, shape, width = self.k, self.shape, width_of(self.shape)
        output, whole = shape.op.output, shape.width // LANES * LANES
        with k.loop("i", 0, self.count) as i:
            scale = k.let("scale", splat(k.let("s", k.load(self.states.scales, i)), LANES))

            def store(e: Rvalue, count: Rvalue | None) -> None:
                value = normalised(shape.op, k.load(self.sums, i * width + e, LANES), scale)
                at = [*self.head, self.first + i, e]
                self.result.at(k).store(output, self.out, at, k.let("value", value), count)

            with k.loop("e", 0, whole, LANES) as e:
                store(e, None)
            if whole < shape.width:
                store(index(whole), index(shape.width - whole))


VARIANTS = [
    Variant(
        name="attention.bf16_tiles",
        op=Attention,
        needs="amx_bf16",
        admits=_admits_tiles,
        cost_ns=_cost_ns,
        build=_build_tiles,
    ),
    Variant(
        name="attention.bf16_pairs",
        op=Attention,
        needs="avx512_bf16",
        admits=_admits_pairs,
        cost_ns=_cost_ns,
        build=_build_pairs,
        rank=1,
    ),
]
