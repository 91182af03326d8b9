"""gemm.quads: a matrix product of unsigned by signed bytes, four along k by one instruction (AVX512_VNNI, AVX_VNNI).

prepare   b -> panels of quads, when it is constant; else in each run
run       (a -> rows of whole quads, unless it lies so); then as gemm.packed_b, a quad where that takes one f32
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import variant_of, why_not_of
from xyntra_ep.tracea.kernels.variant import BuildContext


def admits(op: Gemm, context: BuildContext) -> str | None:
    if not context.caps.vnni:
        return "the machine has no products of quads"
    return why_not_of(op, BYTE_QUADS)


VARIANTS = [variant_of(BYTE_QUADS, admits, needs="vnni")]
