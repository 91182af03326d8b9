"""Depthwise convolution over channels-last images: lanes are channels, a tile is a run of neighbouring pixels.

for ky in [first, stop):
  b[kx] = w[ky][kx]                                  # a kernel row stays in registers
  for each column of x that the tile needs:          # loaded once
    for every pixel i and tap kx that meet there: acc[i] += x[column] * b[kx]
"""

from __future__ import annotations

import math

from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.cpu.conv._blocking import (
    UNIT_SIZES,
    Blocking,
    blocking_refusal,
    blocking_space,
    choose_blocking,
    work_steps,
)
from xyntra_ep.tracea.kernels.cpu.conv._halo import halo_ns
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, moving_ns, typical, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv._tile import TileFunction
from xyntra_ep.tracea.kernels.cpu.conv._walk import build_conv
from xyntra_ep.tracea.kernels.cpu.gemm._tile import as_float
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.nodes import Fma, Pointer, Rvalue

# Bytes of 9 bits, a sign among them: a float holds the sum of so many of their products.
_EXACT = 2**24 // (255 * 128) - 1
_ROW_IN_REGISTERS = 8  # taps; of longer rows each weight is loaded for its multiplications


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.group == 1:
        return "one group"
    if op.inputs[1].shape[:2] != (op.group, 1):
        return "more than one channel in or out per group"
    of_integers = op.product is Product.I32
    if of_integers and math.prod(fixed for fixed in op.inputs[1].shape[2:] if isinstance(fixed, int)) > _EXACT:
        return f"more than {_EXACT} products of bytes in a sum of floats"
    return why_not_channels_last(op, context, of_integers)


def accumulate(f: TileFunction) -> None:
    f.fetch_outputs()
    if f.code.x_is_far:
        _fetch_next_tile(f)
    f.each_width(lambda count: _rows(f, count))


def _fetch_next_tile(f: TileFunction) -> None:
    """Ask for what the next tile of the row is the first to read: columns of the last kernel row; the tiles above it read the
    other rows. These channels of pixel after pixel are no stream that processors see."""
    line, step = f.code.shape.x, f.code.shape.x_strides[2]
    first = (f.tile.size - 1) * line.stride + (line.kernel - 1) * line.dilation + 1
    newest = f.let("newest", f.arg["at"] + (f.arg["stop"] - 1) * f.x_row_step)
    for column in range(first, first + f.tile.size * line.stride):
        f.prefetch(f.code.x, newest + column * step, locality=2)


def _rows(f: TileFunction, count: Rvalue | None) -> None:
    code, shape = f.code, f.code.shape
    taps = shape.x.kernel
    with f.loop("ky", f.arg["first"], f.arg["stop"]) as ky:
        x = f.pointer("x_row", code.x, f.arg["at"] + ky * f.x_row_step)
        w = f.pointer("w_row", code.w, f.arg["panel"] + ky * (taps * code.lanes))
        if taps > _ROW_IN_REGISTERS:
            _long_row(f, x, w, count)
            return
        b = [f.let("b", f.load(w, kx * code.lanes, code.lanes)) for kx in range(taps)]
        for column, meetings in f.columns():
            value = f.column(x, column, count)
            for i, kx in meetings:
                f.assign(f.acc[i][0], Fma(value, b[kx], f.acc[i][0]))


def _long_row(f: TileFunction, x: Pointer, w: Pointer, count: Rvalue | None) -> None:
    """Every pixel meets every tap here: rows with that many taps have a halo."""
    code, line, step = f.code, f.code.shape.x, f.code.shape.x_strides[2]
    with f.loop("kx", 0, line.kernel) as kx:
        b = f.let("b", f.load(w, kx * code.lanes, code.lanes))
        for i in range(f.tile.size):
            at = kx * (line.dilation * step) + i * (line.stride * step)
            f.assign(f.acc[i][0], Fma(as_float(f.load(x, at, code.lanes, count)), b, f.acc[i][0]))


def _depthwise_ns(op: Conv, config: Config, context: BuildContext) -> float:
    shape, caps = conv_shape(op), context.caps
    steps = work_steps(shape, config["pixels"], 1, caps)
    return steps * caps.lanes * 2 / caps.fma_gflops + typical(moving_ns(shape)) + halo_ns(shape, checks=True)


VARIANTS = [
    Variant(
        name="conv.nhwc_depthwise",
        op=Conv,
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        given=UNIT_SIZES,
        cost_ns=_depthwise_ns,
        build=lambda op, config, context: build_conv(
            "conv_depthwise", conv_shape(op), Blocking.of(config), context, accumulate, checks=True
        ),
        rank=10,
    )
]
