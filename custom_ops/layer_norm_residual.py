"""LayerNormResidual: add, then normalise the last axis; gives both, for pre-norm blocks need the sum."""

from __future__ import annotations

import numpy as np
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def LayerNormResidual(x: Tensor, residual: Tensor, scale: Tensor, bias: Tensor, epsilon: float = 1e-5) -> tuple[Tensor, Tensor]:
    """`scale` and `bias` are [N], N the last axis; the outputs are the normalised sum and the sum itself."""
    total = op.Add(x, residual)
    normalised = op.LayerNormalization(total, scale, bias, axis=-1, epsilon=epsilon)
    return normalised, total


def reference(x: Array, residual: Array, scale: Array, bias: Array, *, epsilon: float = 1e-5) -> tuple[Array, ...]:
    total = x + residual
    centred = total - total.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)
    return centred / deviation * scale + bias, total


CUSTOM_OPS = [
    CustomOp(
        name="LayerNormResidual",
        function=LayerNormResidual,
        reference=reference,
        examples=[
            Example(shapes=[(2, 5, 32), (2, 5, 32), (32,), (32,)]),
            Example(shapes=[(3, 8), (3, 8), (8,), (8,)], attributes={"epsilon": 0.5}),
        ],
        max_err=2e-6,  # float32 mean and variance over 32 elements
    )
]
