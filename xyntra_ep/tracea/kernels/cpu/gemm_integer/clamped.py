"""gemm.clamped: a matrix product of unsigned by constant signed bytes, by products whose sums of two are clamped (vpmaddubsw).

prepare   b -> panels of quads; what might be clamped of them -> more steps of each panel (_excess.py)
run       (a -> rows of whole quads, unless it lies so); the even elements of these; then as gemm.quads, where a tile also goes
          through the further steps of its panel

Twice as fast as products of f32 where these are few, as with one scale for all weights. With weights of any size they are more
than half as many as the panel's own, and gemm.shorts would be a quarter faster; that depends on what the weights are, which
planning does not look at.
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._tile import CLAMPED_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import variant_of, why_not_constant
from xyntra_ep.tracea.kernels.variant import BuildContext


def admits(op: Gemm, context: BuildContext) -> str | None:
    if not context.caps.clamped_bytes:
        return "the machine has no products of bytes, or better ones"
    return why_not_constant(op, CLAMPED_QUADS, context)


VARIANTS = [variant_of(CLAMPED_QUADS, admits, needs="clamped_bytes")]
