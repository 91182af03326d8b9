"""gemm.dots: a matrix product as dot products, vectors along k: for few rows, or few columns, of a and b that lie along k.

    for panel of `lanes` columns, for block of rows:
        for group of columns:  rows x columns sums of vectors over all of k, then the sum of each of them
        epilogue in registers, store

b transposed is read once where it lies, while packing it would cost as much as its products with a dozen rows. And 11 columns
are computed as 12, not as a vector of 16. Any other b is copied along k first (once, when it is a constant).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, smax, smin, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._choice import product_ns, weight_ns
from xyntra_ep.tracea.kernels.cpu.gemm._dots import Ahead, DotTile, column_sums, copy_columns, dot_tiles, dots_ns
from xyntra_ep.tracea.kernels.cpu.gemm._finish import SharedFinish, is_long
from xyntra_ep.tracea.kernels.cpu.gemm._multiply import ROW_BLOCKS, UNITS
from xyntra_ep.tracea.kernels.cpu.gemm._rows import TileFamily, block_sizes, divide_rows
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, is_rough
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, own_batches, shape_of
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
from xyntra_ep.tracea.semantic_ir.builder import FunctionBuilder, KernelBuilder
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Prefetching
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Offset, Pointer, PointerType, Rvalue, Type, Var, index, vmin


def admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not (a.dtype.is_float and b.dtype.is_float):
        return f"a is {a.dtype} and b {b.dtype}, not floats"
    if context.caps.lanes == 1:
        return "a machine without vectors"
    if a.strides[-1] != 1:
        return "a does not lie along k"
    if b.strides[-2] != 1 and b.strides[-1] != 1:
        return "b lies neither along k nor along n"
    return None


def space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    tiles = dot_tiles(context.caps)
    return (Axis(name="columns", values=tuple(tile.columns for tile in tiles)),)


def default(op: Gemm, context: BuildContext) -> Config:
    shape = shape_of(op)
    return {"columns": min(dot_tiles(context.caps), key=lambda tile: dots_ns(shape, context.caps, tile)).columns}


def cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    shape = shape_of(op)
    matrices = typical(product(group.extents[0] for group in own_batches(shape)))
    copies = not _in_place(shape) and not _prepared(shape, context)
    reading = matrices * typical(weight_ns(shape, context.caps)) * (3 if copies else 1)
    return dots_ns(shape, context.caps, _tile(config, context.caps)) + reading + 200.0


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape = shape_of(op)
    tile = _tile(config, context.caps)
    if _in_place(shape):
        b = op.inputs[1]
        columns = _Columns(
            buffer=ValueBuffer(value=b.value),
            dtype=b.dtype,
            offset=b.offset,
            batch_strides=tuple(b.strides[group.axes[0]] for group in shape.batch),
            column=b.strides[-1],
        )
        return [_multiply(shape, tile, columns, context)]
    columns = _copied(shape, tile)
    return [_copy(shape, columns, context), _multiply(shape, tile, columns, context)]


def _tile(config: Config, caps: Capabilities) -> DotTile:
    [tile] = [tile for tile in dot_tiles(caps) if tile.columns == config["columns"]]
    return tile


def _in_place(shape: GemmShape) -> bool:
    return shape.op.inputs[1].strides[-2] == 1


def _prepared(shape: GemmShape, context: BuildContext) -> bool:
    """Whether b is copied before the first run: a constant of known size."""
    is_known = isinstance(shape.depth, int) and isinstance(shape.n, int)
    return is_known and not own_batches(shape) and context.is_constant(shape.op.inputs[1].value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """Column j of b lies along k from offset + batch . batch_strides + j * column on."""

    buffer: ValueBuffer | TempBuffer
    dtype: DType
    offset: Size
    batch_strides: tuple[Size, ...]
    column: Size


def _copied(shape: GemmShape, tile: DotTile) -> _Columns:
    """[matrix][n][k, rounded up to whole vectors]"""
    own = own_batches(shape)
    column = ceildiv(shape.depth, tile.lanes) * tile.lanes
    strides: dict[int, Size] = {}
    for i, group in enumerate(own):
        strides[group.axes[0]] = column * shape.n * product(g.extents[0] for g in own[i + 1 :])
    size = column * shape.n * DType.F32.bytes * product(g.extents[0] for g in own)
    return _Columns(
        buffer=TempBuffer(name="columns", size_bytes=size),
        dtype=DType.F32,
        offset=0,
        batch_strides=tuple(strides.get(group.axes[0], 0) for group in shape.batch),
        column=column,
    )


def _copy(shape: GemmShape, columns: _Columns, context: BuildContext) -> KernelCall:
    """A unit is a vector of one matrix's columns."""
    b, lanes, own = shape.op.inputs[1], context.caps.lanes, own_batches(shape)
    k = KernelBuilder(f"xy_gemm_columns_{b.dtype}_{context.caps.isa}")
    source, target = k.buffer("b", b.dtype), k.buffer("columns", DType.F32, writable=True)
    panels = ceildiv(shape.n, lanes)
    with k.units() as unit:
        *batch, panel = k.split(unit, [*(group.extents[0] for group in own), panels])
        start = k.param(b.offset)
        for group, coordinate in zip(own, batch, strict=True):
            start = start + coordinate * k.param(b.strides[group.axes[0]])
        first = k.let("first", panel * lanes)
        matrix = unit // k.param(panels) * k.param(columns.column * shape.n) if own else 0
        copy_columns(
            k,
            source=k.pointer("from", source, start + first),
            row=k.param(b.strides[-2]),
            depth=k.param(shape.depth),
            exist=k.let("exist", vmin(k.param(shape.n) - first, lanes)),
            lanes=lanes,
            target=k.pointer("to", target, first * k.param(columns.column) + matrix),
            column=k.param(columns.column),
        )
    kernel, params = k.finish()
    matrices = product(group.extents[0] for group in own)
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=b.value), columns.buffer),
        params=params,
        units=matrices * panels,
        cost_ns=2 * weight_ns(shape, context.caps) * matrices,
        phase=Phase.PREPARE if _prepared(shape, context) else Phase.RUN,
    )


