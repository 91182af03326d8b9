"""gemm.packed_b: a matrix product with constant weights, packed once into panels that the register tile reads front to back.

    prepare   panel p of b -> [K][columns]
    run       for panel: for block of rows: tile over all of k, epilogue in registers, store

While one panel is used the next is fetched into L2, so weights that come from memory cost no waiting. One kernel serves a
decoder's step (one row, bound by memory) and a whole batch. K is never divided: measured to be as fast up to K = 3072.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu._gemm_multiply import PanelLayout, multiply
from xyntra_ep.tracea.kernels.cpu._gemm_pack import pack_panel, panel_bytes
from xyntra_ep.tracea.kernels.cpu._gemm_shape import (
    GemmShape,
    best_tile,
    product_ns,
    shape_of,
    tile_space,
    typical,
    weight_ns,
)
from xyntra_ep.tracea.kernels.cpu._gemm_tile import Tile
from xyntra_ep.tracea.kernels.variant import (
    Axis,
    BuildContext,
    Config,
    KernelCall,
    Phase,
    TempBuffer,
    ValueBuffer,
    Variant,
)
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder


def admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not context.is_constant(b.value):
        return "b is not a constant"
    if not (a.dtype.is_float and b.dtype.is_float):
        return f"a is {a.dtype} and b {b.dtype}, not floats"
    if not all(isinstance(size, int) for size in (*b.shape[-2:], *b.strides[-2:], b.offset)):
        return "the size of b is known only at run time"
    if not shape_of(op).b_is_shared:
        return "b differs between batches"
    return None


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_tile(op.domain[-1], context.caps)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape = shape_of(op)
    columns = typical(shape.n)
    padded = -(-columns // config["columns"]) * config["columns"]
    arithmetic = typical(product_ns(shape, context.caps)) * padded / max(1, columns)
    return max(arithmetic, typical(weight_ns(shape, context.caps))) + 100.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    lanes = context.caps.lanes
    tile = Tile(rows=config["rows"], vectors=config["columns"] // lanes, lanes=lanes)
    panels = ceildiv(shape.n, tile.columns)
    weights = TempBuffer(name="panels", size_bytes=panel_bytes(panels, shape.depth, tile.columns))
    layout = PanelLayout(
        buffer=weights,
        dtype=DType.F32,
        offset=0,
        batch_strides=(0,) * len(shape.batch),
        step=shape.depth * tile.columns,
        row=tile.columns,
        padded=True,
        fetch=True,
    )
    return [_pack(shape, tile, weights, context), multiply(shape, tile, layout, context)]


def _pack(shape: GemmShape, tile: Tile, weights: TempBuffer, context: BuildContext) -> KernelCall:
    b = shape.op.inputs[1]
    k = KernelBuilder(f"xy_gemm_pack_{b.dtype}_{tile.columns}_{context.caps.isa}")
    source, packed = k.buffer("b", b.dtype), k.buffer("panels", DType.F32, writable=True)
    with k.units() as panel:
        column = k.let("column", panel * tile.columns)
        pack_panel(
            k,
            source=k.pointer("from", source, k.param(b.offset) + column * k.param(b.strides[-1])),
            strides=(b.strides[-2], b.strides[-1]),
            depth=k.param(shape.depth),
            valid=k.let("valid", k.param(shape.n) - column),
            columns=tile.columns,
            lanes=tile.lanes,
            panel=k.pointer("to", packed, panel * k.param(shape.depth * tile.columns)),
        )
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), weights),
        params=params,
        units=ceildiv(shape.n, tile.columns),
        cost_ns=2 * weight_ns(shape, context.caps),
        phase=Phase.PREPARE,
    )


VARIANTS = [
    Variant(
        name="gemm.packed_b",
        op=Gemm,
        admits=admits,
        space=space,
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
