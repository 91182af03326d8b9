"""GeluTanh: gelu in the tanh form that GPT-2 was trained with."""

from __future__ import annotations

import math

import numpy as np
from onnxscript import script

from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def GeluTanh(x: Tensor) -> Tensor:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), of any shape."""
    return op.Gelu(x, approximate="tanh")


def reference(x: Array) -> tuple[Array, ...]:
    return (0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),)


CUSTOM_OPS = [
    CustomOp(
        name="GeluTanh",
        function=GeluTanh,
        reference=reference,
        examples=[Example(shapes=[(2, 5, 33)])],
        max_err=1e-6,  # one float32 tanh
    )
]