def _multiply(shape: GemmShape, tile: DotTile, columns: _Columns, context: BuildContext) -> KernelCall:
    """A unit is a panel of columns and a chunk of the row blocks, in one batch."""
    op, lanes = shape.op, tile.lanes
    a, out = op.inputs[0], op.output
    k = KernelBuilder(f"xy_gemm_{a.dtype}_dots_{tile.rows}x{tile.columns}_{context.caps.isa}")
    k.note(f"m = {shape.m}, k = {shape.depth}, n = {shape.n}, epilogue: {op.epilogue}")
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", columns.dtype)
    result = k.buffer("out", out.dtype, writable=True)
    groups = shape.groups
    epilogue = Epilogue(k, op.epilogue, op.inputs, op.domain, groups, len(groups) - 1, rough=is_rough(op))
    shared = SharedFinish(k, epilogue, out, result) if is_long(epilogue) else None
    panels = ceildiv(shape.n, lanes)

    def body(block: FunctionBuilder, rows: int, args: list[Var]) -> None:
        a_at, b_at, left, number, *at = args
        steps = k.param(shape.depth)
        exist = k.param(shape.n) if isinstance(shape.n, int) and shape.n < lanes else left
        of_a, of_b = (a_at, k.param(shape.a_row)), (b_at, k.param(columns.column))
        ahead = _ahead(shape, tile, rows, of_a, of_b, number, context.caps)
        sums = column_sums(block, tile, rows, of_a, of_b, steps, exist, ahead)
        is_whole = isinstance(shape.n, int) and shape.n % lanes == 0
        count = None if is_whole else left
        if shared is not None:
            shared.emit(block, Tile(rows=rows, vectors=1, lanes=lanes), [[s] for s in sums], at, count)
            return
        here = epilogue.at(block)
        *batch, first_row, column = at
        for i, total in enumerate(sums):
            point = [*batch, first_row + i, column]
            here.store(out, result, point, here.value(point, total, lanes, count), count)

    pointers: list[tuple[str, Type | PointerType]] = [("a", PointerType(a.dtype)), ("w", PointerType(columns.dtype))]
    position = ("left", "number", *(f"batch{i}" for i in range(len(shape.batch))), "row", "column")
    arguments = [*pointers, *((name, INDEX) for name in position)]
    blocks = divide_rows(k, shape.m, tile.rows)
    chunks = _chunks(shape, tile, panels)
    with k.units() as unit:
        *batch, panel, chunk = k.split(unit, [*shape.batch_extents, panels, chunks])
        begin = k.let("begin", chunk * blocks.number // k.param(chunks))
        end = k.let("end", (chunk + 1) * blocks.number // k.param(chunks))
        column = k.let("column", panel * lanes)
        left = k.let("left", vmin(k.param(shape.n) - column, lanes))
        a_at, b_at = k.param(a.offset), k.param(columns.offset) + column * k.param(columns.column)
        for group, stride, coordinate in zip(shape.batch, columns.batch_strides, batch, strict=True):
            a_at = a_at + coordinate * k.param(a.strides[group.axes[0]])
            b_at = b_at + coordinate * k.param(stride)
        a_matrix, w = k.let("a_at", a_at), k.let("b_at", b_at)
        tiles = TileFamily(k, "dots", block_sizes(shape.m, tile.rows), arguments, body)
        with k.loop("block", begin, end) as block:
            row = k.let("row", blocks.start(block))
            a_row: Rvalue = a_matrix + row * k.param(shape.a_row)
            tiles.call(blocks.rows(block), [Offset(a_data, a_row), Offset(b_data, w), left, block, *batch, row, column])
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=a.value), columns.buffer, ValueBuffer(value=out.value), *epilogue.buffers),
        params=params,
        units=product(shape.batch_extents) * panels * chunks,
        cost_ns=smax(product_ns(shape, context.caps), weight_ns(shape, context.caps)),
    )


