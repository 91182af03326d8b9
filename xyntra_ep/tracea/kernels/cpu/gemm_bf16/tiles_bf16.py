"""gemm.tiles_bf16: a matrix product in bfloat16 with constant weights, by matrix tiles (Intel AMX).

    prepare   b -> panels of pairs
    run       (a -> rows of bfloat16, unless it is stored so); blocks of 32 x 32: for chunk of rows, for panel, for its blocks;
              where the panels stay in L2 for block of rows, for panel

Sixteen times the arithmetic of f32 at half the bytes: what bounds a product of 128 rows is the way of the weights from memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import tiles_peak_of
from xyntra_ep.tracea.kernels.cpu.gemm._left import left_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, Words
from xyntra_ep.tracea.kernels.cpu.gemm_bf16._pack import PairPanels, pack_pairs
from xyntra_ep.tracea.kernels.cpu.gemm_bf16._tiles import BLOCK_ROWS, COLUMNS, TILE_COLUMNS, multiply_tiles
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, Variant

_OF_PEAK = 0.7  # what a block reaches while its operands come from L2
_EPILOGUE_NS = 0.06  # an element's way through the scratch and a plain epilogue


def admits(op: Gemm, context: BuildContext) -> str | None:
    if op.product is not Product.BF16:
        return f"a product in {op.product} is asked for"
    if not context.caps.amx_bf16:
        return "the machine has no matrix tiles"
    return packed_b.admits(op, context)


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return (Axis(name="l2_part", values=(1, 2, 4, 8)),)  # a chunk of a fills 1 / l2_part of L2


def default(op: Gemm, context: BuildContext) -> Config:
    return {"l2_part": 2}


def tiles_ns(op: Gemm, words: Words, context: BuildContext) -> float:
    """On one core: the arithmetic and the epilogue, or the reading of b, whatever takes longer."""
    shape, caps = shape_of(op), context.caps
    rows, columns = typical(shape.m * product(shape.batch_extents)), typical(ceildiv(shape.n, COLUMNS)) * COLUMNS
    depth = typical(ceildiv(shape.depth, words.tile_depth)) * words.tile_depth
    blocks = -(-rows // BLOCK_ROWS)
    arithmetic = 2.0 * rows * columns * depth / (_OF_PEAK * tiles_peak_of(words, caps)) + _EPILOGUE_NS * rows * columns
    reading = words.right.bytes * columns * depth / caps.dram_gbs
    return max(arithmetic, reading) + 20.0 * blocks + 200.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    assert isinstance(shape.depth, int)
    step = BF16_PAIRS.tile_depth
    depth = max(1, -(-shape.depth // step)) * step
    panels = PairPanels(panels=ceildiv(shape.n, COLUMNS) * (COLUMNS // TILE_COLUMNS), depth=depth, columns=TILE_COLUMNS)
    weights = TempBuffer(name="panels", size_bytes=panels.size_bytes)
    left, rounding = left_rows(shape, depth, context)
    chunk_bytes = context.caps.l2_bytes // config["l2_part"]
    run = multiply_tiles(shape, BF16_PAIRS, left, depth, weights, chunk_bytes, context)
    return [pack_pairs(op.inputs[1], weights, panels, context), *rounding, run]


VARIANTS = [
    Variant(
        name="gemm.tiles_bf16",
        op=Gemm,
        needs="amx_bf16",
        admits=admits,
        space=space,
        default=default,
        cost_ns=lambda op, config, context: tiles_ns(op, BF16_PAIRS, context),
        build=build,
    )
]
