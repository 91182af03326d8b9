"""The code of `attention_split`: groups of threads that go over k and v on their own, and how what they find is put together.

Whoever has seen some of a row's columns has three things of it: the largest score, the sum of weights relative to that, and the
weighted sum of v (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018). Two such are put together by
scaling both to the larger maximum. As in `_attention_stream`, it leaves NaN out, and is the lowest float where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, lt, product, select, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, Operand
from xyntra_ep.tracea.kernels.gpu.attention._fetch import packet_of
from xyntra_ep.tracea.kernels.gpu.attention._space import bounds_of, heads_of, or_zero, sure_mask_of
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import Parts
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import BuildContext, TempBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Const, Fma, Pointer, Rvalue, Select, Var, binary, f32, index, vmax, vmin
from xyntra_ep.tracea.semantic_ir.nodes import lt as less

LOWEST = float(np.finfo(np.float32).min)
WARP = 32
_EXP = "exp_nonpositive"
_SHARED_PACKET = 4  # floats that are stored at once
_FEW = 8  # elements of a thread's part of a column, up to which four columns are under way


@dataclass(frozen=True, slots=True)
class SplitTile:
    """``lanes`` threads have a column between them, ``packet`` neighbouring elements each, or several such; a group of them has
    ``columns`` columns under way, for ``rows`` rows of q at a time."""

    threads: int
    rows: int
    lanes: int
    packet: int
    depth: int
    width: int

    @property
    def groups(self) -> int:
        return self.threads // self.lanes

    @property
    def columns(self) -> int:
        return 4 if max(self.depth, self.width) <= _FEW * self.lanes else 2

    @property
    def step(self) -> int:
        """Columns that a block has under way."""
        return self.groups * self.columns

    def places(self, extent: int) -> range:
        """What a thread adds to its own place in a column of so many elements."""
        return range(0, extent, self.lanes * self.packet)

    def parts(self, op: Attention, wanted: int, most: int) -> Parts:
        """Of the columns: as many as bring ``wanted`` blocks."""
        depth = op.inputs[1].shape[2]
        steps, blocks = ceildiv(depth, self.step), self.blocks(op)
        count = smax(1, smin(steps, smin(most, wanted // smax(1, blocks))))
        return Parts(count=count, length=ceildiv(steps, count) * self.step, depth=depth)

    def blocks(self, op: Attention) -> Size:
        """Without parts."""
        q = op.inputs[0]
        return product(q.shape[:2]) * ceildiv(q.shape[2], self.rows)


def tile_of(op: Attention, threads: int, rows: int) -> SplitTile:
    depth, width = heads_of(op)
    packet = min(packet_of(o) for o in op.inputs[1:3])
    needed = -(-max(depth, width) // packet)
    return SplitTile(threads, rows, min(WARP, 1 << (needed - 1).bit_length()), packet, depth, width)


def exp(x: Rvalue) -> Rvalue:
    """e^x for x <= 0; the kernel must have ``math_dependencies`` of it."""
    return CallValue(math_function(_EXP, 1), (x,))


class RowEnd:
    """Where a row's result goes: to the output when all of it is there, to memory between the kernels when it is a part."""

    def __init__(self, b: GpuBuilder, op: Attention, parts: Parts) -> None:
        self._b, self._op, self._parts = b, op, parts
        self._width = heads_of(op)[1]
        self._rows = product(op.output.shape[:3])
        for function in math_dependencies(_EXP, 1):
            b.function(function)

    def buffers(self) -> tuple[TempBuffer, TempBuffer]:
        """Of parts: sums of v, [part][row][column]; maximum and sum of weights, [part][row][2]."""
        count = select(lt(1, self._parts.count), self._parts.count * self._rows * DType.F32.bytes, 0)
        return TempBuffer(name="sums", size_bytes=count * self._width), TempBuffer(name="weights", size_bytes=count * 2)

    def declare(self, writable: bool) -> tuple[Var, Var]:
        b = self._b
        self._sums, self._weights = (b.buffer(name, DType.F32, writable) for name in ("sums", "weights"))
        return self._sums, self._weights

    def places(self, part: Rvalue, row: Rvalue) -> Rvalue:
        """The number of a row's part."""
        return self._b.let("place", part * self._b.param(self._rows) + row)

    def put_part(self, place: Rvalue, column: Rvalue, total: Rvalue, top: Rvalue, weight: Rvalue) -> None:
        b = self._b
        b.store(self._sums, place * self._width + column, total)
        with b.when(binary("eq", column, index(0))):
            b.store(self._weights, place * 2, top)
            b.store(self._weights, place * 2 + 1, weight)

    def put(self, out: Pointer, at: Sequence[Rvalue], column: Rvalue, total: Rvalue, weight: Rvalue) -> None:
        b, output = self._b, self._op.output
        result: Rvalue = b.let("y", total * (1.0 / weight))
        result = or_zero(self._op, result, weight)
        b.store(out, address(b, output, [*at, column]), result)

    def met(self, count: Rvalue | int, of: Callable[[Rvalue], tuple[Rvalue, Rvalue, Rvalue]]) -> tuple[Var, Var, Var]:
        """(sum of v, maximum, sum of weights) from those of ``count`` parts."""
        b, zero = self._b, Const(f32(1), 0.0)
        top, total, weight = (b.variable(*x) for x in (("top", Const(f32(1), LOWEST)), ("total", zero), ("weight", zero)))
        with b.loop("i", 0, count) as i:
            b.assign(top, vmax(of(i)[1], top))
        with b.loop("i", 0, count) as i:
            own_total, own_top, own_weight = of(i)
            factor = b.let("factor", exp(own_top - top))
            b.assign(total, Fma(own_total, factor, total))
            b.assign(weight, Fma(own_weight, factor, weight))
        return total, top, weight


