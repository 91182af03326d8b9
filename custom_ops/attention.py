"""Attention: softmax(q k^T * scale + mask) v, for heads that are already split."""

from __future__ import annotations

import numpy as np
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def Attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    """`q` is [batch, heads, S, D], `k` [batch, heads, T, D], `v` [batch, heads, T, E]; `mask` is added and
    broadcasts to [batch, heads, S, T]."""
    scores = op.MatMul(q, op.Transpose(k, perm=[0, 1, 3, 2]))
    factor = op.CastLike(op.Constant(value_float=scale), q)
    weights = op.Softmax(op.Add(op.Mul(scores, factor), mask), axis=-1)
    return op.MatMul(weights, v)


def reference(q: Array, k: Array, v: Array, mask: Array, *, scale: float) -> tuple[Array, ...]:
    scores = q @ np.swapaxes(k, -1, -2) * scale + mask
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True) @ v,)


CUSTOM_OPS = [
    CustomOp(
        name="Attention",
        function=Attention,
        reference=reference,
        examples=[
            Example(
                shapes=[(2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), (2, 1, 1, 7)],
                attributes={"scale": 0.35355339},
            ),
            Example(shapes=[(1, 2, 1, 4), (1, 2, 9, 4), (1, 2, 9, 4), (1, 9)], attributes={"scale": 1.0}),
        ],
        max_err=2e-6,  # two short float32 products and an exponential
    )
]
