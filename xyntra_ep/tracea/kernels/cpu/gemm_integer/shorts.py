"""gemm.shorts: a matrix product of bytes of any signs, widened to 16 bits, two along k by one instruction (vpmaddwd).

prepare   b -> panels of pairs of 16-bit integers, when it is constant; else in each run
run       a -> rows of 16-bit integers; then as gemm.packed_b, a pair where that takes one f32

Exact on every machine: a product of bytes has 16 bits, and a sum of two of them is made in 32. (`vpmaddubsw`, which multiplies
bytes, makes it in 16, and saturates: see gemm.clamped.)
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, tile_refusal, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._tile import I16_PAIRS
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import build_words, why_not, words_ns
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant


def admits(op: Gemm, context: BuildContext) -> str | None:
    return why_not(op)


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_tile(op.domain[-1], context.caps, of_integers=True)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return words_ns(op, config, I16_PAIRS, context)


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    return build_words(op, config, I16_PAIRS, context)


VARIANTS = [
    Variant(
        name="gemm.shorts",
        op=Gemm,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
