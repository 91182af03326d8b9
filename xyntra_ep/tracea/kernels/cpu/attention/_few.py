"""Attention of few rows of q, as a decoder's step has them: k and v are read once, where they lie, and all rows meet them there.

    attend  for part of the columns that are seen, of one head:
                for pass over at most 512 of them:
                    for vector of columns: dot products along d -> a stack buffer in L1
                    per row: the score's expression and the maximum, exp, sum
                    for some columns: weighted sums of v added to those of the part
                the only part: times 1 / total -> store; else the part's maximum, total and sums -> memory
    combine for row: what the parts gave, in their order, each times exp(its maximum - the maximum); times 1 / total -> store

A copy of k costs as much as its products with a dozen rows. Parts follow from the sizes and from what is seen, never from the
number of threads. Key heads that share nothing rarely fill the threads of a server, and one query over a long cache never does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, lt, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.cpu.attention._few_tiles import FewProducts, FewSums
from xyntra_ep.tracea.kernels.cpu.attention._scores import Scores
from xyntra_ep.tracea.kernels.cpu.attention._shape import FEW, PASS_COLUMNS, AttentionShape, shape_of
from xyntra_ep.tracea.kernels.cpu.attention._softmax import (
    LOWEST,
    RowStates,
    Weighing,
    base_of,
    normalised,
    scale_of,
    scale_of_nothing,
    weight_of,
)
from xyntra_ep.tracea.kernels.cpu.attention._sweep import Sweep
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import UNITS
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.cpu.shared.row_parts import rows_of_block
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import (
    Const,
    Fma,
    Offset,
    Pointer,
    Rvalue,
    binary,
    f32,
    index,
    splat,
    vmax,
)


def build_few(op: Attention, most: int, context: BuildContext) -> list[KernelCall]:
    """The kernels for op where it has at most ``most`` rows, no more than FEW. Where that shows only in a run they have no work
    otherwise."""
    assert most <= FEW
    shape = _shape(op, context)
    parts, few = _parts(shape), 1 - lt(most, shape.rows)
    attend = _Attend(shape, parts, context)
    calls = [attend.call()]
    if parts != 1:
        calls.append(_combine(attend.partial, attend.scores.factor, context))
    return [replace(call, units=call.units * few) for call in calls]


def _shape(op: Attention, context: BuildContext) -> AttentionShape:
    """All rows are one block. What a finite mask hides is not left out: whether it has weight shows only when all parts are
    known, and the rows of a decoder's step see nearly everything."""
    rows = op.inputs[0].shape[2]
    most = max(1, min(rows, FEW)) if isinstance(rows, int) else FEW
    shape = shape_of(op, Tile(rows=most, vectors=2, lanes=context.caps.lanes), context)
    return replace(shape, causal=None) if shape.may_see_more else shape


