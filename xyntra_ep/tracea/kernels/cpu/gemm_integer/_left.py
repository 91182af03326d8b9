"""a of a product of words: read where it lies, or copied into rows of whole words.

rows    [batch][m][depth of k, rounded up to whole words]    anything behind the depth: b is zero there
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.kernels.cpu.gemm._left import LeftRows, rows_in_place
from xyntra_ep.tracea.kernels.cpu.gemm_integer._pack import WordPanels
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Convert, i32


def left_words(shape: GemmShape, panels: WordPanels, context: BuildContext) -> tuple[LeftRows, list[KernelCall]]:
    """The rows, and the calls that make them."""
    a, words = shape.op.inputs[0], panels.words
    depth = panels.steps * words.depth
    if a.dtype is words.left and shape.a_k == 1 and depth == shape.depth:
        return rows_in_place(shape), []
    extents = shape.batch_extents
    strides = tuple(product(extents[i + 1 :]) * shape.m * depth for i in range(len(extents)))
    size = product(extents) * shape.m * depth * words.left.bytes
    rows = LeftRows(buffer=TempBuffer(name="rows", size_bytes=size), offset=0, batch_strides=strides, row=depth)
    return rows, [_copy(shape, panels, rows, context)]


def _copy(shape: GemmShape, panels: WordPanels, rows: LeftRows, context: BuildContext) -> KernelCall:
    a, lanes, words = shape.op.inputs[0], context.caps.lanes, panels.words
    k = KernelBuilder(f"xy_gemm_{words.name}_rows_{a.dtype}_{context.caps.isa}")
    source, target = k.buffer("a", a.dtype), k.buffer("rows", words.left, writable=True)
    count, depth = k.param(shape.depth), k.param(rows.row)
    with k.units() as unit:
        *batch, row = k.split(unit, [*shape.batch_extents, shape.m])
        start = k.let("from", rows_in_place(shape).start(k, batch, row))
        to = k.let("to", unit * depth)
        done = k.let("done", count - count % lanes) if shape.a_k == 1 and lanes > 1 else k.let("done", count * 0)
        with k.loop("k", 0, done, lanes) as at:
            k.store(target, to + at, Convert(i32(lanes), k.load(source, start + at, lanes)))
        with k.loop("k", done, count) as at:
            k.store(target, to + at, k.load(source, start + at * k.param(shape.a_k)))
        with k.loop("k", count, depth) as at:
            k.store(target, to + at, Const(i32(1), 0))
    kernel, params = k.finish()
    number = product(shape.batch_extents) * shape.m
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=a.value), rows.buffer),
        params=params,
        units=number,
        cost_ns=number * (10 + rows.row // 20),
    )
