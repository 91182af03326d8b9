"""Scores of a single row of q, as a decoder's step has it: k is read once, in place, by dot products along d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._attention_shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu._attention_tiles import Scores
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Offset, Reduce, Rvalue, Var, f32, index


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleRow:
    k: KernelBuilder
    shape: AttentionShape
    scores: Scores
    head: Sequence[Rvalue]

    def score(self, q: Offset, keys: Offset, column: Rvalue, here: Rvalue, out: Var) -> None:
        """Scores of columns [column, column + here) to ``out``, whole panels with -inf past the end."""
        self._products(q, keys, column, here, out)
        k, lanes, panel = self.k, self.shape.tile.lanes, self.shape.tile.columns
        padded = k.let("padded", (here + (panel - 1)) // panel * panel)
        with k.loop("t", 0, padded, lanes) as t:
            at = column + t
            left = k.let("left", here - t)
            with k.when(self.scores.in_sight(index(0), at, left, lanes)):
                self._apply(out, t, at, None)
            with k.otherwise():
                self._apply(out, t, at, left)

    def _apply(self, out: Var, t: Rvalue, column: Rvalue, left: Rvalue | None) -> None:
        k, lanes = self.k, self.shape.tile.lanes
        product = k.let("product", k.load(out, t, lanes))
        value = self.scores.epilogue.at(k).value([*self.head, index(0), column], product, lanes, left)
        k.store(out, t, self.scores.masked(k, value, index(0), column, left))

    def _products(self, q: Offset, keys: Offset, column: Rvalue, here: Rvalue, out: Var) -> None:
        k, lanes, depth = self.k, self.shape.tile.lanes, self.shape.depth
        assert isinstance(depth, int)
        padded = -(-max(depth, 1) // lanes) * lanes
        query = k.array("query", DType.F32, padded)  # q may have any strides
        k.store(query, padded - lanes, Const(f32(lanes), 0.0))
        with k.loop("d", 0, depth) as d:
            k.store(query, d, k.load(q, d * k.param(self.shape.q.strides[3])))
        with k.loop("t", 0, here) as t:
            row = k.pointer("key", keys, (column + t) * k.param(self.shape.k.strides[2]))
            total: Rvalue = Const(f32(lanes), 0.0)
            for first in range(0, depth, lanes):
                count = index(depth - first) if depth - first < lanes else None
                total = k.let("total", Fma(k.load(query, first, lanes), k.load(row, first, lanes, count), total))
            k.store(out, t, Reduce("add", total))
