"""Products of few rows of q and k, as a decoder's step has them: k is read in place, by dot products along d.

A copy of k costs as much as its products with a dozen rows, so a single block of rows does without: k comes from memory once,
a vector of columns at a time, and meets every row while it lies in L1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu._attention_shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu._gemm_pack import sums_of
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Fma, Offset, Rvalue, Var, f32, index, vmin


@dataclass(frozen=True, slots=True, kw_only=True)
class FewRows:
    k: KernelBuilder
    shape: AttentionShape

    @property
    def _depth(self) -> int:
        assert isinstance(self.shape.depth, int)
        return self.shape.depth

    @property
    def _padded(self) -> int:
        """d in whole vectors."""
        lanes = self.shape.tile.lanes
        return -(-max(self._depth, 1) // lanes) * lanes

    def multiply(self, q: Offset, keys: Offset, rows: Rvalue, column: Rvalue, here: Rvalue, out: Var) -> None:
        """``rows`` rows times columns [column, column + here) to ``out``, whole vectors."""
        k, lanes = self.k, self.shape.tile.lanes
        query = self._query(q, rows)
        with k.loop("t", 0, here, lanes) as t:
            left = k.let("left", here - t)
            at = k.let("at", column + t)
            row_of_k = k.param(self.shape.k.strides[2])
            pointers = [k.pointer("key", keys, (at + vmin(left - 1, j)) * row_of_k) for j in range(lanes)]
            with k.loop("i", 0, rows) as i:
                products = self._products(Offset(query, i * self._padded), pointers)
                k.store(out, i * self.shape.score_stride + t, k.let("product", products))

    def _query(self, q: Offset, rows: Rvalue) -> Var:
        """A copy of q's rows, which may have any strides."""
        k, lanes = self.k, self.shape.tile.lanes
        query = k.array("query", DType.F32, self.shape.tile.rows * self._padded)
        with k.loop("i", 0, rows) as i:
            k.store(query, i * self._padded + (self._padded - lanes), Const(f32(lanes), 0.0))
            with k.loop("d", 0, self._depth) as d:
                element = k.load(q, i * k.param(self.shape.q.strides[2]) + d * k.param(self.shape.q.strides[3]))
                k.store(query, i * self._padded + d, element)
        return query

    def _products(self, query: Offset, keys: Sequence[Offset]) -> Rvalue:
        """A row of q times as many columns of k as there are lanes."""
        k, lanes = self.k, self.shape.tile.lanes
        firsts = range(0, self._depth, lanes)
        parts = [k.let("q", k.load(query, first, lanes)) for first in firsts]
        totals: list[Rvalue] = []
        for key in keys:  # one after the other, as they lie in memory
            total: Rvalue = Const(f32(lanes), 0.0)
            for first, part in zip(firsts, parts, strict=True):
                count = index(self._depth - first) if self._depth - first < lanes else None
                total = k.let("total", Fma(part, k.load(key, first, lanes, count), total))
            totals.append(total)
        return sums_of(k, totals)
