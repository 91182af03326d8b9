"""gemm.batched: a matrix product of two operands that are both computed at run time, any batch, any strides.

b with contiguous rows is read in place, for a few blocks of rows or where it lies well. Otherwise a unit packs a part of its
panel on the stack, just before it uses it; b transposed that stays in L2 is packed by a first call, each of its matrices once
however often it is broadcast. a is only ever read as scalars, so its strides do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_even_tile, padded_ns, tile_of, tile_refusal, tile_space, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._columns import PanelLayout, Panels, even_panels
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import multiply
from xyntra_ep.tracea.kernels.cpu.gemm._pack import pack_operand
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, own_batches, shape_of
from xyntra_ep.tracea.kernels.variant import (
    Axis,
    BuildContext,
    Config,
    KernelCall,
    TempBuffer,
    ValueBuffer,
    Variant,
)
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import index

_COPIES_FROM = 4  # blocks of rows that pay for a copy of rows of b that could be read in place
_TRANSPOSING = 20  # multiplications and additions in whose time an element of b transposed is packed
_COPIES_DEPTH = 128  # steps of k that do: below, a unit of few columns is more stores than arithmetic


def admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    return None if a.dtype.is_float and b.dtype.is_float else f"a is {a.dtype} and b {b.dtype}, not floats"


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return tile_space(context.caps)


def default(op: Gemm, context: BuildContext) -> Config:
    return best_even_tile(op.domain[-1], context.caps)


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape = shape_of(op)
    columns = even_panels(shape.n, tile_of(config, context.caps)).columns
    arithmetic = 1.05 * padded_ns(shape, context.caps, columns)
    batches = typical(product(g.extents[0] for g in own_batches(shape)))
    reading = batches * typical(weight_ns(shape, context.caps))
    packing = (
        0 if _in_place(shape) else _TRANSPOSING * batches * typical(shape.n) * typical(shape.depth) / context.caps.fma_gflops
    )
    return arithmetic + reading + packing + 200.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    tile = tile_of(config, context.caps)
    panels = even_panels(shape.n, tile)
    if _copied(shape, tile, context.caps):
        return [multiply(shape, tile, replace(_layout_in_place(shape, panels), copied=True), context)]
    if _in_place(shape):
        return [multiply(shape, tile, _layout_in_place(shape, panels), context)]
    layout = _layout_packed(shape, panels)
    return [_pack(shape, layout, context), multiply(shape, tile, layout, context)]


def _copied(shape: GemmShape, tile: Tile, caps: Capabilities) -> bool:
    """Whether a unit packs its panel itself, a part of k at a time."""
    b = shape.op.inputs[1]
    row, column = b.strides[-2:]
    if caps.lanes == 1 or 1 not in (row, column) or not isinstance(shape.depth, int) or not isinstance(shape.n, int):
        return False
    is_far = 4 * shape.depth * shape.n > caps.l2_bytes // 2
    if not _in_place(shape):
        return is_far
    if typical(shape.m) < _COPIES_FROM * tile.rows or shape.depth < _COPIES_DEPTH:
        return False
    # Rows of a panel in a page each; vectors across two lines; rows that share a few sets of L1.
    return is_far or not isinstance(row, int) or row % caps.lanes != 0 or 4 * row % 2048 == 0


def _in_place(shape: GemmShape) -> bool:
    return shape.op.inputs[1].strides[-1] == 1


def _layout_in_place(shape: GemmShape, panels: Panels) -> PanelLayout:
    b = shape.op.inputs[1]
    return PanelLayout(
        panels=panels,
        buffer=ValueBuffer(value=b.value),
        dtype=b.dtype,
        offset=b.offset,
        batch_strides=tuple(b.strides[group.axes[0]] for group in shape.batch),
        column=b.strides[-1],
        row=b.strides[-2],
        padded=False,
        fetch=False,
    )


def _layout_packed(shape: GemmShape, panels: Panels) -> PanelLayout:
    own = own_batches(shape)
    matrix = panels.columns * shape.depth
    strides: dict[int, Size] = {}
    for i, group in enumerate(own):
        strides[group.axes[0]] = matrix * product(g.extents[0] for g in own[i + 1 :])
    size = matrix * DType.F32.bytes * product(g.extents[0] for g in own)
    return PanelLayout(
        panels=panels,
        buffer=TempBuffer(name="panels", size_bytes=size),
        dtype=DType.F32,
        offset=0,
        batch_strides=tuple(strides.get(group.axes[0], 0) for group in shape.batch),
        column=shape.depth,
        row=None,
        padded=True,
        fetch=False,
    )


def _pack(shape: GemmShape, layout: PanelLayout, context: BuildContext) -> KernelCall:
    b, panels = shape.op.inputs[1], layout.panels
    own = own_batches(shape)
    k = KernelBuilder(f"xy_gemm_pack_{b.dtype}_{panels.least * panels.lanes}_{context.caps.isa}")
    source, packed = k.buffer("b", b.dtype), k.buffer("panels", DType.F32, writable=True)
    with k.units() as unit:
        *batch, panel = k.split(unit, [*(group.extents[0] for group in own), panels.number])
        start = k.param(b.offset)
        for group, coordinate in zip(own, batch, strict=True):
            start = start + coordinate * k.param(b.strides[group.axes[0]])
        matrix = unit // k.param(panels.number) * k.param(panels.columns * shape.depth) if own else index(0)
        pack_operand(k, b, panels, panel, start=start, source=source, target=k.pointer("matrix", packed, matrix))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), layout.buffer),
        params=params,
        units=product(group.extents[0] for group in own) * panels.number,
        cost_ns=2 * weight_ns(shape, context.caps) * product(group.extents[0] for group in own),
    )


VARIANTS = [
    Variant(
        name="gemm.batched",
        op=Gemm,
        admits=admits,
        space=space,
        refuses=lambda op, config, context: tile_refusal(config, context.caps),
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=1,
    )
]
