"""a of a matrix product in bfloat16: read where it lies, or rounded once into rows that are read without a look at their end.

rows    [batch][m][depth, rounded up to a multiple]   zero behind the depth
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, f32


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftRows:
    """Row i of a batch starts at offset + batch . batch_strides + i * row."""

    buffer: ValueBuffer | TempBuffer
    offset: Size
    batch_strides: tuple[Size, ...]
    row: Size

    def start(self, kernel: KernelBuilder, batch: Sequence[Rvalue], row: Rvalue) -> Rvalue:
        """Where the row lies."""
        total = kernel.param(self.offset) + row * kernel.param(self.row)
        for stride, coordinate in zip(self.batch_strides, batch, strict=True):
            total = total + coordinate * kernel.param(stride)
        return total


def rows_in_place(shape: GemmShape) -> LeftRows:
    """a as it is stored."""
    a = shape.op.inputs[0]
    strides = tuple(a.strides[group.axes[0]] for group in shape.batch)
    return LeftRows(buffer=ValueBuffer(value=a.value), offset=a.offset, batch_strides=strides, row=shape.a_row)


def left_rows(shape: GemmShape, depth: int, context: BuildContext) -> tuple[LeftRows, list[KernelCall]]:
    """Rows of ``depth`` elements, no fewer than the product has, and the calls that make them."""
    a = shape.op.inputs[0]
    if a.dtype is DType.BF16 and a.strides[-1] == 1 and shape.depth == depth:
        return rows_in_place(shape), []
    extents = shape.batch_extents
    strides = tuple(product(extents[i + 1 :]) * shape.m * depth for i in range(len(extents)))
    size = product(extents) * shape.m * depth * DType.BF16.bytes
    rows = LeftRows(buffer=TempBuffer(name="rows", size_bytes=size), offset=0, batch_strides=strides, row=depth)
    return rows, [_round(shape, depth, rows, context)]


def _round(shape: GemmShape, depth: int, rows: LeftRows, context: BuildContext) -> KernelCall:
    a, lanes = shape.op.inputs[0], context.caps.lanes
    k = KernelBuilder(f"xy_gemm_round_{a.dtype}_{context.caps.isa}")
    source, target = k.buffer("a", a.dtype), k.buffer("rows", DType.BF16, writable=True)
    count = shape.depth
    assert isinstance(count, int)
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        start = k.let("from", rows_in_place(shape).start(k, batch, row))
        to = k.let("to", unit * depth)
        vectors = count - count % lanes if shape.a_k == 1 else 0
        with k.loop("k", 0, vectors, lanes) as at:
            k.store(target, to + at, k.load(source, start + at, lanes))
        if shape.a_k == 1 and vectors < count:
            width = min(lanes, depth - vectors)
            last = k.load(source, start + vectors, lanes, k.param(count - vectors))
            k.store(target, to + vectors, last, None if width == lanes else k.param(width))
            vectors += width
        if shape.a_k != 1:
            with k.loop("k", 0, count) as at:
                k.store(target, to + at, k.load(source, start + at * k.param(shape.a_k)))
            vectors = count
        with k.loop("k", vectors, depth) as at:
            k.store(target, to + at, Const(f32(1), 0.0))
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=a.value), rows.buffer),
        params=params,
        units=product(shape.batch_extents) * shape.m,
        cost_ns=product(shape.batch_extents) * shape.m * (10 + depth // 20),
    )
