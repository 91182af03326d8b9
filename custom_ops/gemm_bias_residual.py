"""GemmBiasResidual: x w + bias + residual, the end of an attention block and of an MLP."""

from __future__ import annotations

from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def GemmBiasResidual(x: Tensor, w: Tensor, bias: Tensor, residual: Tensor) -> Tensor:
    """`x` is [..., K], `w` [K, N], `bias` [N]; `residual` has the shape of the result, [..., N]."""
    return op.Add(op.Add(op.MatMul(x, w), bias), residual)


def reference(x: Array, w: Array, bias: Array, residual: Array) -> tuple[Array, ...]:
    return (x @ w + bias + residual,)


CUSTOM_OPS = [
    CustomOp(
        name="GemmBiasResidual",
        function=GemmBiasResidual,
        reference=reference,
        examples=[Example(shapes=[(2, 5, 16), (16, 24), (24,), (2, 5, 24)])],
        max_err=1e-6,  # one float32 product of K = 16
    )
]
