"""conv.shorts: a convolution of bytes of any signs, widened to 16 bits, two channels by one instruction (vpmaddwd)."""

from __future__ import annotations

from xyntra_ep.tracea.kernels.cpu.conv_integer._words import variant_of
from xyntra_ep.tracea.kernels.cpu.gemm._tile import I16_PAIRS

VARIANTS = [variant_of(I16_PAIRS, lambda caps: None)]
