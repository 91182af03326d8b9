"""Copies of k and v in bfloat16 pairs, each matrix once however many heads share it.

    keys    [head][panel of 16 columns][pair of d][16 columns] pairs: a panel is k transposed, two neighbours of d side by side
    values  [head][panel of 16 of e][pair of columns][16 of e] pairs: two neighbouring rows of v side by side

Both are what a matrix tile wants as its right factor, and what a product of pairs wants as a row of it. d and the columns are
filled up to multiples of 32, the depth of a tile: with zeros where they are summed over, with anything where a score is masked.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.cpu.attention._pack import head_start
from xyntra_ep.tracea.kernels.cpu.attention._shape import AttentionShape
from xyntra_ep.tracea.kernels.cpu.gemm._pack import transposed
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.matrix_nodes import PackPairs
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Var, f32, i32, index, le, lt, vmin

LANES = 16  # pairs in a vector, and columns of a panel
DEPTH = 32  # what a tile sums over at once


def padded(size: Size) -> Size:
    return ceildiv(size, DEPTH) * DEPTH


def depth_of(shape: AttentionShape) -> int:
    """d, filled up."""
    assert isinstance(shape.depth, int)
    return -(-shape.depth // DEPTH) * DEPTH


def width_of(shape: AttentionShape) -> int:
    """e, filled up to whole panels."""
    return -(-shape.width // LANES) * LANES


def reads_pairs(operand: Operand) -> bool:
    """Whether neighbours along d lie side by side as a product wants them."""
    size = operand.shape[3]
    return operand.dtype is DType.BF16 and operand.strides[3] == 1 and isinstance(size, int) and size % 2 == 0


def pack_key_pairs(shape: AttentionShape, context: BuildContext) -> KernelCall:
    """A unit is one panel."""
    operand, depth = shape.k, depth_of(shape)
    k = KernelBuilder(f"xy_attention_key_pairs_{operand.dtype}_{context.caps.isa}")
    source, packed = k.buffer("k", operand.dtype), k.buffer("keys", DType.BF16, writable=True)
    heads = [shape.batch[i] for i in shape.heads_of(operand)]
    panels = ceildiv(shape.columns, DEPTH) * (DEPTH // LANES)
    with k.units() as unit:
        *batch, panel = k.split(unit, [*heads, panels])
        column = k.let("column", panel * LANES)
        start = k.let("from", head_start(k, shape, operand, batch))
        last = k.let("last", k.param(shape.columns) - 1)
        step = k.param(operand.strides[2])
        # Columns past the end repeat the last one: their scores are masked.
        rows = [k.pointer("row", source, start + vmin(column + j, last) * step) for j in range(LANES)]
        to = k.pointer("to", packed, unit * (LANES * depth))
        for first in range(0, depth, DEPTH):
            emit = _transpose_pairs if reads_pairs(operand) else _transpose_elements
            for j, pairs in enumerate(emit(k, shape, rows, first)):
                k.store_words(to, (first // 2 + j) * (2 * LANES), pairs)
    kernel, params = k.finish()
    count = product(heads) * panels
    return KernelCall(
        kernel=kernel,
        buffers=(
            ValueBuffer(value=operand.value),
            TempBuffer(name="key_pairs", size_bytes=count * LANES * depth * DType.BF16.bytes),
        ),
        params=params,
        units=count,
        cost_ns=count * LANES * depth // 8,
    )


def _transpose_pairs(k: KernelBuilder, shape: AttentionShape, rows: Sequence[Pointer], first: int) -> list[Rvalue]:
    """Pairs ``first`` ... of d for 16 columns, a pair a vector."""
    assert isinstance(shape.depth, int)
    left = (shape.depth - first) // 2
    count = index(left) if left < LANES else None
    return transposed(k, [k.let("r", k.load_words(row, first, LANES, count)) for row in rows])


def _transpose_elements(k: KernelBuilder, shape: AttentionShape, rows: Sequence[Pointer], first: int) -> list[Rvalue]:
    assert isinstance(shape.depth, int)
    pairs: list[Rvalue] = []
    for start in (first, first + LANES):
        left = shape.depth - start
        if left <= 0:
            pairs += [Const(i32(LANES), 0)] * (LANES // 2)
            continue
        count = index(left) if left < LANES else None
        columns = transposed(k, [k.let("r", k.load(row, start, LANES, count)) for row in rows])
        pairs += [PackPairs(low, high) for low, high in zip(columns[::2], columns[1::2], strict=True)]
    return pairs


def pack_value_pairs(shape: AttentionShape, context: BuildContext) -> KernelCall:
    """A unit is 32 columns, all of their width."""
    operand, width = shape.v, width_of(shape)
    k = KernelBuilder(f"xy_attention_value_pairs_{operand.dtype}_{context.caps.isa}")
    source, packed = k.buffer("v", operand.dtype), k.buffer("values", DType.BF16, writable=True)
    heads = [shape.batch[i] for i in shape.heads_of(operand)]
    parts = ceildiv(shape.columns, DEPTH)
    with k.units() as unit:
        *batch, part = k.split(unit, [*heads, parts])
        column = k.let("column", part * DEPTH)
        start = k.let("from", head_start(k, shape, operand, batch) + column * k.param(operand.strides[2]))
        left = k.let("left", k.param(shape.columns) - column)
        panel = k.param(padded(shape.columns) * LANES)
        head = k.let("head", unit // k.param(parts))
        to = k.pointer("to", packed, head * (width // LANES) * panel + column * LANES)

        def copy(whole: bool) -> None:
            with k.loop("t", 0, DEPTH, 2) as t:
                for first in range(0, shape.width, LANES):
                    low, high = (_value_row(k, shape, source, start, t + j, first, None if whole else left) for j in (0, 1))
                    k.store_words(to, (first // LANES) * panel + t * LANES, PackPairs(low, high))

        with k.when(le(DEPTH, left)):
            copy(whole=True)
        with k.otherwise():
            copy(whole=False)
    kernel, params = k.finish()
    count = product(heads) * parts
    return KernelCall(
        kernel=kernel,
        buffers=(
            ValueBuffer(value=operand.value),
            TempBuffer(name="value_pairs", size_bytes=count * DEPTH * width * DType.BF16.bytes),
        ),
        params=params,
        units=count,
        cost_ns=count * DEPTH * width // 8,
    )


def _value_row(
    k: KernelBuilder, shape: AttentionShape, source: Var, start: Rvalue, t: Rvalue, first: int, left: Rvalue | None
) -> Rvalue:
    """16 of row ``t`` of v; zeros for a row from ``left`` on."""
    count = index(shape.width - first) if shape.width - first < LANES else None
    at = start + t * k.param(shape.v.strides[2]) + first
    if left is None:
        return k.let("r", k.load(source, at, LANES, count))
    row = k.variable("r", Const(f32(LANES), 0.0))
    with k.when(lt(t, left)):
        k.assign(row, k.load(source, at, LANES, count))
    return row
