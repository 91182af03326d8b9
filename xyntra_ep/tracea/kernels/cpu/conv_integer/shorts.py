"""conv.shorts: a convolution of bytes of any signs, widened to 16 bits, two channels by one instruction (vpmaddwd)."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import blocking_refusal, blocking_space, choose_blocking
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape
from xyntra_ep.tracea.kernels.cpu.conv_integer._words import build_words, why_not, words_ns
from xyntra_ep.tracea.kernels.cpu.gemm._tile import I16_PAIRS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant


def admits(op: Conv, context: BuildContext) -> str | None:
    return why_not(op, context)


VARIANTS = [
    Variant(
        name="conv.shorts",
        op=Conv,
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        cost_ns=lambda op, config, context: words_ns(op, config, I16_PAIRS, context),
        build=lambda op, config, context: build_words(op, config, I16_PAIRS, context),
        rank=5,
    )
]
