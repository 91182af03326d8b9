"""gemm.wgmma: products of 16-bit floats by warpgroups of NVIDIA's compute capability 9.0, out of shared memory, summed in f32.

One warpgroup copies tiles of both operands as boxes of tensors into a ring of slots, the others multiply them
(`_wgmma_product.py`). What is outside of a matrix is copied as 0, so sizes need not fit the tile. Operands that tensor copies
cannot take (f32, rows that are not aligned to 16 bytes) are copied first, as for gemm.fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, eq, known_nonnegative, ne, product, select
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand
from xyntra_ep.tracea.kernels.gpu._gemm_fetch import Side, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu._gemm_narrow import HALVES, copies_ns, dtype_of, narrow
from xyntra_ep.tracea.kernels.gpu._launch import CACHE, LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu._packet_end import PacketEnd
from xyntra_ep.tracea.kernels.gpu._tile_cost import START_NS, GemmSizes, sizes_of
from xyntra_ep.tracea.kernels.gpu._wgmma_product import Ring, Source
from xyntra_ep.tracea.kernels.gpu._wgmma_tiles import BYTES, SPACE, STEP, Panels, WarpgroupTile, all_tiles, tile_of
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TensorView, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, lt, vmin
from xyntra_ep.tracea.semantic_ir.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.warpgroup_nodes import ROWS, WARPGROUP

_PEAK = {64: 0.55, 128: 0.8}  # of the matrix units' rate, by a tile's rows: one warpgroup alone does not keep them busy
_PAIR = 2  # neighbours of a row among a thread's sums
_BAND = 8  # rows of tiles that blocks go down before they go across: what runs at a time reads few rows and few columns
_ANY_STRIDE = 16  # bytes, of an axis with one place
_BATCH_AXES = 3  # a tensor has five axes at most


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not gpu_of(context).warpgroups:
        return "no products by warpgroups, which are compute capability 9.0's"
    if dtype_of(op) not in HALVES:
        return f"no products of {a.dtype} and {b.dtype}"
    if any(len(_moving(side)) > _BATCH_AXES for side in sides_of(op, shape_of(op))):
        return f"tensors of more than {_BATCH_AXES} batch axes"
    if not all(_is_tensor(narrow(op, place).operand) for place in (0, 1)):
        return "an operand that goes backwards, or whose rows are one: no tensor to the driver"
    return None


def _is_tensor(operand: Operand) -> bool:
    """Whether the driver takes its strides, as far as they are known (CUDA Driver API, cuTensorMapEncodeTiled: unsigned; of 0 it
    does not speak). Nothing is copied of an empty tensor."""
    repeats = 0 in operand.strides[-2:] and 0 not in operand.shape
    return not repeats and all(known_nonnegative(stride) for stride in operand.strides)


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Gemm, context: BuildContext) -> Config:
    sizes, gpu = sizes_of(shape_of(op)), gpu_of(context)
    fitting = [t for t in all_tiles() if t.shared_bytes <= gpu.shared_bytes]
    best = min(fitting, key=lambda tile: (_ns(sizes, tile, gpu), -tile.rows * tile.columns, -tile.slots))
    return {"rows": best.rows, "columns": best.columns, "slots": best.slots}


def _ns(sizes: GemmSizes, tile: WarpgroupTile, gpu: Gpu) -> float:
    """Waves of blocks, one on a unit at a time. Copies run beside products: what takes longer counts."""
    waves = -(-sizes.blocks(tile.rows, tile.columns) // gpu.units)
    arithmetic = 2 * tile.rows * tile.columns * sizes.depth / (gpu.fragment_gflops / gpu.units * _PEAK[tile.rows])
    copies = (tile.rows + tile.columns) * sizes.depth * BYTES / (CACHE * gpu.memory_gbs / gpu.units)
    return waves * (START_NS + max(arithmetic, copies))


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    sizes, gpu = sizes_of(shape_of(op)), gpu_of(context)
    return LAUNCH_NS + max(_ns(sizes, tile_of(config), gpu), sizes.reading_ns(BYTES, gpu)) + copies_ns(op, context)


def _moving(side: Side) -> list[int]:
    """The batch axes along which an operand changes."""
    return [i for i, stride in enumerate(side.others) if stride != 0]


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    read = [narrow(op, place) for place in (0, 1)]
    op = replace(op, inputs=(*(n.operand for n in read), *op.inputs[2:]))
    shape, tile = shape_of(op), tile_of(config)
    dtype = op.inputs[0].dtype
    k = WarpgroupBuilder(f"xy_gemm_{dtype}_wgmma_{tile.rows}x{tile.columns}", 1 + tile.consumers)
    k.buffer("a", dtype)
    k.buffer("b", dtype)
    target = k.buffer("out", op.output.dtype, writable=True)
    last = len(shape.groups) - 1
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, shape.groups, last)
    end = PacketEnd(k, epilogue, op.output, target, shape.groups, last, shape.n, _PAIR)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    *batch, number = k.split(k.block, [*shape.batch_extents, down * across])
    tile_row, tile_column = _in_bands(k, number, k.param(down), k.param(across))
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    sides = sides_of(op, shape)
    a, b = (
        _source(k, name, side, extent, first, batch)
        for name, side, extent, first in zip("ab", sides, (tile.rows, tile.columns), (row, column), strict=True)
    )
    ring = Ring(k, tile, (a, b), dtype)
    steps = k.param(ceildiv(shape.depth, STEP))
    with k.role("copies", 1, tile.registers[0]):
        ring.fill(steps)
    with k.role("multiplies", tile.consumers, tile.registers[1]):
        member = k.let("member", k.thread - WARPGROUP)
        group = k.let("group", member // WARPGROUP)
        sums = ring.multiply(steps, group)
        lane = k.let("lane", member % 32)
        top = k.let("top", row + group * ROWS + member % WARPGROUP // 32 * 16 + lane // 4)
        left = k.let("left", column + lane % 4 * 2)
        for half in range(2):
            m = k.let("m", top + 8 * half)
            with k.when(lt(m, k.param(shape.m))):
                for i in range(2 * half, len(sums), 4):
                    for first in range(0, _PAIR, end.width):
                        n = k.let("n", left + (2 * i - 4 * half + first))
                        with k.when(lt(n, k.param(shape.n))):
                            places = [[*batch, m, n + j] for j in range(end.width)]
                            end.put(end.here(), places, sums[i + first : i + first + end.width])
    kernel, params = k.finish()
    flops = 2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)
    return [
        *(call for n in read for call in n.copies(context)),
        KernelCall(
            kernel=kernel,
            buffers=(*(n.buffer for n in read), ValueBuffer(value=op.output.value), *epilogue.buffers),
            params=params,
            units=blocks(shape, tile.rows, tile.columns),
            cost_ns=flops // int(gpu_of(context).fragment_gflops * _PEAK[tile.rows]) + LAUNCH_NS,
            tensors=tuple(_view(side, place) for place, side in enumerate(sides)),
        ),
    ]


def _in_bands(k: WarpgroupBuilder, number: Rvalue, down: Rvalue, across: Rvalue) -> tuple[Rvalue, Rvalue]:
    """The row and the column of tile ``number`` of ``down`` x ``across``: down a band of rows, then the next column of it."""
    band = k.let("band", number // (across * _BAND))
    inside = k.let("inside", number - band * (across * _BAND))
    rows = k.let("rows", vmin(down - band * _BAND, _BAND))
    return k.let("down", band * _BAND + inside % rows), k.let("across", inside // rows)


def _is_across(side: Side) -> bool:
    return side.depth_stride != 1


def _source(k: WarpgroupBuilder, name: str, side: Side, extent: int, first: Rvalue, batch: Sequence[Rvalue]) -> Source:
    panels, moving = Panels(extent, _is_across(side)), _moving(side)
    tensor = k.tensor(name, side.operand.dtype, (*panels.box, *(1 for _ in moving)))
    return Source(panels, tensor, first, [_place(k, batch[i], side.others[i]) for i in moving])


def _place(k: WarpgroupBuilder, coordinate: Rvalue, stride: Size) -> Rvalue:
    """Along an axis of the batch, which may turn out to be one that the operand does not have."""
    return coordinate if isinstance(stride, int) else coordinate * k.param(ne(stride, 0))


def _view(side: Side, place: int) -> TensorView:
    """The operand as a tensor: the contiguous axis, the other one, and those of the batch. An axis that repeats is one place."""
    size, moving = side.operand.dtype.bytes, _moving(side)
    matrix = [(side.across, side.across_stride), (side.depth, side.depth_stride)]
    (inner, _), (rows, apart) = matrix if _is_across(side) else reversed(matrix)
    others = [(side.operand.shape[i], side.others[i]) for i in moving]
    return TensorView(
        buffer=place,
        offset_bytes=side.operand.offset * size,
        extents=(inner, rows, *(select(eq(stride, 0), 1, extent) for extent, stride in others)),
        strides_bytes=(apart * size, *(select(eq(stride, 0), _ANY_STRIDE, stride * size) for _, stride in others)),
    )


VARIANTS = [
    Variant(
        name="gemm.wgmma",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
