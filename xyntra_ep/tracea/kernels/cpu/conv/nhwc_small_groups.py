"""Convolution with groups of 2, 4 or 8 channels over channels-last images: lanes are the channels of several groups.

for ky in [first, stop):
  for each column of x that the tile needs:          # loaded once, for all groups of the lanes
    for c of a group:  a = channel c of every lane's own group                           # one shuffle
      for every pixel i and tap kx that meet there: acc[i] += a * w[ky][kx][c]

A shuffle serves as many multiplications as a column meets taps: of a kernel of 3 columns it takes a quarter of the time, where
vectors as narrow as a group leave three quarters and more of the lanes empty.
"""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import (
    UNIT_SIZES,
    Blocking,
    blocking_refusal,
    blocking_space,
    choose_blocking,
    work_steps,
)
from xyntra_ep.tracea.kernels.cpu.conv._halo import halo_ns
from xyntra_ep.tracea.kernels.cpu.conv._shape import ConvShape, conv_shape, moving_ns, typical, why_not_channels_last
from xyntra_ep.tracea.kernels.cpu.conv._tile import TileFunction
from xyntra_ep.tracea.kernels.cpu.conv._walk import build_conv
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.nodes import Fma, Rvalue, Shuffle, index

_MOST_WEIGHTS = 32  # vectors of a kernel row: a tile is straight-line code


def admits(op: Conv, context: BuildContext) -> str | None:
    outputs, size, *_ = op.inputs[1].shape
    if op.group == 1:
        return "one group"
    if size == 1 or outputs != op.group * size:
        return "a group has not as many outputs as inputs, and more than one"
    if not isinstance(size, int) or size >= context.caps.lanes or context.caps.lanes % size:
        return f"a vector does not hold several groups of {size} channels"
    if (why := why_not_channels_last(op, context)) is not None:
        return why
    taps = small_groups(op).x.kernel
    return None if taps * size <= _MOST_WEIGHTS else f"kernel rows of {taps} taps"


def small_groups(op: Conv) -> ConvShape:
    """``op`` as a convolution whose output channels see only the vector of x that they are in."""
    shape = conv_shape(op)
    return replace(shape, groups=1, cout=shape.groups * shape.cout, depthwise=True)


def accumulate(f: TileFunction) -> None:
    f.fetch_outputs()
    f.each_width(lambda count: _rows(f, count))


def _rows(f: TileFunction, count: Rvalue | None) -> None:
    code, shape = f.code, f.code.shape
    size, lanes = shape.cin, f.code.lanes
    with f.loop("ky", f.arg["first"], f.arg["stop"]) as ky:
        x = f.pointer("x_row", code.x, f.arg["at"] + ky * f.x_row_step)
        w = f.pointer("w_row", code.w, f.arg["panel"] + ky * (shape.x.kernel * size * lanes))
        for column, meetings in f.columns():
            value = f.let("x", f.load(x, index(column * shape.x_strides[2]), lanes, count))
            for c in range(size):
                a = f.let("a", Shuffle(value, value, tuple(lane // size * size + c for lane in range(lanes))))
                for i, kx in meetings:
                    b = f.load(w, (kx * size + c) * lanes, lanes)
                    f.assign(f.acc[i][0], Fma(a, b, f.acc[i][0]))


def _small_groups_ns(op: Conv, config: Config, context: BuildContext) -> float:
    shape, caps = small_groups(op), context.caps
    steps = work_steps(shape, config["pixels"], 1, caps) * (1 + min(shape.x.stride, shape.x.kernel) / shape.x.kernel)
    return steps * caps.lanes * 2 / caps.fma_gflops + typical(moving_ns(shape)) + halo_ns(shape)


VARIANTS = [
    Variant(
        name="conv.nhwc_small_groups",
        op=Conv,
        admits=admits,
        space=lambda op, context: blocking_space(small_groups(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(small_groups(op), config, context.caps),
        default=lambda op, context: choose_blocking(small_groups(op), context.caps).config(),
        given=UNIT_SIZES,
        cost_ns=_small_groups_ns,
        build=lambda op, config, context: build_conv("conv_groups", small_groups(op), Blocking.of(config), context, accumulate),
        rank=10,
    )
]
