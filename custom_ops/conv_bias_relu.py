"""ConvBiasRelu: relu(conv(x, w) + bias), with batch normalisation already folded into w and bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnxscript import script

from xyntra_custom_ops._numpy import conv
from xyntra_custom_ops._row import XYNTRA, Array, CustomOp, Example, Tensor, op


@script(XYNTRA, default_opset=op)
def ConvBiasRelu(
    x: Tensor,
    w: Tensor,
    bias: Tensor,
    strides: Sequence[int] = (1, 1),
    pads: Sequence[int] = (0, 0, 0, 0),
    dilations: Sequence[int] = (1, 1),
    group: int = 1,
) -> Tensor:
    """`x` is [batch, C, H, W], `w` [F, C / group, R, S], `bias` [F]; attributes as in ONNX Conv."""
    return op.Relu(op.Conv(x, w, bias, strides=strides, pads=pads, dilations=dilations, group=group))


def reference(
    x: Array,
    w: Array,
    bias: Array,
    *,
    strides: tuple[int, int] = (1, 1),
    pads: tuple[int, int, int, int] = (0, 0, 0, 0),
    dilations: tuple[int, int] = (1, 1),
    group: int = 1,
) -> tuple[Array, ...]:
    return (np.maximum(conv(x, w, strides, pads, dilations, group) + bias[:, None, None], 0.0),)


CUSTOM_OPS = [
    CustomOp(
        name="ConvBiasRelu",
        function=ConvBiasRelu,
        reference=reference,
        examples=[
            Example(shapes=[(1, 3, 8, 9), (4, 3, 3, 3), (4,)]),
            Example(
                shapes=[(2, 4, 9, 9), (6, 2, 3, 3), (6,)],
                attributes={"strides": (2, 2), "pads": (1, 1, 1, 1), "group": 2},
            ),
            Example(
                shapes=[(1, 2, 9, 9), (2, 2, 3, 3), (2,)],
                attributes={"pads": (2, 0, 1, 2), "dilations": (2, 2)},
            ),
        ],
        max_err=1e-6,  # float32 sums of at most 27 products
    )
]
