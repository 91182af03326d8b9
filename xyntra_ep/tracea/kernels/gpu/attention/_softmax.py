"""Online softmax of a block's rows (Dao, "FlashAttention-2", 2023): scores of a tile of columns become weights, and what was
summed before is scaled down where a row's maximum has grown.

A thread keeps the largest score and the weights' sum of its rows: the maximum is agreed on by the threads of a row for every
tile, the sum is put together at the end.

The maximum leaves NaN out, and a row without any finite score has the lowest float for one: weights are then 0 where a score is
minus infinity and NaN where it is NaN or infinity, which reaches the sum of weights and by it the whole row, as it must.

A score that is a multiple of its product (`score_multiple.py`) is left alone: what is called a score here is then the product.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import store_row
from xyntra_ep.tracea.kernels.gpu.attention._space import or_zero
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.kernels.shared.index import Group
from xyntra_ep.tracea.kernels.shared.score_multiple import multiple_of
from xyntra_ep.tracea.kernels.shared.sight import Sight
from xyntra_ep.tracea.kernels.variant import ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_dependencies
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Select, Var, f32, index, lt, vmax, vmin

LOWEST = float(np.finfo(np.float32).min)
_WAYS = 4  # a row's scores that are compared side by side, so that none waits for another


class Share(ABC):
    """Which scores and results of a block's tile a thread has, and how weights are made of them. ``exponential``: the function
    of the math library that it calls."""

    exponential: str

    def __init__(self, b: GpuBuilder) -> None:
        self.b = b

    @abstractmethod
    def rows(self) -> list[Rvalue]:
        """Rows of the block's tile of which the thread has scores and results."""

    @abstractmethod
    def columns(self) -> list[Rvalue]:
        """Columns of the tile of which the thread has scores."""

    @abstractmethod
    def results(self) -> list[Rvalue]:
        """Columns of the result where the thread has neighbours."""

    @abstractmethod
    def neighbours(self) -> int:
        """How many of them."""

    @abstractmethod
    def result_columns(self) -> int:
        """Columns of the result that all threads of a row have together."""

    @abstractmethod
    def exp(self, x: Rvalue, factor: float) -> Rvalue:
        """e^(factor x) for x <= 0."""

    @abstractmethod
    def agreed(self, values: Sequence[Rvalue], combine: Callable[[Rvalue, Rvalue], Rvalue]) -> list[Rvalue]:
        """One value for each row from those of its threads."""

    def larger(self, x: Rvalue, y: Rvalue) -> Rvalue:
        """Of a score and a number."""
        return vmax(x, y)

    def weigh(
        self,
        scores: Sequence[Sequence[Rvalue]],
        tops: Sequence[Rvalue],
        factor: float,
        then: Callable[[list[list[Rvalue]]], None],
    ) -> None:
        """``then`` takes the weights by row, of which ``tops`` are no less than the largest score; differences are to be
        multiplied by ``factor``. It may be called for several branches."""
        then(
            [[self.b.let("weight", self.exp(score - top, factor)) for score in of] for of, top in zip(scores, tops, strict=True)]
        )


