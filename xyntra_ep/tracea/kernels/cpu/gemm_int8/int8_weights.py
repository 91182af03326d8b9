"""gemm.int8_weights: a matrix product whose constant weights are kept as 8-bit integers with one scale for each column.

    prepare   panel p of b -> [K][columns] integers, [columns] scales
    run       out = epilogue((a . integers) * scale), in f32

A quarter of the bytes: where the weights come from memory for every row (a decoder's step), a quarter of the time. With many
rows it costs what f32 costs, and saves memory only.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile, product_ns, tile_refusal, tile_space, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.cpu.gemm_int8._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm_int8._pack import quantise
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, Variant


def admits(op: Gemm, context: BuildContext) -> str | None:
    if op.product is not Product.INT8W:
        return f"the product is asked for in {op.product}"
    return packed_b.admits(op, context)


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_tile(op.domain[-1], context.caps)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    """Never above that of f32 weights, though many rows and padded columns cost more: the memory was asked for as well."""
    shape = shape_of(op)
    return max(typical(product_ns(shape, context.caps)), typical(weight_ns(shape, context.caps)) / 4) + 100.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, lanes = shape_of(op), context.caps.lanes
    tile = Tile(rows=config["rows"], vectors=config["columns"] // lanes, lanes=lanes)
    panels = ceildiv(shape.n, tile.columns)
    weights = TempBuffer(name="panels", size_bytes=panels * shape.depth * tile.columns * DType.I8.bytes)
    scales = TempBuffer(name="scales", size_bytes=panels * tile.columns * DType.F32.bytes)
    return [
        quantise(op.inputs[1], tile, weights, scales, context.caps, 3 * weight_ns(shape, context.caps)),
        multiply(shape, tile, weights, scales, context),
    ]


VARIANTS = [
    Variant(
        name="gemm.int8_weights",
        op=Gemm,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=-1,
    )
]
