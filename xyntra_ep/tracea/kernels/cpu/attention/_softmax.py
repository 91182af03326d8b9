"""The running softmax of a block of rows: maximum, total of the weights, and the factor by which earlier sums shrink.

    new = max(old, scores);  weights = exp(scores - new);  factor = exp(old - new);  total = total * factor + sum(weights)

What there is one of per row is computed for all rows of the block at once, as vectors over the rows. A row that has seen
nothing but -inf subtracts 0 instead, so that what comes later still counts; ``finish`` makes its scale NaN at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies, math_function
from xyntra_ep.tracea.semantic_ir.nodes import (
    INDEX,
    CallValue,
    Const,
    Convert,
    Fma,
    Offset,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighing:
    """How scores become weights. ``find_top``: finishes the scores of row i over some columns, and gives a vector whose largest
    lane is their maximum. ``target``: where weights go, with the scores' strides; None: in their place.
    ``function``: the power of two. ``factor``: what a score is to be multiplied with."""

    find_top: Callable[[Rvalue, Rvalue], Rvalue]
    target: Var | None = None
    function: str = "exp2_weight"
    factor: float = 1.0


class RowStates:
    """Arrays on the stack, one element per row of a block, whole vectors."""

    def __init__(self, kernel: KernelBuilder, shape: AttentionShape, scores: Var, how: Weighing) -> None:
        self._k = kernel
        self._shape = shape
        self._scores = scores
        self._how = how
        self._lanes = shape.tile.lanes
        self._firsts = range(0, shape.block_rows, self._lanes)
        self.maxima = self._array("maxima")
        self.totals = self._array("totals")
        self.factors = self._array("factors")
        self.scales = self._array("scales")
        self._tops = self._array("tops")  # of this pass
        self._bases = self._array("bases")
        self._parts = self._array("parts")

    def _array(self, stem: str) -> Var:
        return self._k.array(stem, DType.F32, len(self._firsts) * self._lanes)

    def reset(self) -> None:
        """Nothing seen yet. All elements are set: vectors over the rows also carry rows that the block does not have."""
        for first in self._firsts:
            for array, value in ((self.maxima, LOWEST), (self.totals, 0.0), (self._tops, LOWEST), (self._parts, 0.0)):
                self._k.store(array, first, Const(f32(self._lanes), value))

    def weigh(self, rows: Rvalue, columns: Rvalue) -> None:
        """Turn ``columns`` scores of each row into weights. Whole panels are read: past the end lies -inf."""
        k = self._k
        with k.loop("i", 0, rows) as i:
            k.store(self._tops, i, Reduce("max", self._how.find_top(i, columns)))
        for first in self._firsts:
            self._move_maxima(first)
        with k.loop("i", 0, rows) as i:
            self._exponentiate(i, columns)
        for first in self._firsts:
            total, factor, part = (self._vector(array, first) for array in (self.totals, self.factors, self._parts))
            k.store(self.totals, first, Fma(total, factor, part))

    def _vector(self, array: Var, first: int) -> Rvalue:
        return self._k.let("v", self._k.load(array, first, self._lanes))

    def _move_maxima(self, first: int) -> None:
        k = self._k
        old = self._vector(self.maxima, first)
        new = k.let("new", vmax(self._vector(self._tops, first), old))
        base = k.let("base", base_of(new))
        k.store(self.maxima, first, new)
        k.store(self._bases, first, base)
        k.store(self.factors, first, k.let("factor", self._weight(old - base)))

    def _exponentiate(self, i: Rvalue, columns: Rvalue) -> None:
        k, tile, lanes = self._k, self._shape.tile, self._lanes
        start = k.let("row", i * self._shape.score_stride)
        row = Offset(self._scores, start)
        target = row if self._how.target is None else Offset(self._how.target, start)
        base = k.let("base", splat(k.let("b", k.load(self._bases, i)), lanes))
        parts = [k.variable("part", Const(f32(lanes), 0.0)) for _ in range(tile.vectors)]
        with k.loop("t", 0, columns, tile.columns) as t:
            for j, part in enumerate(parts):
                weight = k.let("weight", self._weight(k.load(row, t + j * lanes, lanes) - base))
                k.store(target, t + j * lanes, weight)
                k.assign(part, part + weight)
        total: Rvalue = parts[0]
        for other in parts[1:]:
            total = total + other
        k.store(self._parts, i, Reduce("add", total))

    def _weight(self, x: Rvalue) -> Rvalue:
        return weight_of(self._k, x, self._how.factor, self._how.function)

    def may_weigh(self, rows: Rvalue, score: float) -> Rvalue:
        """Whether ``score`` may have a weight that is not 0 in some row, by the maxima so far."""
        k = self._k
        lowest = k.variable("lowest", Const(f32(1), float("inf")))
        with k.loop("i", 0, rows) as i:
            k.assign(lowest, vmin(k.load(self.maxima, i), lowest))
        return Convert(INDEX, le(lowest, Const(f32(1), score + UNDERFLOW))) & 1

    def finish(self) -> None:
        """Compute ``scales``."""
        k, lanes = self._k, self._lanes
        nothing = scale_of_nothing(k, self._shape, lanes)
        for first in self._firsts:
            k.store(self.scales, first, k.let("scale", scale_of(self._vector(self.totals, first), nothing)))


def weight_of(k: KernelBuilder, x: Rvalue, factor: float, function: str) -> Rvalue:
    """e^(factor x) for x <= 0. The product comes after the difference: the lowest float times log2(e) would be -inf."""
    lanes = x.type.lanes
    for needed in math_dependencies(function, lanes):
        k.function(needed)
    return CallValue(math_function(function, lanes), (x * (factor * LOG2E),))


def base_of(maximum: Rvalue) -> Rvalue:
    """What is subtracted from scores."""
    return Select(binary("eq", maximum, LOWEST), Const(maximum.type, 0.0), maximum)


def scale_of_nothing(k: KernelBuilder, shape: AttentionShape, lanes: int) -> Rvalue:
    """The scale of a row whose weights are all 0: NaN, it has no softmax, or 0 where that sees nothing."""
    # No columns at all: the sum of nothing, 0.
    unseen = 0.0 if shape.op.no_softmax is NoSoftmax.UNSEEN_ZERO else math.nan
    none = Select(lt(0, k.param(shape.columns)), Const(f32(1), unseen), Const(f32(1), 0.0))
    return k.let("nothing", splat(k.let("none", none), lanes))


def scale_of(total: Rvalue, nothing: Rvalue) -> Rvalue:
    """What a row's weighted sums are to be multiplied with. 0: all scores are -inf; the largest of others has weight 1, NaN is
    NaN."""
    return Select(binary("eq", total, 0.0), nothing, 1.0 / total)


def normalised(op: Attention, value: Rvalue, scale: Rvalue) -> Rvalue:
    """A vector of a row's weighted sums, of all its columns, times the row's scale."""
    result = value * scale
    if op.no_softmax is not NoSoftmax.ZERO:
        return result
    return Select(binary("eq", scale, scale), result, Const(result.type, 0.0))
