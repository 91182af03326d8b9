"""gemm.shorts: a matrix product of bytes of any signs, widened to 16 bits, two along k by one instruction (vpmaddwd).

prepare   b -> panels of pairs of 16-bit integers, when it is constant; else in each run
run       a -> rows of 16-bit integers; then as gemm.packed_b, a pair where that takes one f32

Exact on every machine: a product of bytes has 16 bits, and a sum of two of them is made in 32. (`vpmaddubsw`, which multiplies
bytes, makes it in 16, and saturates: see gemm.clamped.)
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._tile import I16_PAIRS
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import variant_of, why_not
from xyntra_ep.tracea.kernels.variant import BuildContext


def admits(op: Gemm, context: BuildContext) -> str | None:
    return why_not(op)


VARIANTS = [variant_of(I16_PAIRS, admits)]
