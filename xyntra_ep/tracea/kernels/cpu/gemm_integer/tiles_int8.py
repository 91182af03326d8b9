"""gemm.tiles_int8: a matrix product of unsigned by constant signed bytes, by matrix tiles (Intel AMX).

prepare   b -> panels of quads
run       (a -> rows of whole steps of 64 bytes, unless it lies so); then as gemm.tiles_bf16, a quad where that takes a pair
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BYTE_QUADS
from xyntra_ep.tracea.kernels.cpu.gemm_bf16._tiles import COLUMNS, TILE_COLUMNS, multiply_tiles
from xyntra_ep.tracea.kernels.cpu.gemm_bf16.tiles_bf16 import default, space, tiles_ns
from xyntra_ep.tracea.kernels.cpu.gemm_integer._left import left_words
from xyntra_ep.tracea.kernels.cpu.gemm_integer._pack import WordPanels, pack_words
from xyntra_ep.tracea.kernels.cpu.gemm_integer._words import why_not_constant
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, KernelCall, TempBuffer, Variant


def admits(op: Gemm, context: BuildContext) -> str | None:
    if not context.caps.amx_int8:
        return "the machine has no matrix tiles of bytes"
    return why_not_constant(op, BYTE_QUADS, context)


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, words = shape_of(op), BYTE_QUADS
    assert isinstance(shape.depth, int)
    depth = max(1, -(-shape.depth // words.tile_depth)) * words.tile_depth
    panels = WordPanels(
        words=words,
        panels=ceildiv(shape.n, COLUMNS) * (COLUMNS // TILE_COLUMNS),
        steps=depth // words.depth,
        columns=TILE_COLUMNS,
    )
    weights = TempBuffer(name="panels", size_bytes=panels.size_bytes)
    left, copying = left_words(shape, panels, context)
    chunk_bytes = context.caps.l2_bytes // config["l2_part"]
    run = multiply_tiles(shape, words, left, depth, weights, chunk_bytes, context)
    return [pack_words(shape, weights, panels, context), *copying, run]


VARIANTS = [
    Variant(
        name="gemm.tiles_int8",
        op=Gemm,
        needs="amx_int8",
        admits=admits,
        space=space,
        default=default,
        cost_ns=lambda op, config, context: tiles_ns(op, BYTE_QUADS, context),
        build=build,
    )
]
