"""gemm.fragments: products of 16-bit floats by the matrix units of NVIDIA GPUs (compute capability 8.0 and later), summed in f32.

Operands that are not such floats, or whose rows are not aligned, are copied first (`_gemm_narrow.py`): constants once.

Copies of the next steps of k are under way while one is multiplied: a ring of slots in shared memory, one barrier a step. Sizes
need not fit the tile; what a copy would read outside of a matrix is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu._fragment_product import Copier, multiply
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import (
    PACKET,
    SPACE,
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
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Select, index, lt, vmin

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
    fitting = [t for t in all_tiles() if t.shared_bytes <= gpu.common_shared_bytes]
    best = min(fitting, key=lambda tile: (_tile_ns(shape, tile, gpu), -tile.rows * tile.columns, -tile.slots))
    return {"rows": best.rows, "columns": best.columns, "slots": best.slots}


def _tile_ns(shape: GemmShape, tile: FragmentTile, gpu: Gpu) -> float:
    """Waves of blocks, each taking what its arithmetic takes on one unit."""
    waves = -(-typical(blocks(shape, tile.rows, tile.columns)) // gpu.units)
    return waves * 2 * tile.rows * tile.columns * typical(shape.depth) / (gpu.fragment_gflops / gpu.units * _PEAK)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(shape_of(op), tile_of(config), gpu_of(context)) + copies_ns(op, context)


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    read = [narrow(op, place) for place in (0, 1)]
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
    sums = multiply(k, tile, copiers[0], copiers[1], ceildiv(shape.depth, tile.depth))
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
        *(call for n in read for call in n.copies(context)),
        KernelCall(
            kernel=kernel,
            buffers=(*(n.buffer for n in read), ValueBuffer(value=out.value), *epilogue.buffers),
            params=params,
            units=blocks(shape, tile.rows, tile.columns),
            cost_ns=flops // int(gpu_of(context).fragment_gflops * _PEAK) + LAUNCH_NS,
        ),
    ]


class _Copier(Copier):
    """Tiles of a matrix. ``data``: at the block's first row (or column), whose number is ``first``."""

    def __init__(self, k: GpuBuilder, side: Side, copy: Copy, data: Pointer, first: Rvalue) -> None:
        super().__init__(k, side.operand.dtype, copy)
        self.side, self.data = side, data
        self.left = k.let("left", k.param(side.across) - first)

    def fetch(self, step: Rvalue) -> None:
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
