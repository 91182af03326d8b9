"""The running softmax of a block of rows: maximum, total of the weights, and the factor by which earlier sums shrink.

    new = max(old, scores);  weights = exp(scores - new);  factor = exp(old - new);  total = total * factor + sum(weights)

A row that has seen nothing but -inf subtracts 0 instead, so that what comes later still counts; ``scale`` makes it NaN at the
end. The weight of a score far below the maximum is 2^-126, not 0: too small to be seen beside the maximum's 1.
"""

from __future__ import annotations

import math

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._attention_shape import AttentionShape
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    CallValue,
    Const,
    Convert,
    Reduce,
    Rvalue,
    Select,
    Var,
    binary,
    f32,
    le,
    lt,
    splat,
    vmax,
    vmin,
)

LOG2E = math.log2(math.e)
LOWEST = float("-inf")
UNDERFLOW = 104.0  # exp(-104) is below the smallest f32


class RowStates:
    """Arrays on the stack, one element per row of a block."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape) -> None:
        self._k = kernel
        self._shape = shape
        self.maxima = kernel.array("maxima", DType.F32, shape.tile.rows)
        self.totals = kernel.array("totals", DType.F32, shape.tile.rows)
        self.factors = kernel.array("factors", DType.F32, shape.tile.rows)

    def reset(self, rows: Rvalue) -> None:
        k = self._k
        with k.loop("i", 0, rows) as i:
            k.store(self.maxima, i, Const(f32(1), LOWEST))
            k.store(self.totals, i, Const(f32(1), 0.0))

    def weigh(self, rows: Rvalue, scores: Var, columns: Rvalue) -> None:
        """Turn ``columns`` scores of each row into weights, in place. Whole panels are read: past the end lies -inf."""
        k, tile = self._k, self._shape.tile
        lanes, vectors = tile.lanes, range(tile.vectors)
        with k.loop("i", 0, rows) as i:
            row = k.pointer("row", scores, i * self._shape.score_stride)
            tops = [k.variable("top", Const(f32(lanes), LOWEST)) for _ in vectors]
            with k.loop("t", 0, columns, tile.columns) as t:
                for j in vectors:
                    k.assign(tops[j], vmax(k.load(row, t + j * lanes, lanes), tops[j]))  # leaves NaN out
            top: Rvalue = tops[0]
            for other in tops[1:]:
                top = vmax(top, other)
            old = k.let("old", k.load(self.maxima, i))
            new = k.let("new", vmax(Reduce("max", top), old))
            base = k.let("base", Select(binary("eq", new, LOWEST), Const(f32(1), 0.0), new))
            bases = k.let("bases", splat(base, lanes))
            parts = [k.variable("part", Const(f32(lanes), 0.0)) for _ in vectors]
            with k.loop("t", 0, columns, tile.columns) as t:
                for j in vectors:
                    weight = k.let("weight", self._exp(k.load(row, t + j * lanes, lanes) - bases, lanes))
                    k.store(row, t + j * lanes, weight)
                    k.assign(parts[j], parts[j] + weight)
            total: Rvalue = parts[0]
            for other in parts[1:]:
                total = total + other
            factor = k.let("factor", self._exp(old - base, 1))
            k.store(self.maxima, i, new)
            k.store(self.factors, i, factor)
            k.store(self.totals, i, k.load(self.totals, i) * factor + Reduce("add", total))

    def _exp(self, x: Rvalue, lanes: int) -> Rvalue:
        """e^x for x <= 0. The product comes after the difference: the lowest float times log2(e) would be -inf."""
        for function in math_dependencies("exp2_nonpositive", lanes):
            self._k.function(function)
        return CallValue(math_function("exp2_nonpositive", lanes), (x * LOG2E,))

    def may_weigh(self, rows: Rvalue, score: float) -> Rvalue:
        """Whether ``score`` may have a weight that is not 0 in some row, by the maxima so far."""
        k = self._k
        lowest = k.variable("lowest", Const(f32(1), float("inf")))
        with k.loop("i", 0, rows) as i:
            k.assign(lowest, vmin(k.load(self.maxima, i), lowest))
        return Convert(INDEX, le(lowest, Const(f32(1), score + UNDERFLOW)))

    def scale(self, row: Rvalue) -> tuple[Rvalue, Rvalue]:
        """(what the row's weighted sums are to be multiplied with, mask of a row that has a softmax at all)."""
        k = self._k
        total, top = k.let("total", k.load(self.totals, row)), k.let("top", k.load(self.maxima, row))
        exists = binary("and", lt(Const(f32(1), LOWEST), top), binary("eq", total, total))
        # No columns at all: the sum of nothing, 0.
        none = Select(lt(0, k.param(self._shape.columns)), Const(f32(1), math.nan), Const(f32(1), 0.0))
        scale = Select(binary("eq", top, LOWEST), none, 1.0 / total)
        return k.let("scale", scale), exists
