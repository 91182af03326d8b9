"""Float64 meanings that several operators share."""

from __future__ import annotations

import math

import numpy as np

from xyntra_custom_ops._row import Array

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    """The exact form: x times the normal distribution function."""
    return np.asarray(0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))))


def conv(
    x: Array,
    w: Array,
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilations: tuple[int, int],
    group: int,
) -> Array:
    """2-D convolution as a sum over filter taps, each one strided slice of the padded input."""
    top, left, bottom, right = pads
    x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))
    batch, channels, height, width = x.shape
    filters, per_group, rows, columns = w.shape
    out_h = (height - dilations[0] * (rows - 1) - 1) // strides[0] + 1
    out_w = (width - dilations[1] * (columns - 1) - 1) // strides[1] + 1
    xg = x.reshape(batch, group, channels // group, height, width)
    wg = w.reshape(group, filters // group, per_group, rows, columns)
    out = np.zeros((batch, group, filters // group, out_h, out_w))
    for row in range(rows):
        for column in range(columns):
            top, left = row * dilations[0], column * dilations[1]
            taken = xg[
                ...,
                top : top + strides[0] * (out_h - 1) + 1 : strides[0],
                left : left + strides[1] * (out_w - 1) + 1 : strides[1],
            ]
            out += np.einsum("bgchw,gfc->bgfhw", taken, wg[..., row, column])
    return out.reshape(batch, filters, out_h, out_w)