class OnlineSoftmax:
    """The rows of one block after the other (`begin`). ``rows`` and ``columns``: of its tiles; ``sums``: what its weights have
    made of v so far, by the thread's rows and columns of the result."""

    def __init__(self, b: GpuBuilder, op: Attention, out: Pointer, rows: int, columns: int, exponential: str) -> None:
        self.b, self.op = b, op
        self._out, self._tile_rows, self._tile_columns = out, rows, columns
        q, k = op.inputs[:2]
        self.rows, self.columns = q.shape[2], k.shape[2]
        domain: tuple[Size, ...] = (*q.shape[:3], self.columns)
        groups = [Group(axes=(i,), extents=(extent,)) for i, extent in enumerate(domain)]
        self._score_of = Epilogue(b, op.score, op.inputs, domain, groups, lane_group=3)
        multiple = multiple_of(op.score)
        self._is_raw = multiple is not None
        self._factor = 1.0 if multiple is None else multiple
        for function in math_dependencies(exponential, 1):
            b.function(function)

    @property
    def buffers(self) -> tuple[ValueBuffer, ...]:
        """q, k, v, the result, and what scores are made of besides."""
        known = (*self.op.inputs[:3], self.op.output)
        return (*(ValueBuffer(value=operand.value) for operand in known), *self._score_of.buffers)

    def place(self, block: Rvalue) -> tuple[list[Rvalue], Rvalue]:
        """Of block number ``block``: the batch and the head, and its first row."""
        b = self.b
        *batch, number = b.split(block, [*self.op.inputs[0].shape[:2], ceildiv(self.rows, self._tile_rows)])
        return batch, b.let("first", number * self._tile_rows)

    def tiles_in_sight(self, sight: Sight, batch: Sequence[Rvalue], first: Rvalue) -> tuple[Rvalue, Rvalue]:
        """The first tile of columns that the block's rows from ``first`` on see, and the one behind the last."""
        b = self.b
        count: Rvalue = index(self._tile_rows)
        if not is_multiple(self.rows, self._tile_rows):
            count = b.let("count", vmin(count, b.param(self.rows) - first))
        sight.enter(batch, first, count)
        return sight.panels()

    def begin(self, share: Share, batch: Sequence[Rvalue], first: Rvalue) -> None:
        """Rows from ``first`` on, of which nothing is known."""
        b, zero = self.b, Const(f32(1), 0.0)
        self._share, self._batch, self._first = share, batch, first
        self.tops = [b.variable("top", Const(f32(1), LOWEST)) for _ in share.rows()]
        self._totals = [b.variable("total", zero) for _ in share.rows()]
        each = len(share.results()) * share.neighbours()
        self.sums = [[b.variable("sum", zero) for _ in range(each)] for _ in share.rows()]

    def scores(self, dots: Sequence[Sequence[Var]], first: Rvalue, grown: Callable[[int, Rvalue], None]) -> list[list[Rvalue]]:
        """Those of the tile at column ``first``, from what q times k is by the thread's rows and columns. ``grown`` is told of
        rows whose maximum has grown, and by which factor their weights so far were too large."""
        b, share = self.b, self._share
        here, columns = self._score_of.at(b), []
        for place in share.columns():
            column = b.let("t", first + place)
            within = None if is_multiple(self.columns, self._tile_columns) else lt(column, b.param(self.columns))
            columns.append((b.let("t", vmin(column, b.param(self.columns - 1))) if within is not None else column, within))
        scores = []
        for place, totals in zip(share.rows(), dots, strict=True):
            row = b.let("s", self._first + place)
            if not is_multiple(self.rows, self._tile_rows):
                row = b.let("s", vmin(row, b.param(self.rows - 1)))
            scores.append([self._score(here, row, *at, dot) for at, dot in zip(columns, totals, strict=True)])
        highest = share.agreed([self._best(row) for row in scores], share.larger)
        for i, (best, top, total) in enumerate(zip(highest, self.tops, self._totals, strict=True)):
            with b.when(lt(top, best)):  # it grows in the first tiles, and hardly ever after them
                factor = b.let("factor", share.exp(top - best, self._factor))
                b.assign(top, best)
                b.assign(total, total * factor)
                grown(i, factor)
        return scores

    def weigh(self, scores: Sequence[Sequence[Rvalue]], then: Callable[[list[list[Rvalue]]], None]) -> None:
        """``then`` takes the weights of a tile by row, which it does for each branch that makes them; it may not define what is
        used behind it."""

        def take(weights: list[list[Rvalue]]) -> None:
            for of_row, total in zip(weights, self._totals, strict=True):
                self.b.assign(total, total + self._all(of_row, "part", lambda x, y: x + y))
            then(weights)

        self._share.weigh(scores, self.tops, self._factor, take)

    def scale(self, row: int, factor: Rvalue) -> None:
        """What is summed in the thread's row."""
        for value in self.sums[row]:
            self.b.assign(value, value * factor)

    def _all(self, values: Sequence[Rvalue], stem: str, combine: Callable[[Rvalue, Rvalue], Rvalue]) -> Rvalue:
        """All of them, in pairs, then in pairs of these: few have to wait for each other."""
        while len(values) > 1:
            pairs = [self.b.let(stem, combine(x, y)) for x, y in zip(values[::2], values[1::2], strict=False)]
            values = [*pairs, *values[2 * len(pairs) :]]
        return values[0]

    def _score(self, here: Here, row: Rvalue, column: Rvalue, within: Rvalue | None, dot: Var) -> Rvalue:
        """Minus infinity past the last column."""
        score = dot if self._is_raw else here.value([*self._batch, row, column], dot, 1)
        if self._is_raw and within is None:
            return dot
        return self.b.let("score", score if within is None else Select(within, score, Const(f32(1), -math.inf)))

    def _best(self, scores: Sequence[Rvalue]) -> Rvalue:
        """The largest, NaN left out, no less than the lowest float."""
        b, larger = self.b, self._share.larger
        kept: list[Rvalue] = [Const(f32(1), LOWEST)] * min(_WAYS, len(scores))
        for i, score in enumerate(scores):
            kept[i % _WAYS] = b.let("best", larger(score, kept[i % _WAYS]))
        return self._all(kept, "best", larger)

    def store(self) -> None:
        """The results: sums over their rows' weights."""
        b, output, share = self.b, self.op.output, self._share
        totals, columns, many = share.agreed(self._totals, lambda a, c: a + c), share.results(), share.neighbours()
        surely = is_multiple(output.shape[3], share.result_columns())
        for place, total, values in zip(share.rows(), totals, self.sums, strict=True):
            scale = b.let("scale", 1.0 / total)
            row = b.let("s", self._first + place)
            with nullcontext() if is_multiple(self.rows, self._tile_rows) else b.when(lt(row, b.param(self.rows))):
                target = b.pointer("start", self._out, address(b, output, [*self._batch, row]))
                scaled = [b.let("y", or_zero(self.op, value * scale, total)) for value in values]
                for i, column in enumerate(columns):
                    store_row(b, output, target, column, scaled[i * many : (i + 1) * many], surely)
