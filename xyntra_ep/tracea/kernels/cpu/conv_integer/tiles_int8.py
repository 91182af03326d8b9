"""conv.tiles_int8: a convolution of unsigned by signed bytes, by matrix tiles (Intel AMX); as conv.tiles_bf16, a quad where that
takes a pair."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv_bf16.tiles_bf16 import build_tiles, tiles_ns
from xyntra_ep.tracea.kernels.cpu.conv_integer._words import why_not
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant


def admits(op: Conv, context: BuildContext) -> str | None:
    if not context.caps.amx_int8:
        return "the machine has no matrix tiles of bytes"
    return why_not(op, BYTE_QUADS, context)


VARIANTS = [
    Variant(
        name="conv.tiles_int8",
        op=Conv,
        needs="amx_int8",
        admits=admits,
        cost_ns=lambda op, config, context: tiles_ns(op, BYTE_QUADS, context),
        build=lambda op, config, context: build_tiles(op, BYTE_QUADS, context),
    )
]
