"""conv.quads: a convolution of unsigned by signed bytes, four channels by one instruction (AVX512_VNNI)."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._blocking import blocking_refusal, blocking_space, choose_blocking
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape
from xyntra_ep.tracea.kernels.cpu.conv_integer._words import build_words, why_not, words_ns
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant


def admits(op: Conv, context: BuildContext) -> str | None:
    if not context.caps.avx512_vnni:
        return "the machine has no products of quads"
    types = tuple(o.dtype for o in op.inputs[:2])
    if types != (BYTE_QUADS.left, BYTE_QUADS.right):
        return f"{types[0]} times {types[1]}, not u8 times i8"
    return why_not(op, context)


VARIANTS = [
    Variant(
        name="conv.quads",
        op=Conv,
        needs="avx512_vnni",
        admits=admits,
        space=lambda op, context: blocking_space(conv_shape(op), context.caps),
        refuses=lambda op, config, context: blocking_refusal(conv_shape(op), config, context.caps),
        default=lambda op, context: choose_blocking(conv_shape(op), context.caps).config(),
        cost_ns=lambda op, config, context: words_ns(op, config, BYTE_QUADS, context),
        build=lambda op, config, context: build_words(op, config, BYTE_QUADS, context),
        rank=5,
    )
]
