"""conv.quads: a convolution of unsigned by signed bytes, four channels by one instruction (AVX512_VNNI, AVX_VNNI)."""

from __future__ import annotations

from xyntra_ep.tracea.kernels.cpu.conv_integer._words import variant_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities


def lacks(caps: Capabilities) -> str | None:
    return None if caps.vnni else "the machine has no products of quads"


VARIANTS = [variant_of(BYTE_QUADS, lacks, needs="vnni")]
