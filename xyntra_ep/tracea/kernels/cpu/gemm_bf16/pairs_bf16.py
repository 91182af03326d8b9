"""gemm.pairs_bf16: a matrix product in bfloat16 with constant weights, by products of pairs (AVX512_BF16 where it is fast).

prepare   b -> panels of pairs
run       (a -> rows of bfloat16, unless it is stored so); then as gemm.packed_b, a pair where that takes one f32
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, tile_refusal, tile_space
from xyntra_ep.tracea.kernels.cpu.gemm._columns import PanelLayout, uniform_panels
from xyntra_ep.tracea.kernels.cpu.gemm._left import left_rows
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm._tile import BF16_PAIRS, Tile
from xyntra_ep.tracea.kernels.cpu.gemm_bf16._pack import PairPanels, pack_pairs
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, Variant


def admits(op: Gemm, context: BuildContext) -> str | None:
    if op.product is not Product.BF16:
        return f"a product in {op.product} is asked for"
    if not context.caps.avx512_bf16:
        return "the machine has no fast products of pairs"
    return packed_b.admits(op, context)


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_tile(op.domain[-1], context.caps)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape, caps = shape_of(op), context.caps
    rows, columns = typical(shape.m * product(shape.batch_extents)), typical(shape.n)
    padded = -(-columns // config["columns"]) * config["columns"]
    depth = typical(shape.depth)
    return max(2.0 * rows * padded * depth / caps.bf16_gflops, 2.0 * columns * depth / caps.dram_gbs) + 150.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    assert isinstance(shape.depth, int)
    lanes = context.caps.lanes
    tile = Tile(rows=config["rows"], vectors=config["columns"] // lanes, lanes=lanes, words=BF16_PAIRS)
    panels = PairPanels(panels=ceildiv(shape.n, tile.columns), depth=-(-shape.depth // 2) * 2, columns=tile.columns)
    weights = TempBuffer(name="panels", size_bytes=panels.size_bytes)
    layout = PanelLayout(
        panels=uniform_panels(shape.n, tile),
        buffer=weights,
        dtype=DType.BF16,
        offset=0,
        batch_strides=(0,) * len(shape.batch),
        column=panels.depth,
        row=None,
        padded=True,
        fetch=True,
    )
    rows, rounding = left_rows(shape, panels.depth, context)
    return [pack_pairs(op.inputs[1], weights, panels, context), *rounding, multiply(shape, tile, layout, context, rows)]


VARIANTS = [
    Variant(
        name="gemm.pairs_bf16",
        op=Gemm,
        needs="avx512_bf16",
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
