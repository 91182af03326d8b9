"""gemm.quads: a matrix product of unsigned by signed bytes, four along k by one instruction (AVX512_VNNI).

prepare   b -> panels of quads, when it is constant; else in each run
run       (a -> rows of whole quads, unless it lies so); then as gemm.packed_b, a quad where that takes one f32
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, tile_refusal, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import build_words, why_not, words_ns
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant


def admits(op: Gemm, context: BuildContext) -> str | None:
    if not context.caps.avx512_vnni:
        return "the machine has no products of quads"
    types = tuple(o.dtype for o in op.inputs[:2])
    if types != (BYTE_QUADS.left, BYTE_QUADS.right):
        return f"{types[0]} times {types[1]}, not u8 times i8"
    return why_not(op)


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_tile(op.domain[-1], context.caps, of_integers=True)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return words_ns(op, config, BYTE_QUADS, context)


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    return build_words(op, config, BYTE_QUADS, context)


VARIANTS = [
    Variant(
        name="gemm.quads",
        op=Gemm,
        needs="avx512_vnni",
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
