"""gemm.fragments: products of 16-bit floats by the matrix units of NVIDIA GPUs (compute capability 8.0 and later), summed in f32.

Operands that are not such floats, or whose rows are not aligned, are copied first (`_gemm_narrow.py`): constants once.

Copies of the next steps of k are under way while one is multiplied: a ring of slots in shared memory, one barrier a step. Sizes
need not fit the tile; what a copy would read outside of a matrix is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import (
    PACKET,
    SPACE,
    WARP_COLUMNS,
    WARP_ROWS,
    Copy,
    FragmentTile,
    all_tiles,
    tile_of,
)
from xyntra_ep.tracea.kernels.gpu._gemm_fetch import Side, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu._gemm_narrow import copies_ns, dtype_of, narrow
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.shared.epilogue import Epilogue
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Const, Pointer, Rvalue, Select, Var, f32, index, lt, vmin

_PEAK = 0.6  # of the matrix units' rate


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not gpu_of(context).fragment_gflops:
        return "the GPU has no matrix units that are known"
    return f"no fragments of {a.dtype} and {b.dtype}" if dtype_of(op) is None else None


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return SPACE


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)
    fitting = [t for t in all_tiles() if t.shared_bytes <= gpu.shared_bytes]
    best = min(fitting, key=lambda tile: (_tile_ns(shape, tile, gpu), -tile.rows * tile.columns, -tile.slots))
    return {"rows": best.rows, "columns": best.columns, "slots": best.slots}


def _tile_ns(shape: GemmShape, tile: FragmentTile, gpu: Gpu) -> float:
    """Waves of blocks, each taking what its arithmetic takes on one unit."""
    waves = -(-typical(blocks(shape, tile.rows, tile.columns)) // gpu.units)
    return waves * 2 * tile.rows * tile.columns * typical(shape.depth) / (gpu.fragment_gflops / gpu.units * _PEAK)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(shape_of(op), tile_of(config), gpu_of(context)) + copies_ns(op, context)


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    read = [narrow(op, place, context) for place in (0, 1)]
    op = replace(op, inputs=(*(n.operand for n in read), *op.inputs[2:]))
    shape, tile = shape_of(op), tile_of(config)
    a, b, out = op.inputs[0], op.inputs[1], op.output
    k = GpuBuilder(f"xy_gemm_{a.dtype}_fragments_{tile.rows}x{tile.columns}", tile.threads)
    data = [k.buffer("a", a.dtype), k.buffer("b", b.dtype)]
    out_data = k.buffer("out", out.dtype, writable=True)
    epilogue = Epilogue(k, context.program, op.epilogue, op.inputs, op.domain, shape.groups, len(shape.groups) - 1)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    *batch, tile_row, tile_column = k.split(k.block, [*shape.batch_extents, down, across])
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    first = (row, column)
    copiers = [
        _Copier(k, side, Copy(tile, extent, side.depth_stride == 1, i == 0), side.start(k, data[i], batch, first[i]), first[i])
        for i, (side, extent) in enumerate(zip(sides_of(op, shape), (tile.rows, tile.columns), strict=True))
    ]
    sums = _multiply(k, tile, copiers[0], copiers[1], ceildiv(shape.depth, tile.depth))
    here = tile.warps().emit(k, k.thread)
    lane = here["lane"]
    for (i, j), values in sums.items():
        for n, total in enumerate(values):
            m = k.let("m", row + here["m"] + 16 * i + lane // 4 + 8 * (n // 2))
            at = k.let("n", column + here["n"] + 8 * j + lane % 4 * 2 + n % 2)
            with k.when(lt(m, k.param(shape.m))), k.when(lt(at, k.param(shape.n))):
                place = epilogue.at(k)
                place.store(out, out_data, [*batch, m, at], place.value([*batch, m, at], total, 1))
    kernel, params = k.finish()
    flops = 2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)
    return [
        *(n.copy for n in read if n.copy is not None),
        KernelCall(
            kernel=kernel,
            buffers=(*(n.buffer for n in read), ValueBuffer(value=out.value), *epilogue.buffers),
            params=params,
            units=blocks(shape, tile.rows, tile.columns),
            cost_ns=flops // int(gpu_of(context).fragment_gflops * _PEAK) + LAUNCH_NS,
        ),
    ]


class _Copier:
    """One operand's tiles in shared memory. ``data``: at the block's first row (or column), whose number is ``first``."""

    def __init__(self, k: GpuBuilder, side: Side, copy: Copy, data: Pointer, first: Rvalue) -> None:
        self.k, self.side, self.copy, self.data = k, side, copy, data
        self.layout = copy.layout()
        self.shared = k.shared("tile", side.operand.dtype, self.layout.elements, copy.tile.slots)
        self.place = copy.lanes().emit(k, k.thread)
        self.rows = copy.fragments().emit(k, k.let("lane", k.thread % 32))
        self.left = k.let("left", k.param(side.across) - first)

    def fetch(self, step: Rvalue) -> None:
        """Begin to copy tile ``step`` of k into its slot."""
        k, copy, side = self.k, self.copy, self.side
        begin = k.let("begin", step * copy.tile.depth)
        end = k.let("end", k.param(side.depth) - begin)
        slot = k.slot(self.shared, step % copy.tile.slots)
        for more in copy.rounds():
            o = self.place["o"] + (more if copy.along_k else 0)
            at = self.place["k"] + (0 if copy.along_k else more)
            row, column, rows, columns = (o, at, self.left, end) if copy.along_k else (at, o, end, self.left)
            valid = k.let("valid", Select(lt(row, rows), vmin(columns - column, PACKET), index(0)))
            source = o * k.param(side.across_stride) + (begin + at) * k.param(side.depth_stride)
            k.copy_async(slot, self.layout.emit(k, row, column), self.data, source, PACKET, valid)

    def load(self, step: Rvalue, first: Rvalue, at: Rvalue) -> list[Rvalue]:
        """Four matrices, the first at row or column ``first`` of the product and at k ``at`` of the tile."""
        o, k_at = self.rows["o"] + first, self.rows["k"] + at
        row, column = (o, k_at) if self.copy.along_k else (k_at, o)
        slot = self.k.slot(self.shared, step % self.copy.tile.slots)
        # a is wanted with its rows along m, b with its rows along n.
        return self.k.load_fragments("part", slot, self.layout.emit(self.k, row, column), transposed=not self.copy.along_k)


def _multiply(k: GpuBuilder, tile: FragmentTile, a: _Copier, b: _Copier, steps: Size) -> dict[tuple[int, int], list[Var]]:
    """The sums of a thread's warp, by 16 rows and 8 columns."""
    blocks = [(i, j) for i in range(WARP_ROWS // 16) for j in range(WARP_COLUMNS // 8)]
    sums = {block: [k.variable("sum", Const(f32(1), 0.0)) for _ in range(4)] for block in blocks}
    here, count, ahead = tile.warps().emit(k, k.thread), k.param(steps), tile.slots - 1
    dtype = a.side.operand.dtype

    def fetch(step: Rvalue) -> None:
        with k.when(lt(step, count)):
            a.fetch(step)
            b.fetch(step)
        k.commit()

    with k.loop("ahead", 0, ahead) as early:
        fetch(early)
    with k.loop("step", 0, count) as step:
        k.wait(ahead - 1)
        k.barrier()
        fetch(k.let("next", step + ahead))
        with k.loop("k", 0, tile.depth, 16) as at:
            rows = [a.load(step, here["m"] + 16 * i, at) for i in range(WARP_ROWS // 16)]
            columns = [b.load(step, here["n"] + 16 * j, at) for j in range(WARP_COLUMNS // 16)]
            for i, j in blocks:
                pair = columns[j // 2][2 * (j % 2) : 2 * (j % 2) + 2]
                k.fragment_dot(sums[i, j], rows[i], pair, dtype)
    k.wait(0)
    return sums


VARIANTS = [
    Variant(
        name="gemm.fragments",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
