"""ConvBiasResidualRelu: relu(conv(x, w) + bias + residual), the end of a residual block."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnxscript import script

from xyntra_custom_ops._numpy import conv
from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def ConvBiasResidualRelu(
    x: Tensor,
    w: Tensor,
    bias: Tensor,
    residual: Tensor,
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    group: int = 1,
) -> Tensor:
    """As ConvBiasRelu; `residual` has the shape of the result."""
    convolved = op.Conv(x, w, bias, strides=strides, pads=pads, dilations=dilations, group=group)
    return op.Relu(op.Add(convolved, residual))


def reference(
    x: Array,
    w: Array,
    bias: Array,
    residual: Array,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    group: int = 1,
) -> tuple[Array, ...]:
    convolved = conv(x, w, strides, pads, dilations, group)
    return (np.maximum(convolved + bias[:, None, None] + residual, 0.0),)


CUSTOM_OPS = [
    CustomOp(
        name="ConvBiasResidualRelu",
        function=ConvBiasResidualRelu,
        reference=reference,
        examples=[
            Example(shapes=[(1, 4, 6, 6), (8, 4, 1, 1), (8,), (1, 8, 6, 6)]),
            Example(
                shapes=[(1, 4, 7, 7), (4, 4, 3, 3), (4,), (1, 4, 4, 4)],
                attributes={"strides": (2, 2), "pads": (1, 1, 1, 1)},
            ),
        ],
        max_err=1e-6,  # float32 sums of at most 36 products
    )
]
