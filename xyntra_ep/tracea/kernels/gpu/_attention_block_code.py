"""What a block of a fused attention does: online softmax over tiles of k and v (Dao, "FlashAttention-2", 2023).

While the scores of a tile are computed, its v is copied; while they weigh v, the next k is. A thread keeps the largest score and
the weights' sum of its rows: the maximum is agreed on by the eight threads of a row for every tile, the sum is put together at
the end.

The maximum leaves NaN out, and a row without any finite score has the lowest float for one: weights are then 0 where a score is
minus infinity and NaN where it is NaN or infinity, which reaches the sum of weights and by it the whole row, as it must.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu._attention_fetch import TileFetcher, packet_of, store_row
from xyntra_ep.tracea.kernels.gpu._attention_tiles import ACROSS, PACKET, AttentionTile, whole
from xyntra_ep.tracea.kernels.gpu._launch import gpu_of
from xyntra_ep.tracea.kernels.gpu._packets import is_multiple
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Group, Here
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import CallValue, Const, Fma, Rvalue, Select, Var, binary, f32, index, lt, vmax, vmin
from xyntra_ep.tracea.semantic_ir.swizzle import TileLayout

_LOWEST = float(np.finfo(np.float32).min)
_EXP = "exp_nonpositive"


class BlockCode:
    """``b`` is the finished kernel's builder after ``emit``; ``scores.buffers`` follow q, k, v and the result."""

    def __init__(self, op: Attention, tile: AttentionTile, context: BuildContext) -> None:
        self.op, self.tile = op, tile
        self.b = b = GpuBuilder(f"xy_attention_{op.inputs[0].dtype}_{tile.rows}x{tile.columns}", tile.threads)
        self._exchanges = gpu_of(context).subgroup >= ACROSS
        self._data = [b.buffer(name, o.dtype) for name, o in zip("qkv", op.inputs, strict=False)]
        self._out = b.buffer("out", op.output.dtype, writable=True)
        q, k = op.inputs[:2]
        self._rows, self._columns = q.shape[2], k.shape[2]
        domain: tuple[Size, ...] = (*q.shape[:3], self._columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self.scores = Epilogue(b, context.program, op.score, op.inputs, domain, groups, lane_group=3)
        for function in math_dependencies(_EXP, 1):
            b.function(function)

    def emit(self) -> None:
        b, tile, op = self.b, self.tile, self.op
        *self._batch, block = b.split(b.block, [*op.inputs[0].shape[:2], ceildiv(self._rows, tile.rows)])
        self._first = b.let("first", block * tile.rows)
        self._arrays = {
            name: b.shared(name, o.dtype, self._layout(name).elements) for name, o in zip("qkv", op.inputs, strict=False)
        }
        self._arrays["w"] = b.shared("w", DType.F32, self._layout("w").elements)
        if not self._exchanges:
            self._arrays["x"] = b.shared("x", DType.F32, self._layout("x").elements)
        q, k, v = (self._fetcher(name, data) for name, data in zip("qkv", self._data, strict=True))
        self._at = tile.lanes().emit(b, b.thread)
        self._tops = [b.variable("top", Const(f32(1), _LOWEST)) for _ in tile.rows_of()]
        self._totals = [b.variable("total", Const(f32(1), 0.0)) for _ in tile.rows_of()]
        results = [[b.variable("sum", Const(f32(1), 0.0)) for _ in range(PACKET * tile.packets)] for _ in tile.rows_of()]
        count = self._count()
        q.fetch(self._first)
        with b.when(lt(0, count)):
            k.fetch(index(0))
        b.commit()
        with b.loop("tile", 0, count) as at:
            b.wait(0)
            b.barrier()
            column = b.let("column", at * tile.columns)
            v.fetch(column)
            b.commit()
            self._weigh(self._products(), column, results)
            b.wait(0)
            b.barrier()
            following = b.let("following", at + 1)
            with b.when(lt(following, count)):
                k.fetch(following * tile.columns)
            b.commit()
            self._sum(results)
        b.wait(0)
        self._store(results)

    def _fetcher(self, name: str, data: Var) -> TileFetcher:
        b, tile, operand = self.b, self.tile, self.op.inputs["qkv".index(name)]
        packet = packet_of(operand)
        start = b.pointer("start", data, address(b, operand, self._batch))
        return TileFetcher(b, operand, start, tile.fetch(name, packet), tile.layout(name, packet), self._arrays[name])

    def _layout(self, name: str) -> TileLayout:
        return self.tile.layout(name, packet_of(self.op.inputs["qkv".index(name)]) if name in "qkv" else 1)

    def _count(self) -> Rvalue:
        """How many tiles of columns there are to see."""
        b, tile = self.b, self.tile
        count = b.param(ceildiv(self._columns, tile.columns))
        causal = find_causal(self.op.score)
        if causal is None or causal.masked != -math.inf:
            return count
        sight = b.let("sight", vmax(self._first + b.param(causal.reach + (tile.rows - 1)), 0))
        return b.let("count", vmin((sight + (tile.columns - 1)) // tile.columns, count))

    def _packets(self, name: str, rows: Sequence[Rvalue], column: Rvalue) -> list[list[Rvalue]]:
        """Of each row, the packet at ``column``."""
        b, layout = self.b, self._layout(name)
        return [b.load_packet(name, self._arrays[name], layout.emit(b, row, column), PACKET) for row in rows]

    def _products(self) -> list[list[Var]]:
        """q times k, by a thread's rows and columns."""
        b, tile = self.b, self.tile
        rows = [self._at["m"] + more for more in tile.rows_of()]
        columns = [self._at["x"] + more for more in tile.columns_of()]
        dots = [[b.variable("dot", Const(f32(1), 0.0)) for _ in columns] for _ in rows]
        with b.loop("d", 0, whole(tile.depth, PACKET), PACKET) as d:
            q = self._packets("q", rows, d)
            for j, column in enumerate(columns):
                [k] = self._packets("k", [column], d)
                for packet, totals in zip(q, dots, strict=True):
                    for x, y in zip(packet, k, strict=True):
                        b.assign(totals[j], Fma(x, y, totals[j]))
        return dots

    def _weigh(self, dots: Sequence[Sequence[Var]], first: Rvalue, results: Sequence[Sequence[Var]]) -> None:
        """Scores, and from them the weights of the tile at column ``first``; what was summed before is scaled down where the
        maximum has grown."""
        b, tile = self.b, self.tile
        here, columns = self.scores.at(b), []
        for more in tile.columns_of():
            column = b.let("t", first + self._at["x"] + more)
            within = None if is_multiple(self._columns, tile.columns) else lt(column, b.param(self._columns))
            columns.append((b.let("t", vmin(column, b.param(self._columns - 1))) if within is not None else column, within))
        scores = []
        for more, totals in zip(tile.rows_of(), dots, strict=True):
            row = b.let("s", self._first + self._at["m"] + more)
            if not is_multiple(self._rows, tile.rows):
                row = b.let("s", vmin(row, b.param(self._rows - 1)))
            scores.append(
                [self._score(here, row, column, within, dot) for (column, within), dot in zip(columns, totals, strict=True)]
            )
        best = [self._best(row) for row in scores]
        highest = self._agreed(best, vmax)
        layout = self._layout("w")
        for i, more in enumerate(tile.rows_of()):
            top = b.let("higher", vmax(highest[i], self._tops[i]))
            factor = b.let("factor", self._exp(self._tops[i] - top))
            b.assign(self._tops[i], top)
            b.assign(self._totals[i], self._totals[i] * factor)
            for result in results[i]:
                b.assign(result, result * factor)
            for at, score in zip(tile.columns_of(), scores[i], strict=True):
                weight = b.let("weight", self._exp(score - top))
                b.assign(self._totals[i], self._totals[i] + weight)
                b.store(self._arrays["w"], layout.emit(b, self._at["m"] + more, self._at["x"] + at), weight)

    def _score(self, here: Here, row: Rvalue, column: Rvalue, within: Rvalue | None, dot: Var) -> Rvalue:
        """Minus infinity past the last column."""
        score = here.value([*self._batch, row, column], dot, 1)
        return self.b.let("score", score if within is None else Select(within, score, Const(f32(1), -math.inf)))

    def _best(self, scores: Sequence[Rvalue]) -> Rvalue:
        best: Rvalue = Const(f32(1), _LOWEST)
        for score in scores:
            best = self.b.let("best", vmax(score, best))
        return best

    def _agreed(self, values: Sequence[Rvalue], combine: Callable[[Rvalue, Rvalue], Rvalue]) -> list[Rvalue]:
        """One value for each row from those of its eight threads: by exchange of registers, or else by shared memory."""
        b, tile = self.b, self.tile
        if self._exchanges:
            for mask in (1, 2, 4):
                values = [b.let("both", combine(b.let("other", b.subgroup_xor(value, mask)), value)) for value in values]
            return list(values)
        layout, rows = self._layout("x"), [self._at["m"] + more for more in tile.rows_of()]
        for row, value in zip(rows, values, strict=True):
            b.store(self._arrays["x"], layout.emit(b, row, self._at["x"]), value)
        b.barrier()
        found = []
        for row in rows:
            first, *others = (v for at in range(0, ACROSS, PACKET) for [p] in [self._packets("x", [row], index(at))] for v in p)
            for other in others:
                first = b.let("both", combine(other, first))
            found.append(first)
        return found

    def _exp(self, x: Rvalue) -> Rvalue:
        return CallValue(math_function(_EXP, 1), (x,))

    def _sum(self, results: Sequence[Sequence[Var]]) -> None:
        """Add what the weights of a tile make of v."""
        b, tile = self.b, self.tile
        rows = [self._at["m"] + more for more in tile.rows_of()]
        last = whole(tile.width, PACKET) - PACKET  # threads past it read what others read, and store nothing
        step = ACROSS * PACKET
        columns = [b.let("e", vmin(self._at["x"] * PACKET + i * step, last)) for i in range(tile.packets)]
        with b.loop("t", 0, tile.columns, PACKET) as t:
            weights = self._packets("w", rows, t)
            for i in range(PACKET):
                v = [value for column in columns for [p] in [self._packets("v", [t + i], column)] for value in p]
                for packet, totals in zip(weights, results, strict=True):
                    for value, total in zip(v, totals, strict=True):
                        b.assign(total, Fma(packet[i], value, total))

    def _store(self, results: Sequence[Sequence[Var]]) -> None:
        b, tile, output = self.b, self.tile, self.op.output
        totals = self._agreed(self._totals, lambda a, c: a + c)
        step = ACROSS * PACKET
        for more, total, values in zip(tile.rows_of(), totals, results, strict=True):
            scale = b.let("scale", 1.0 / total)
            row = b.let("s", self._first + self._at["m"] + more)
            with nullcontext() if is_multiple(self._rows, tile.rows) else b.when(lt(row, b.param(self._rows))):
                target = b.pointer("start", self._out, address(b, output, [*self._batch, row]))
                scaled = [b.let("y", self._shown(value * scale, total)) for value in values]
                for i in range(tile.packets):
                    first, part = self._at["x"] * PACKET + i * step, scaled[i * PACKET : (i + 1) * PACKET]
                    store_row(b, output, target, first, part, surely=tile.width % step == 0)

    def _shown(self, result: Rvalue, total: Rvalue) -> Rvalue:
        """0 where nothing has weight, if that is wanted."""
        zero = Const(f32(1), 0.0)
        return Select(binary("lt", zero, total), result, zero) if self.op.nan_to_zero else result
