"""Attention: softmax of the products of queries and keys, times the values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops.core_op import Body, unlike
from xyntra_ep.tracea.core_ir.ops.memory import Memory, evaluate_expr
from xyntra_ep.tracea.core_ir.ops.product import ProductOp, rounded

SOFTMAX_FLOPS = 8  # of one weight: scale, maximum, difference, exponential (4), sum


class NoSoftmax(StrEnum):
    """What attention gives for a row whose scores have no softmax: all of them are -inf, or one is NaN or inf."""

    NAN = "nan"
    UNSEEN_ZERO = "unseen_zero"  # zeros where all are -inf, as ONNX's Attention with a mask
    ZERO = "zero"  # zeros in any case: where(isnan(p), 0, p), which PyTorch writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention(ProductOp):
    """out[b, h, s, e] = sum_t softmax_t(score)[t] * v[b, h, t, e], score = score(acc = sum_d q[b, h, s, d] * k[b, h, t, d]).

    inputs: q [B,H,S,D], k [B,H,T,D], v [B,H,T,E] (grouped-query heads by stride tricks are the lowering's business), then what
    ``score`` reads; its domain is (b, h, s, t). ``product`` is not INT8W; of BF16 and F16 the softmax weights are rounded, too.
    """

    score: Expr
    no_softmax: NoSoftmax

    naming_rank: ClassVar[int] = 3

    @property
    def reads_directly(self) -> int:
        return 3

    def expressions(self) -> list[Body]:
        return [Body(self.score, 4, 1)]

    def problems(self) -> Iterator[str]:
        q, k, v = (o.shape for o in self.inputs[:3])
        yield from unlike("k", k, (q[0], q[1], k[2], q[3]))
        yield from unlike("v", v[:3], k[:3])
        yield from unlike("the output", self.output.shape, (*q[:3], v[3]))

    def interpret(self, memory: Memory) -> None:
        q, k, v = (rounded(memory.read(o), self.product) for o in self.inputs[:3])
        raw = np.matmul(q, np.swapaxes(k, -1, -2))
        score = evaluate_expr(self.score, memory, self.inputs, raw.shape, {0: raw})
        top = score.max(axis=-1, keepdims=True, initial=-np.inf)
        weight = np.exp(score - top)
        total = weight.sum(axis=-1, keepdims=True)
        probability = rounded(weight, self.product) / total
        if self.no_softmax is NoSoftmax.ZERO:
            probability = np.where(np.isnan(probability), 0.0, probability)
        if self.no_softmax is NoSoftmax.UNSEEN_ZERO:
            probability = np.where(top == -np.inf, 0.0, probability)
        memory.write(self.output, np.matmul(probability, v))

    def flops(self) -> Size:
        q, v = self.inputs[0].shape, self.inputs[2].shape
        return product(q[:3]) * v[2] * (2 * (q[3] + v[3]) + SOFTMAX_FLOPS)