class SplitCode:
    """What a block does for its rows of q and its part of the columns. ``b`` is the finished kernel's builder after ``emit``;
    ``scores.buffers`` follow those of q, k, v, the result and, where there are parts, of ``RowEnd``."""

    def __init__(self, op: Attention, tile: SplitTile, parts: Parts, context: BuildContext) -> None:
        self.op, self.tile, self.parts = op, tile, parts
        self.b = b = GpuBuilder(f"xy_attention_{op.inputs[1].dtype}_split", tile.threads)
        self._data = [b.buffer(name, o.dtype) for name, o in zip("qkv", op.inputs, strict=False)]
        self._out = b.buffer("out", op.output.dtype, writable=True)
        self.end = RowEnd(b, op, parts)
        if parts.is_cut:
            self.end.declare(writable=True)
        q, k = op.inputs[:2]
        domain = (*q.shape[:3], k.shape[2])
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self.scores = Epilogue(b, op.score, op.inputs, domain, groups, lane_group=3)
        self.sight = Sight(b, op, bounds_of(sure_mask_of(op, context)), tile.step)

    def emit(self) -> None:
        b, tile, q = self.b, self.tile, self.op.inputs[0]
        part, *self._batch, block = self.parts.split(b, [*q.shape[:2], ceildiv(q.shape[2], tile.rows)])
        self._lane, self._group = b.let("lane", b.thread % tile.lanes), b.let("group", b.thread // tile.lanes)
        self._first = b.let("first", block * tile.rows)
        begin, end = self._part(part)
        self._rows = [b.let("s", vmin(self._first + r, b.param(q.shape[2] - 1))) for r in range(tile.rows)]
        queries = [self._query(row) for row in self._rows]
        zero = Const(f32(1), 0.0)
        tops = [b.variable("top", Const(f32(1), LOWEST)) for _ in self._rows]
        weights = [b.variable("weight", zero) for _ in self._rows]
        many = len(tile.places(tile.width)) * tile.packet
        sums = [[b.variable("sum", zero) for _ in range(many)] for _ in self._rows]
        starts = (address(b, operand, self._batch) for operand in self.op.inputs[1:3])
        k, v = (b.pointer("start", data, start) for data, start in zip(self._data[1:], starts, strict=True))
        with b.loop("t", begin, end, tile.step) as t:
            columns = [b.let("t", t + self._group + u * tile.groups) for u in range(tile.columns)]
            places = [b.let("t", vmin(column, b.param(self.parts.depth - 1))) for column in columns]
            inside = [less(column, end) for column in columns]
            keys = [self._column(k, self.op.inputs[1], place) for place in places]
            values = [self._column(v, self.op.inputs[2], place) for place in places]
            for row, query, top, weight, totals in zip(self._rows, queries, tops, weights, sums, strict=True):
                scores = [self._score(row, *of, query) for of in zip(places, inside, keys, strict=True)]
                self._weigh(scores, values, top, weight, totals)
        self._meet(part, tops, weights, sums)

    def _part(self, part: Rvalue) -> tuple[Rvalue, Rvalue]:
        """The columns of the part: of all, or of those that the block's rows see, nearly as many for each part."""
        b, parts, tile = self.b, self.parts, self.tile
        if self.sight.bounds == Bounds():
            return parts.range(b, part)
        count = vmin(index(tile.rows), b.param(self.op.inputs[0].shape[2]) - self._first)
        self.sight.enter(self._batch, self._first, b.let("count", count))
        first, last = self.sight.panels()
        number = b.param(parts.count)
        share = b.let("share", (last - first + (number - 1)) // number)
        begin = b.let("begin", vmin(first + part * share, last))
        end = b.let("end", vmin(begin + share, last))
        return b.let("from", begin * tile.step), b.let("to", vmin(end * tile.step, b.param(parts.depth)))

    def _column(self, start: Pointer, operand: Operand, row: Rvalue) -> list[Rvalue]:
        """The thread's elements of a row of the operand; past its end, others of it."""
        b, tile = self.b, self.tile
        extent, found = operand.shape[3], []
        assert isinstance(extent, int)
        at = b.let("row", row * b.param(operand.strides[2]))
        for more in tile.places(extent):
            place = self._lane * tile.packet + more
            if more + tile.lanes * tile.packet > extent:
                place = vmin(place, extent - tile.packet)
            found += b.load_packet("x", start, at + place * b.param(operand.strides[3]), tile.packet)
        return found

    def _query(self, row: Rvalue) -> list[Rvalue]:
        """The thread's elements of a row of q, 0 past its end."""
        b, tile, operand = self.b, self.tile, self.op.inputs[0]
        found: list[Rvalue] = []
        for more in tile.places(tile.depth):
            for i in range(tile.packet):
                column = b.let("d", self._lane * tile.packet + (more + i))
                at = address(b, operand, [*self._batch, row, vmin(column, tile.depth - 1)])
                inside = less(column, tile.depth)
                found.append(b.let("q", Select(inside, b.load(self._data[0], at), Const(f32(1), 0.0))))
        return found

    def _score(self, row: Rvalue, column: Rvalue, inside: Rvalue, key: Sequence[Rvalue], query: Sequence[Rvalue]) -> Rvalue:
        """In all threads of the group; minus infinity past the last column."""
        b = self.b
        dot: Rvalue = Const(f32(1), 0.0)
        for x, y in zip(query, key, strict=True):
            dot = b.let("dot", Fma(x, y, dot))
        mask = self.tile.lanes // 2
        while mask:
            dot = b.let("dot", dot + b.subgroup_xor(dot, mask))
            mask //= 2
        score = self.scores.at(b).value([*self._batch, row, column], dot, 1)
        return b.let("score", Select(inside, score, Const(f32(1), -float("inf"))))

    def _weigh(
        self, scores: Sequence[Rvalue], values: Sequence[Sequence[Rvalue]], top: Var, weight: Var, sums: Sequence[Var]
    ) -> None:
        """Add columns to what is known of a row."""
        b = self.b
        higher: Rvalue = top
        for score in scores:
            higher = b.let("higher", vmax(score, higher))
        factor = b.let("factor", exp(top - higher))
        b.assign(top, higher)
        b.assign(weight, weight * factor)
        for total in sums:
            b.assign(total, total * factor)
        for score, of_column in zip(scores, values, strict=True):
            own = b.let("w", exp(score - higher))
            b.assign(weight, weight + own)
            for x, total in zip(of_column, sums, strict=True):
                b.assign(total, Fma(own, x, total))

    def _meet(self, part: Rvalue, tops: Sequence[Var], weights: Sequence[Var], sums: Sequence[Sequence[Var]]) -> None:
        """What all groups have, put together: a thread for each column of each row's result."""
        b, tile, q, end = self.b, self.tile, self.op.inputs[0], self.end
        count = tile.rows * tile.groups
        shared_tops, shared_weights = (b.shared(name, DType.F32, count) for name in ("tops", "weights"))
        shared_sums = b.shared("sums", DType.F32, count * tile.width)
        for r, (top, weight, totals) in enumerate(zip(tops, weights, sums, strict=True)):
            mine = b.let("mine", self._group + r * tile.groups)
            with b.when(binary("eq", self._lane, index(0))):
                b.store(shared_tops, mine, top)
                b.store(shared_weights, mine, weight)
            self._share(shared_sums, mine * tile.width, totals)
        b.barrier()
        with b.loop("at", b.thread, tile.rows * tile.width, tile.threads) as at:
            number, column = b.let("r", at // tile.width), b.let("e", at % tile.width)
            row = b.let("s", self._first + number)
            with b.when(less(row, b.param(q.shape[2]))):

                def of(group: Rvalue) -> tuple[Rvalue, Rvalue, Rvalue]:
                    i = number * tile.groups + group
                    return b.load(shared_sums, i * tile.width + column), b.load(shared_tops, i), b.load(shared_weights, i)

                total, top, weight = end.met(tile.groups, of)
                if not self.parts.is_cut:
                    end.put(self._out, [*self._batch, row], column, total, weight)
                    return
                with b.when(binary("eq", b.param(self.parts.count), index(1))):
                    end.put(self._out, [*self._batch, row], column, total, weight)
                with b.otherwise():
                    head = self._batch[0] * b.param(q.shape[1]) + self._batch[1]
                    end.put_part(end.places(part, head * b.param(q.shape[2]) + row), column, total, top, weight)

    def _share(self, shared: Var, start: Rvalue, totals: Sequence[Rvalue]) -> None:
        """A group's sums of a row."""
        b, tile = self.b, self.tile
        step = min(tile.packet, _SHARED_PACKET)
        for i in range(0, len(totals), step):
            more = i // tile.packet * (tile.lanes * tile.packet) + i % tile.packet
            column = b.let("e", self._lane * tile.packet + more)
            with b.when(less(column, tile.width)):
                if is_multiple(tile.width, step):
                    b.store_packet(shared, start + column, totals[i : i + step])
                else:
                    b.store(shared, start + column, totals[i])
