"""gemm.matrix: products by the matrix units of any GPU that has a row of their shapes, in the types of these: 16-bit floats, f32,
or f32 taken as tf32; summed in f32.

A block computes a tile of the result, in steps of k through shared memory, where it has room for two: while one is multiplied,
registers take in the next. What is fetched is rounded on the way, so operands may lie in any float type and layout. Sizes need
not fit the tile; batches are blocks of their own, and k may be in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Side, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import dtype_of
from xyntra_ep.tracea.kernels.gpu.matrix_cores._feed import Feed, own
from xyntra_ep.tracea.kernels.gpu.matrix_cores._tiles import PACKET, Fetch, MatrixTile
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, End, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import GemmSizes, sizes_of, tiles_ns, wanted
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu, MatrixUnit
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Var, binary, f32, index, lt

_PEAK = 0.5  # of the matrix units' rate; an estimate, nothing was measured
_EXTENTS = (64, 128)

Blocks = dict[tuple[int, int], Var]  # a thread's sums, by the rows and columns of products of its warp


def units_of(op: Gemm, gpu: Gpu) -> list[MatrixUnit]:
    """Those that multiply in what the op asks for, the preferred first."""
    a, b = op.inputs[:2]
    if not (a.dtype.is_float and b.dtype.is_float):
        return []
    dtype = dtype_of(op) or DType.F32
    found = [unit for unit in gpu.matrix_units if unit.shape.dtype is dtype]
    # To multiply in all of f32 is as legal as in tf32, where that is asked for.
    rounded = op.product is Product.TF32 and any(unit.shape.rounded for unit in found)
    return [unit for unit in found if unit.shape.rounded is rounded]


def all_tiles(units: Sequence[MatrixUnit]) -> list[MatrixTile]:
    """The search space."""
    return [MatrixTile(m, n, unit.shape) for unit in units for m in _EXTENTS for n in _EXTENTS]


def _admits(op: Gemm, context: BuildContext) -> str | None:
    gpu = gpu_of(context)
    if not gpu.matrix_units:
        return "the GPU has no matrix units with a table of shapes"
    a, b = op.inputs[:2]
    return None if units_of(op, gpu) else f"no matrix unit multiplies {a.dtype} and {b.dtype} as {op.product}"


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    sides = tuple(sorted({unit.shape.m for unit in units_of(op, gpu_of(context))}))
    return (Axis(name="rows", values=_EXTENTS), Axis(name="columns", values=_EXTENTS), Axis(name="side", values=sides), PARTS)


def _unit(op: Gemm, side: int, gpu: Gpu) -> MatrixUnit:
    return next(unit for unit in units_of(op, gpu) if unit.shape.m == side)


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)
    sizes, known = sizes_of(shape), isinstance(blocks(shape, 1, 1), int)
    units = units_of(op, gpu)

    def order(choice: tuple[MatrixTile, int]) -> tuple[float, ...]:
        tile, most = choice
        # Where only a run knows how many blocks there are, parts cost nothing until they are needed.
        return _ns(sizes, op, tile, most, gpu), -tile.rows * tile.columns, most if known else -most

    best, most = min(combinations(all_tiles(units[:1]), MOST), key=order)
    return {"rows": best.rows, "columns": best.columns, "side": best.shape.m, "parts": most}


def _tile(op: Gemm, config: Config, gpu: Gpu) -> MatrixTile:
    return MatrixTile(config["rows"], config["columns"], _unit(op, config["side"], gpu).shape)


def _parts(shape: GemmShape, tile: MatrixTile, most: int, gpu: Gpu) -> Parts:
    return parts_of(shape.depth, tile.depth, blocks(shape, tile.rows, tile.columns), wanted(tile.threads, gpu), most)


def _ns(sizes: GemmSizes, op: Gemm, tile: MatrixTile, most: int, gpu: Gpu) -> float:
    tiles = sizes.blocks(tile.rows, tile.columns)
    parts = parts_of(sizes.depth, tile.depth, tiles, wanted(tile.threads, gpu), most)
    work = tile.work(typical(parts.length), op.inputs[0].dtype.bytes)
    gflops = _unit(op, tile.shape.m, gpu).gflops
    return tiles_ns(parts.count * tiles, work, gflops * _PEAK, gpu) + meeting_ns(parts, sizes.results, gpu)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    sizes, gpu = sizes_of(shape_of(op)), gpu_of(context)
    ns = _ns(sizes, op, _tile(op, config, gpu), config["parts"], gpu)
    return LAUNCH_NS + max(ns, sizes.reading_ns(op.inputs[0].dtype.bytes, gpu))


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, gpu = shape_of(op), gpu_of(context)
    tile, unit = _tile(op, config, gpu), _unit(op, config["side"], gpu)
    parts = _parts(shape, tile, config["parts"], gpu)
    a, b = op.inputs[:2]
    k = GpuBuilder(f"xy_gemm_{tile.shape.dtype}_matrix_{tile.rows}x{tile.columns}", tile.threads)
    data = [k.buffer("a", a.dtype), k.buffer("b", b.dtype)]
    sums = Sums(k, op, shape.groups, parts, context)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    part, *batch, tile_row, tile_column = parts.split(k, [*shape.batch_extents, down, across])
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    begin, end = parts.range(k, part)
    feeds = []
    matrices = zip(sides_of(op, shape), data, (row, column), (tile.rows, tile.columns), (True, False), strict=True)
    for side, pointer, first, extent, is_a in matrices:
        start = side.start(k, pointer, batch, first, begin)
        feeds.append(Feed(k, side, _fetch(side, tile, extent, is_a), start, first, end - begin))
    totals = _multiply(k, tile, feeds[0], feeds[1], parts.steps(k, begin, end, tile.depth))
    sums.finish(part, lambda end: _finish(k, shape, tile, end, [*batch, row, column], totals))
    kernel, params = k.finish()
    flops = 2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)
    return [
        KernelCall(
            kernel=kernel,
            buffers=(ValueBuffer(value=a.value), ValueBuffer(value=b.value), *sums.buffers),
            params=params,
            units=parts.count * blocks(shape, tile.rows, tile.columns),
            cost_ns=flops // int(unit.gflops * _PEAK) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


def _fetch(side: Side, tile: MatrixTile, extent: int, is_a: bool) -> Fetch:
    """Along what is contiguous, in packets where everything is aligned to them."""
    along_k = side.depth_stride == 1 or side.across_stride != 1
    length, apart = (side.depth, side.across_stride) if along_k else (side.across, side.depth_stride)
    contiguous = (side.depth_stride if along_k else side.across_stride) == 1
    aligned = contiguous and all(is_multiple(s, PACKET) for s in (length, apart, side.operand.offset, *side.others))
    return Fetch(tile, extent, along_k, PACKET if aligned else 1, is_a)


def _multiply(k: GpuBuilder, tile: MatrixTile, a: Feed, b: Feed, count: Rvalue) -> Blocks:
    """The sums of a thread over ``count`` steps."""
    shape = tile.shape
    down, across = range(0, tile.warp_rows, shape.m), range(0, tile.warp_columns, shape.n)
    sums = {(i, j): k.array("sum", DType.F32, shape.held(shape.c)) for i in down for j in across}
    zero = Const(f32(1), 0.0)
    for array in sums.values():
        for i in range(shape.held(shape.c)):
            k.store(array, i, zero)
    place = tile.warps().emit(k, k.thread)
    with nullcontext() if isinstance(count, Const) and count.value else k.when(lt(0, count)):  # there may be nothing to read
        for feed in (a, b):
            feed.load(0)
    for feed in (a, b):
        feed.store(k.slot(feed.shared, 0))
    k.barrier()
    a_parts, b_parts = a.parts(len(down)), b.parts(len(across))
    with k.loop("step", 0, count) as step:
        ahead = k.let("ahead", step + 1)
        with k.when(lt(ahead, count)):
            for feed in (a, b):
                feed.load(ahead)
        for at in range(0, tile.depth, tile.reach):
            for feed, axis, extents, parts in ((a, "m", down, a_parts), (b, "n", across, b_parts)):
                for first, part in zip(extents, parts, strict=True):
                    feed.give(k.slot(feed.shared, step % 2), place[axis] + first, at, part)
            for more in range(0, tile.read, shape.held(shape.a)):
                for (i, x), (j, y) in combinations(zip(down, a_parts, strict=True), zip(across, b_parts, strict=True)):
                    k.matrix_dot(shape, sums[i, j], own(x, more), own(y, more))
        with k.when(lt(ahead, count)):
            for feed in (a, b):
                feed.store(k.slot(feed.shared, ahead % 2))
        k.barrier()
    return sums


def _finish(k: GpuBuilder, shape: GemmShape, tile: MatrixTile, end: End, at: Sequence[Rvalue], totals: Blocks) -> None:
    """Store the thread's results that are in the matrix; the tile begins ``at`` (batch, row, column)."""
    *batch, row, column = at
    warp = tile.warps().emit(k, k.thread)
    lanes = tile.shape.of_lanes(tile.shape.c).emit(k, warp["lane"])
    elements = tile.shape.of_elements(tile.shape.c)
    rows_fit, columns_fit = is_multiple(shape.m, tile.rows), is_multiple(shape.n, tile.columns)
    m0, n0 = k.let("m", row + warp["m"] + lanes["m"]), k.let("n", column + warp["n"] + lanes["n"])
    for (i, j), array in totals.items():
        # A condition even where all rows are there: what belongs to one product is done before the next, in few registers.
        inside = lt(m0 + index(i), k.param(shape.m))
        if not columns_fit:
            inside = binary("and", inside, lt(n0 + index(j), k.param(shape.n)))
        with k.when(inside):
            for element in range(elements.threads):
                more = elements.at(element)
                m, n = k.let("m", m0 + index(i + more.get("m", 0))), k.let("n", n0 + index(j + more.get("n", 0)))
                with (
                    nullcontext() if rows_fit else k.when(lt(m, k.param(shape.m))),
                    nullcontext() if columns_fit or not more.get("n", 0) else k.when(lt(n, k.param(shape.n))),
                ):
                    end.put(end.here(), [*batch, m, n], k.let("total", k.load(array, element)))


VARIANTS = [
    Variant(
        name="gemm.matrix",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
