"""RmsNorm: divide by the root mean square of the last axis, no centring."""

from __future__ import annotations

import numpy as np
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def RmsNorm(x: Tensor, scale: Tensor, epsilon: float = 1e-6) -> Tensor:
    """`scale` is [N], N the last axis."""
    square = op.ReduceMean(op.Mul(x, x), op.Constant(value_ints=[-1]), keepdims=1)
    deviation = op.Sqrt(op.Add(square, op.CastLike(op.Constant(value_float=epsilon), x)))
    return op.Mul(op.Div(x, deviation), scale)


def reference(x: Array, scale: Array, *, epsilon: float = 1e-6) -> tuple[Array, ...]:
    return (x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon) * scale,)


CUSTOM_OPS = [
    CustomOp(
        name="RmsNorm",
        function=RmsNorm,
        reference=reference,
        examples=[
            Example(shapes=[(2, 5, 32), (32,)]),
            Example(shapes=[(3, 8), (8,)], attributes={"epsilon": 0.5}),
        ],
        max_err=1e-6,  # a float32 mean over 32 elements, a root, a quotient
    )
]
