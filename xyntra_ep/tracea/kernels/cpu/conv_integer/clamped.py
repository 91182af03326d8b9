"""conv.clamped: a convolution of unsigned by signed bytes, by products whose sums of two are clamped (vpmaddubsw).

prepare   w -> panels of quads; what might be clamped of them -> words of their own, for each stretch of k (_excess.py)
run       as conv.quads, where a tile also goes through the further words of each stretch

A third faster than conv.shorts where these are few, as with one scale for all weights; as fast with a scale for each channel and
bell-shaped weights; with weights of any size conv.shorts would be up to 1.6 times as fast. That depends on what the weights are,
which planning does not look at.
"""

from __future__ import annotations

from xyntra_ep.tracea.kernels.cpu.conv_integer._words import variant_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities


def lacks(caps: Capabilities) -> str | None:
    return None if caps.clamped_bytes else "the machine has no products of bytes, or better ones"


VARIANTS = [variant_of(CLAMPED_QUADS, lacks, needs="clamped_bytes")]
