"""Convolution over channels-last images with constant weights: rows of register tiles, no im2col, no copy for padding."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import UNIT_SIZES, Blocking, blocking_refusal, blocking_space, choose_blocking
from xyntra_ep.tracea.kernels.cpu.conv._direct import build_direct, direct_ns
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, why_not_channels_last
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.group != 1:
        return f"{op.group} groups"
    return why_not_channels_last(op, context)


VARIANTS = [
    Variant(
        name="conv.nhwc_direct",
        op=Conv,
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        given=UNIT_SIZES,
        cost_ns=lambda op, config, context: direct_ns(op, Blocking.of(config), context.caps),
        build=lambda op, config, context: build_direct(op, Blocking.of(config), context),
        rank=10,
    )
]
