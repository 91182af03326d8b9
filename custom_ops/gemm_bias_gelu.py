"""GemmBiasGelu: gelu(x w + bias), the first half of a transformer's MLP."""

from __future__ import annotations

from onnxscript import script

from xyntra_custom_ops._numpy import gelu
from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def GemmBiasGelu(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    """`x` is [..., K], `w` [K, N], `bias` [N]; the exact gelu."""
    return op.Gelu(op.Add(op.MatMul(x, w), bias))


def reference(x: Array, w: Array, bias: Array) -> tuple[Array, ...]:
    return (gelu(x @ w + bias),)


CUSTOM_OPS = [
    CustomOp(
        name="GemmBiasGelu",
        function=GemmBiasGelu,
        reference=reference,
        examples=[Example(shapes=[(2, 5, 16), (16, 24), (24,)]), Example(shapes=[(1, 7), (7, 3), (3,)])],
        max_err=2e-6,  # one float32 product of K <= 16, one erf
    )
]
