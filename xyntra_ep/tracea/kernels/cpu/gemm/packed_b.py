"""gemm.packed_b: a matrix product with constant weights, packed once into panels that the register tile reads front to back.

    prepare   panel p of b -> [K][columns]
    run       for panel: for block of rows: tile over all of k, epilogue in registers, store

While one panel is used the next is fetched into L2, so weights that come from memory cost no waiting. One kernel serves a
decoder's step (one row, bound by memory) and a whole batch. K is never divided: measured to be as fast up to K = 3072.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand
from xyntra_ep.tracea.kernels.cpu.gemm._choice import (
    best_even_tile,
    few_rows_tile,
    padded_ns,
    tile_of,
    tile_refusal,
    tile_space,
    weight_ns,
)
from xyntra_ep.tracea.kernels.cpu.gemm._columns import PanelLayout, Panels, even_panels
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm._pack import pack_operand
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
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
    return few_rows_tile(shape_of(op), context.caps) or best_even_tile(op.domain[-1], context.caps)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape = shape_of(op)
    columns = even_panels(shape.n, tile_of(config, context.caps)).columns
    arithmetic = padded_ns(shape, context.caps, columns)
    return max(arithmetic, typical(weight_ns(shape, context.caps))) + 100.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    tile = tile_of(config, context.caps)
    panels = even_panels(shape.n, tile)
    weights, layout = packed("panels", panels, shape.depth, shape)
    return [pack(op.inputs[1], shape, panels, weights, context), multiply(shape, tile, layout, context)]


def packed(name: str, panels: Panels, depth: Size, shape: GemmShape) -> tuple[TempBuffer, PanelLayout]:
    """The buffer ``name`` of panels of ``depth`` steps, and how they lie in it."""
    weights = TempBuffer(name=name, size_bytes=panels.columns * depth * DType.F32.bytes)
    layout = PanelLayout(
        panels=panels,
        buffer=weights,
        dtype=DType.F32,
        offset=0,
        batch_strides=(0,) * len(shape.batch),
        column=depth,
        row=None,
        padded=True,
        fetch=True,
    )
    return weights, layout


def pack(b: Operand, shape: GemmShape, panels: Panels, weights: TempBuffer, context: BuildContext) -> KernelCall:
    """The call that makes the panels of a constant ``b``."""
    k = KernelBuilder(f"xy_gemm_pack_{b.dtype}_{panels.least * panels.lanes}_{context.caps.isa}")
    source, packed = k.buffer("b", b.dtype), k.buffer("panels", DType.F32, writable=True)
    with k.units() as panel:
        pack_operand(k, b, panels, panel, start=k.param(b.offset), source=source, target=packed)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), weights),
        params=params,
        units=panels.number,
        cost_ns=2 * weight_ns(shape, context.caps),
        phase=Phase.PREPARE,
    )


VARIANTS = [
    Variant(
        name="gemm.packed_b",
        op=Gemm,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
    )
]
