"""Grouped convolution over channels-last images: the direct convolution on the channels of one group after another."""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import UNIT_SIZES, Blocking, blocking_refusal, blocking_space, choose_blocking
from xyntra_ep.tracea.kernels.cpu.conv._direct import build_direct, direct_ns
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape, why_not_channels_last
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities


def admits(op: Conv, context: BuildContext) -> str | None:
    if op.group == 1:
        return "one group"
    if op.inputs[1].shape[:2] == (op.group, 1):
        return "a depthwise convolution"
    return why_not_channels_last(op, context)


def narrowed(op: Conv, caps: Capabilities) -> Capabilities:
    """``caps`` with vectors no wider than a group needs: half the lanes cost half the time or less, idle lanes cost as much
    as busy ones."""
    lanes, outputs = caps.lanes, conv_shape(op).cout
    while lanes > 4 and lanes // 2 >= outputs:
        lanes //= 2
    return replace(caps, lanes=lanes, fma_gflops=caps.fma_gflops * lanes / caps.lanes)


VARIANTS = [
    Variant(
        name="conv.nhwc_grouped",
        op=Conv,
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), narrowed(op, context.caps)),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, narrowed(op, context.caps)),
        default=lambda op, context: choose_blocking(conv_shape(op), narrowed(op, context.caps)).config(),
        given=UNIT_SIZES,
        cost_ns=lambda op, config, context: direct_ns(op, Blocking.of(config), narrowed(op, context.caps)),
        build=lambda op, config, context: build_direct(
            op, Blocking.of(config), replace(context, caps=narrowed(op, context.caps))
        ),
        rank=10,
    )
]