def _parts(shape: AttentionShape) -> Size:
    """Of a head's columns: units for every thread, none of less than a pass."""
    heads = product(shape.batch)
    return smax(1, smin(ceildiv(UNITS, smax(heads, 1)), ceildiv(shape.columns, PASS_COLUMNS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Partial:
    """What a part gives. ``sums`` [unit][row][width, whole vectors]; ``states`` [unit][row][maximum, total]."""

    shape: AttentionShape
    parts: Size

    @property
    def units(self) -> Size:
        return product(self.shape.batch) * self.parts

    @property
    def rows(self) -> Size:
        return smin(self.shape.rows, FEW)

    @property
    def sums(self) -> TempBuffer:
        return TempBuffer(name="sums", size_bytes=self.units * self.rows * self.shape.sum_stride * DType.F32.bytes)

    @property
    def states(self) -> TempBuffer:
        return TempBuffer(name="states", size_bytes=self.units * 2 * self.rows * DType.F32.bytes)


class _Output:
    """The epilogue and the only store."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, context: BuildContext) -> None:
        op = shape.op
        self._kernel, self._shape = kernel, shape
        self._out = kernel.buffer("out", op.output.dtype, writable=True)
        self.buffer = ValueBuffer(value=op.output.value)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(op.output.shape)]
        self._result = Epilogue(kernel, acc(), op.inputs, op.output.shape, groups, lane_group=3)

    def write(self, row: Sequence[Rvalue], sums: Pointer, scale: Rvalue) -> None:
        """A row, at its batch, head and number."""
        k, shape, lanes = self._kernel, self._shape, self._shape.tile.lanes

        def store(e: Rvalue, count: Rvalue | None) -> None:
            value = k.let("value", normalised(shape.op, k.load(sums, e, lanes), scale))
            self._result.at(k).store(shape.op.output, self._out, [*row, e], value, count)

        whole = shape.width // lanes * lanes
        with k.loop("e", 0, whole, lanes) as e:
            store(e, None)
        if whole < shape.width:
            store(index(whole), index(shape.width - whole))


class _Attend:
    """A unit is one part of a head's columns."""

    def __init__(self, shape: AttentionShape, parts: Size, context: BuildContext) -> None:
        self.shape, self.parts, self.context = shape, parts, context
        self.k = k = KernelBuilder(f"xy_attention_few_{shape.q.dtype}_{context.caps.isa}")
        k.note(f"rows = {shape.rows}, columns = {shape.columns}, depth = {shape.depth}, width = {shape.width}")
        k.note(f"score: {shape.op.score}")
        self.q, self.keys, self.v = (k.buffer(name, o.dtype) for name, o in zip("qkv", (shape.q, shape.k, shape.v), strict=True))
        self.output = _Output(k, shape, context)
        self.partial = _Partial(shape=shape, parts=parts)
        kept = [] if parts == 1 else [self.partial.sums, self.partial.states]
        self.kept = [k.buffer(buffer.name, DType.F32, writable=True) for buffer in kept]
        self.sight = Sight(k, shape.op, shape.bounds, shape.tile.columns)
        self.scores = Scores(k, shape, self.sight)
        operands = (ValueBuffer(value=o.value) for o in (shape.q, shape.k, shape.v))
        self.buffers: list[ValueBuffer | TempBuffer] = [*operands, self.output.buffer, *kept]
        self.buffers += [*self.sight.buffers, *self.scores.buffers]
        self.products = FewProducts(k, shape, context)
        self.sums = FewSums(k, shape, context)

    def call(self) -> KernelCall:
        k, shape = self.k, self.shape
        rows = shape.block_rows
        self.weights = k.array("scores", DType.F32, rows * shape.score_stride)
        self.query = k.array("query", DType.F32, rows * self.products.padded)
        self.so_far = k.array("sums", DType.F32, rows * shape.sum_stride)
        self.states = RowStates(k, shape, self.weights, Weighing(find_top=self.scores.find_top, factor=self.scores.factor))
        with k.units() as unit:
            batch, head, part = k.split(unit, [*shape.batch, self.parts])
            self.unit, self.head = unit, [batch, head]
            self.first, self.count = rows_of_block(k, shape.rows, rows, index(0))
            self.sight.enter(self.head, self.first, self.count)
            seen = self.sight.columns()
            self.scores.enter(self.head, self.first, self.weights)
            self.states.reset()
            self.products.copy_query(Offset(self.q, k.let("q_at", address(k, shape.q, self.head))), self.count, self.query)
            Sweep(k, shape, self).emit_part(seen, part, self.parts)
        kernel, params = k.finish()
        return KernelCall(
            kernel=kernel,
            buffers=tuple(self.buffers),
            params=params,
            units=self.partial.units * lt(0, self.shape.rows),  # none without rows: masks divide by their number
            cost_ns=_cost(shape, self.context),
        )

    def weigh(self, column: Rvalue, here: Rvalue) -> None:
        start = address(self.k, self.shape.k, [*self.head, column])
        self.products.multiply(self.query, Offset(self.keys, self.k.let("k_at", start)), self.count, here, self.weights)
        self.scores.begin(column)
        self.states.weigh(self.count, here)

    def sum(self, column: Rvalue, here: Rvalue, first: Rvalue, last: Rvalue) -> None:
        k, shape = self.k, self.shape
        self._shrink(k.let("begins", first))
        start = k.let("v_at", address(k, shape.v, [*self.head, column]))
        self.sums.add(self.weights, Offset(self.v, start), self.count, here, self.so_far)
        with k.when(last):
            if self.parts == 1:
                self._write()
                return
            with k.when(binary("eq", k.param(self.parts), 1)):
                self._write()
            with k.otherwise():
                self._keep()

    def _shrink(self, first: Rvalue) -> None:
        """The sums so far by what the maxima have grown; nothing in the first pass."""
        k, lanes, width = self.k, self.shape.tile.lanes, self.shape.sum_stride
        with k.when(first), k.loop("at", 0, self.count * width, lanes) as at:
            k.store(self.so_far, at, Const(f32(lanes), 0.0))
        with k.otherwise(), k.loop("i", 0, self.count) as i:
            factor = k.let("factor", splat(k.let("f", k.load(self.states.factors, i)), lanes))
            with k.loop("e", i * width, (i + 1) * width, lanes) as at:
                k.store(self.so_far, at, k.load(self.so_far, at, lanes) * factor)

    def _write(self) -> None:
        k, shape = self.k, self.shape
        with k.loop("i", 0, self.count) as i:
            scale = k.let("scale", splat(k.let("s", k.load(self.states.scales, i)), shape.tile.lanes))
            self.output.write([*self.head, i], Offset(self.so_far, i * shape.sum_stride), scale)

    def _keep(self) -> None:
        """What the part gives, for the other kernel."""
        k, lanes, width = self.k, self.shape.tile.lanes, self.shape.sum_stride
        sums, states = self.kept
        rows = k.let("kept_rows", self.unit * self.count)
        with k.loop("at", 0, self.count * width, lanes) as at:
            k.store(sums, rows * width + at, k.load(self.so_far, at, lanes))
        with k.loop("i", 0, self.count) as i:
            k.store(states, (rows + i) * 2, k.load(self.states.maxima, i))
            k.store(states, (rows + i) * 2 + 1, k.load(self.states.totals, i))


def _combine(partial: _Partial, factor: float, context: BuildContext) -> KernelCall:
    """A unit is a row of a head. ``factor``: what scores are to be multiplied with."""
    shape, parts = partial.shape, partial.parts
    lanes, width = shape.tile.lanes, shape.sum_stride
    k = KernelBuilder(f"xy_attention_combine_{width}_{context.caps.isa}")
    sums, states = k.buffer("sums", DType.F32), k.buffer("states", DType.F32)
    output = _Output(k, shape, context)
    totals = k.array("totals", DType.F32, width)
    rows, number = k.param(shape.rows), k.param(parts)
    with k.units() as unit:
        batch, head, row = k.split(unit, [*shape.batch, shape.rows])
        first = k.let("first", unit // rows * number * rows + row)
        best = k.variable("best", Const(f32(1), LOWEST))
        with k.loop("part", 0, number) as part:
            k.assign(best, vmax(k.load(states, (first + part * rows) * 2), best))
        base = k.let("base", base_of(best))
        total = k.variable("total", Const(f32(lanes), 0.0))
        with k.loop("e", 0, width, lanes) as e:
            k.store(totals, e, Const(f32(lanes), 0.0))
        with k.loop("part", 0, number) as part:
            at = k.let("at", first + part * rows)
            maximum, weights = k.load(states, at * 2), k.load(states, at * 2 + 1)
            shrunk = k.let("shrunk", weight_of(k, splat(maximum - base, lanes), factor, "exp2_weight"))
            k.assign(total, Fma(splat(weights, lanes), shrunk, total))
            with k.loop("e", 0, width, lanes) as e:
                k.store(totals, e, Fma(k.load(sums, at * width + e, lanes), shrunk, k.load(totals, e, lanes)))
        scale = k.let("scale", scale_of(total, scale_of_nothing(k, shape, lanes)))
        output.write([batch, head, row], Offset(totals, index(0)), scale)
    kernel, params = k.finish()
    units = product(shape.batch) * shape.rows * lt(1, parts)
    return KernelCall(
        kernel=kernel,
        buffers=(partial.sums, partial.states, output.buffer),
        params=params,
        units=units,
        cost_ns=units * parts * shape.width // 16,
    )


def _cost(shape: AttentionShape, context: BuildContext) -> Size:
    """The arithmetic at the machine's peak, half as much again for softmax and sums of lanes; or memory. Of what is seen."""
    columns = product([*shape.batch, shape.columns]) * (shape.depth + shape.width) * shape.sixteenths // 16
    flops, read = 3 * shape.rows * columns, 4 * columns
    return smax(flops // max(1, int(context.caps.fma_gflops)), read // max(1, int(context.caps.dram_gbs)))