def _ahead(
    shape: GemmShape,
    tile: DotTile,
    rows: int,
    a: tuple[Pointer, Rvalue],
    b: tuple[Pointer, Rvalue],
    number: Rvalue,
    caps: Capabilities,
) -> Ahead | None:
    """What block ``number`` fetches: its part of the next panel; where there is but one, the next rows of an a from far."""
    if caps.prefetching is Prefetching.BURST:
        return None
    if not isinstance(shape.n, int) or shape.n > tile.lanes:
        blocks = max(1, -(-typical(shape.m) // tile.rows))
        panel = (Offset(b[0], b[1] * tile.lanes), b[1])
        return Ahead(first=panel, number=tile.lanes, share=-(-tile.columns // blocks), done=number * tile.groups)
    if 4 * typical(shape.m) * typical(shape.depth) * typical(product(shape.batch_extents)) <= caps.l2_bytes // 2:
        return None
    groups = max(1, -(-shape.n // tile.columns))
    return Ahead(first=(Offset(a[0], a[1] * rows), a[1]), number=rows, share=-(-rows // groups), done=index(0))


def _chunks(shape: GemmShape, tile: DotTile, panels: Size) -> Size:
    """Chunks of row blocks: enough units for every thread, none of too few blocks."""
    wanted = ceildiv(UNITS, panels * product(shape.batch_extents))
    return smax(1, smin(wanted, ceildiv(ceildiv(shape.m, tile.rows), ROW_BLOCKS)))


VARIANTS = [
    Variant(
        name="gemm.dots",
        op=Gemm,
        admits=admits,
        space=space,
        default=default,
        cost_ns=cost_ns,
        build=build,
        rank=2,
    )
]
