"""Silu: x sigmoid(x), the gate of Llama's MLP."""

from __future__ import annotations

import numpy as np
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def Silu(x: Tensor) -> Tensor:
    """Also called swish; of any shape."""
    return op.Mul(x, op.Sigmoid(x))


def reference(x: Array) -> tuple[Array, ...]:
    return (x / (1.0 + np.exp(-x)),)


CUSTOM_OPS = [
    CustomOp(
        name="Silu",
        function=Silu,
        reference=reference,
        examples=[Example(shapes=[(2, 5, 33)])],
        max_err=1e-6,  # one float32 exponential
    )
]
