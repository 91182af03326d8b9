"""gemm.block_tiles: products of floats by fused multiply-adds, on any GPU. A block computes a tile of the result, in steps of k
through shared memory, where it has room for two: while one is multiplied, registers take in the next.

Batches are blocks of their own; sizes need not fit the tile, and are run-time parameters unless they are constant. The epilogue
reads what it needs at each element, whose result is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu._gemm_fetch import Fetcher, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu._gemm_tiles import PACKET, SPACE, GemmTile, all_tiles, tile_of
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu._packets import is_multiple
from xyntra_ep.tracea.kernels.gpu._tile_product import multiply
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue, Here
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Var, lt

_PEAK = {8: 0.8, 4: 0.5}  # of the arithmetic peak, by a thread's side: a packet read from shared memory feeds so many products


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    return None if a.dtype.is_float and b.dtype.is_float else f"no product of {a.dtype} and {b.dtype}"


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)
    best = min(all_tiles(), key=lambda tile: (_tile_ns(shape, tile, gpu), -tile.rows * tile.columns))
    return {"rows": best.rows, "columns": best.columns}


def _tile_ns(shape: GemmShape, tile: GemmTile, gpu: Gpu) -> float:
    """Waves of blocks, each taking what its arithmetic takes on one unit."""
    waves = -(-typical(blocks(shape, tile.rows, tile.columns)) // gpu.units)
    flops = 2 * tile.rows * tile.columns * typical(shape.depth)
    return waves * flops / (gpu.fma_gflops / gpu.units * _PEAK[tile.side])


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(shape_of(op), tile_of(config), gpu_of(context))


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    shape, tile, gpu = shape_of(op), tile_of(config), gpu_of(context)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = GpuBuilder(f"xy_gemm_{a.dtype}_{tile.rows}x{tile.columns}", tile.threads)
    a_data, b_data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    *batch, tile_row, tile_column = k.split(k.block, [*shape.batch_extents, down, across])
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    fetchers = []
    matrices = zip(sides_of(op, shape), (a_data, b_data), "mn", (row, column), (tile.rows, tile.columns), strict=True)
    for side, data, axis, first, extent in matrices:
        start = side.start(k, data, batch, first)
        fetchers.append(Fetcher(k, side, side.fetch(tile, extent), axis, start, first))
    sums = multiply(k, tile, fetchers[0], fetchers[1], ceildiv(shape.depth, tile.depth))
    _finish(k, op, shape, tile, epilogue, out_data, batch, row, column, sums)
    kernel, params = k.finish()
    return [
        KernelCall(
            kernel=kernel,
            buffers=(
                ValueBuffer(value=a.value),
                ValueBuffer(value=b.value),
                ValueBuffer(value=out.value),
                *epilogue.buffers,
            ),
            params=params,
            units=blocks(shape, tile.rows, tile.columns),
            cost_ns=2 * shape.m * shape.n * shape.depth * product(shape.batch_extents) // int(gpu.fma_gflops) + LAUNCH_NS,
        )
    ]


def _finish(
    k: GpuBuilder,
    op: Gemm,
    shape: GemmShape,
    tile: GemmTile,
    epilogue: Epilogue,
    out_data: Var,
    batch: Sequence[Rvalue],
    row: Rvalue,
    column: Rvalue,
    sums: Sequence[Sequence[Var]],
) -> None:
    """Store the thread's results that are in the matrix."""
    place = tile.lanes().emit(k, k.thread)
    rows = [k.let("m", row + place["m"] + more + i) for more in tile.packets(tile.rows) for i in range(PACKET)]
    columns = [k.let("n", column + place["n"] + more + i) for more in tile.packets(tile.columns) for i in range(PACKET)]
    rows_fit, columns_fit = is_multiple(shape.m, tile.rows), is_multiple(shape.n, tile.columns)

    def put(here: Here, m: Rvalue, n: Rvalue, total: Var) -> None:
        here.store(op.output, out_data, [*batch, m, n], here.value([*batch, m, n], total, 1))

    def put_row(m: Rvalue, totals: Sequence[Var]) -> None:
        here = epilogue.at(k)
        for n, total in zip(columns, totals, strict=True):
            if columns_fit:
                put(here, m, n, total)
            else:
                with k.when(lt(n, k.param(shape.n))):
                    put(epilogue.at(k), m, n, total)

    for m, totals in zip(rows, sums, strict=True):
        if rows_fit:
            put_row(m, totals)
        else:
            with k.when(lt(m, k.param(shape.m))):
                put_row(m, totals)


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
