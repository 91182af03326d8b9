"""gemm.block_tiles: products of floats by fused multiply-adds, on any GPU. A block computes a tile of the result, in steps of k
through shared memory, where it has room for two: while one is multiplied, registers take in the next.

Batches are blocks of their own; sizes need not fit the tile, and are run-time parameters unless they are constant. The epilogue
reads what it needs at each element, whose result is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Fetcher, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu.gemm._tile_product import multiply
from xyntra_ep.tracea.kernels.gpu.gemm._tiles import PACKET, SPACE, GemmTile, all_tiles, tile_of
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, End, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import GemmSizes, sizes_of, tiles_ns, wanted
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, lt

_PEAK = {8: 0.8, 4: 0.5}  # of the arithmetic peak, by a thread's side: a packet read from shared memory feeds so many products


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    return None if a.dtype.is_float and b.dtype.is_float else f"no product of {a.dtype} and {b.dtype}"


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return (*SPACE, PARTS)


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)

    sizes, known = sizes_of(shape), isinstance(blocks(shape, 1, 1), int)

    def order(choice: tuple[GemmTile, int]) -> tuple[float, ...]:
        tile, most = choice
        # Where only a run knows how many blocks there are, parts cost nothing until they are needed.
        return _ns(sizes, op, tile, most, gpu), -tile.rows * tile.columns, most if known else -most

    fitting = [tile for tile in all_tiles() if tile.shared_bytes <= gpu.shared_bytes]
    best, most = min(combinations(fitting, MOST), key=order)
    return {"rows": best.rows, "columns": best.columns, "parts": most}


def _parts(shape: GemmShape, tile: GemmTile, most: int, gpu: Gpu) -> Parts:
    return parts_of(shape.depth, tile.depth, blocks(shape, tile.rows, tile.columns), wanted(tile.threads, gpu), most)


def _ns(sizes: GemmSizes, op: Gemm, tile: GemmTile, most: int, gpu: Gpu) -> float:
    tiles = sizes.blocks(tile.rows, tile.columns)
    parts = parts_of(sizes.depth, tile.depth, tiles, wanted(tile.threads, gpu), most)
    work = tile.work(typical(parts.length), op.inputs[0].dtype.bytes)
    ns = tiles_ns(parts.count * tiles, work, gpu.fma_gflops * _PEAK[tile.side], gpu)
    return ns + meeting_ns(parts, sizes.results, gpu)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    sizes, gpu = sizes_of(shape_of(op)), gpu_of(context)
    ns = _ns(sizes, op, tile_of(config), config["parts"], gpu)
    return LAUNCH_NS + max(ns, sizes.reading_ns(op.inputs[0].dtype.bytes, gpu))


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, tile, gpu = shape_of(op), tile_of(config), gpu_of(context)
    parts = _parts(shape, tile, config["parts"], gpu)
    a, b = op.inputs[:2]
    k = GpuBuilder(f"xy_gemm_{a.dtype}_{tile.rows}x{tile.columns}", tile.threads)
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    sums = Sums(k, op, shape.groups, parts, context)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    part, *batch, tile_row, tile_column = parts.split(k, [*shape.batch_extents, down, across])
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    begin, end = parts.range(k, part)
    fetchers = []
    matrices = zip(sides_of(op, shape), (a_data, b_data), "mn", (row, column), (tile.rows, tile.columns), strict=True)
    for side, data, axis, first, extent in matrices:
        start = side.start(k, data, batch, first, begin)
        fetchers.append(Fetcher(k, side, side.fetch(tile, extent), axis, start, first, end - begin))
    totals = multiply(k, tile, fetchers[0], fetchers[1], parts.steps(k, begin, end, tile.depth))
    sums.finish(part, lambda end: _finish(k, shape, tile, end, [*batch, row, column], totals))
    kernel, params = k.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=a.value),
                ValueBuffer(value=b.value),
                *sums.buffers,
            ),
            params=params,
            units=parts.count * blocks(shape, tile.rows, tile.columns),
            cost_ns=2 * shape.m * shape.n * shape.depth * product(shape.batch_extents) // int(gpu.fma_gflops) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


def _finish(
    k: GpuBuilder, shape: GemmShape, tile: GemmTile, end: End, at: Sequence[Rvalue], totals: Sequence[Sequence[Var]]
) -> None:
    """Store the thread's results that are in the matrix; the tile begins ``at`` (batch, row, column)."""
    *batch, row, column = at
    place = tile.lanes().emit(k, k.thread)
    rows = [k.let("m", row + place["m"] + more + i) for more in tile.packets(tile.rows) for i in range(PACKET)]
    columns = [k.let("n", column + place["n"] + more + i) for more in tile.packets(tile.columns) for i in range(PACKET)]
    rows_fit, columns_fit = is_multiple(shape.m, tile.rows), is_multiple(shape.n, tile.columns)

    def put_row(m: Rvalue, totals: Sequence[Var]) -> None:
        here = end.here()
        for n, total in zip(columns, totals, strict=True):
            if columns_fit:
                end.put(here, [*batch, m, n], total)
            else:
                with k.when(lt(n, k.param(shape.n))):
                    end.put(end.here(), [*batch, m, n], total)

    for m, of_row in zip(rows, totals, strict=True):
        if rows_fit:
            put_row(m, of_row)
        else:
            with k.when(lt(m, k.param(shape.m))):
                put_row(m, of_row)


VARIANTS = [
    Variant(
        name="gemm.block_tiles",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=10,
    )
]
