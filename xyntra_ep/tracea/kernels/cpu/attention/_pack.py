"""Copies of k and v as the tiles of attention want them, each matrix once however many heads share it."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.attention._shape import PASS_COLUMNS, AttentionShape
from xyntra_ep.tracea.kernels.cpu.gemm._pack import pack_panel
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index, vmin


def packed_of(call: KernelCall) -> TempBuffer:
    """What a packing call writes."""
    packed = call.buffers[1]
    assert isinstance(packed, TempBuffer)
    return packed


def pack_keys(shape: AttentionShape, context: BuildContext) -> KernelCall:
    """k -> [head][panel][depth][columns of a panel]. A unit is one panel."""
    operand, tile = shape.k, shape.tile
    k = KernelBuilder(f"xy_attention_keys_{operand.dtype}_{tile.columns}_{context.caps.isa}")
    source, packed = k.buffer("k", operand.dtype), k.buffer("keys", DType.F32, writable=True)
    heads = [shape.batch[i] for i in shape.heads_of(operand)]
    panel_size = shape.depth * tile.columns
    with k.units() as unit:
        *batch, panel = k.split(unit, [*heads, shape.panels])
        column = k.let("column", panel * tile.columns)
        start = head_start(k, shape, operand, batch) + column * k.param(operand.strides[2])
        pack_panel(
            k,
            source=k.pointer("from", source, start),
            strides=(operand.strides[3], operand.strides[2]),
            depth=k.param(shape.depth),
            valid=k.let("valid", k.param(shape.columns) - column),
            columns=tile.columns,
            lanes=tile.lanes,
            panel=k.pointer("to", packed, unit * k.param(panel_size)),
        )
    kernel, params = k.finish()
    count = product(heads) * shape.panels * shape.packs
    return KernelCall(
        kernel=kernel,
        buffers=(
            ValueBuffer(value=operand.value),
            TempBuffer(name="keys", size_bytes=count * panel_size * DType.F32.bytes),
        ),
        params=params,
        units=count,
        cost_ns=count * panel_size * 8 // max(1, int(context.caps.dram_gbs)),
    )


def pack_values(shape: AttentionShape, context: BuildContext) -> KernelCall:
    """v -> [head][row][width, whole vectors]. A unit is at most PASS_COLUMNS rows."""
    operand, lanes, width = shape.v, shape.tile.lanes, shape.sum_stride
    k = KernelBuilder(f"xy_attention_values_{operand.dtype}_{width}_{context.caps.isa}")
    source, packed = k.buffer("v", operand.dtype), k.buffer("values", DType.F32, writable=True)
    heads = [shape.batch[i] for i in shape.heads_of(operand)]
    parts = ceildiv(shape.columns, PASS_COLUMNS)
    with k.units() as unit:
        coordinates = k.split(unit, [*heads, parts])
        *batch, part = coordinates
        row = k.let("row", part * PASS_COLUMNS)
        head = k.let("head", unit // k.param(parts))
        pack_panel(
            k,
            source=k.pointer("from", source, head_start(k, shape, operand, batch) + row * k.param(operand.strides[2])),
            strides=(operand.strides[2], operand.strides[3]),
            depth=k.let("rows", vmin(k.param(shape.columns) - row, PASS_COLUMNS)),
            valid=index(shape.width),
            columns=width,
            lanes=lanes,
            panel=k.pointer("to", packed, (head * k.param(shape.columns) + row) * width),
        )
    kernel, params = k.finish()
    used = shape.packs_v * shape.packs
    rows = product(heads) * shape.columns * used
    return KernelCall(
        kernel=kernel,
        buffers=(
            ValueBuffer(value=operand.value),
            TempBuffer(name="values", size_bytes=rows * width * DType.F32.bytes),
        ),
        params=params,
        units=product(heads) * parts * used,
        cost_ns=rows * width * 8 // max(1, int(context.caps.dram_gbs)),
    )


def head_start(k: KernelBuilder, shape: AttentionShape, operand: Operand, batch: list[Rvalue]) -> Rvalue:
    """Where the head at ``batch`` (of the axes along which ``operand`` changes) starts."""
    start = k.param(operand.offset)
    for i, coordinate in zip(shape.heads_of(operand), batch, strict=True):
        start = start + coordinate * k.param(operand.strides[i])
    return start
