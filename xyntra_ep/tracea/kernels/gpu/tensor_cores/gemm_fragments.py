"""gemm.fragments: products of 16-bit floats, or of tf32, by the matrix units of NVIDIA GPUs (compute capability 8.0 and later),
summed in f32.

Operands that are not such floats, or whose rows are not aligned, are copied first (`gemm/_narrow.py`): constants once.

Copies of the next steps of k are under way while one is multiplied: a ring of slots in shared memory, one barrier a step. Sizes
need not fit the tile; what a copy would read outside of a matrix is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Side, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import copies_ns, dtype_of, narrow
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packet_end import PacketEnd
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, End, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import GemmSizes, sizes_of, tiles_ns, wanted
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_product import Copier, multiply
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import (
    WARP_ROWS,
    Copy,
    FragmentTile,
)
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Pointer, Rvalue, Select, Var, index, lt, vmin

_PEAK = 0.6  # of the matrix units' rate
_ROWS = (64, 128)
_COLUMNS = (64, 128, 256)
_SLOTS = (2, 3, 4, 6)
_STEP_BYTES = 64  # of a row of k in shared memory
_LARGE = 128 * 128  # of a block's results: from there on, a warp has 64 x 64, which reads least of shared memory


def tile_of(config: Config, dtype: DType) -> FragmentTile:
    rows, columns = config["rows"], config["columns"]
    large, depth = rows * columns >= _LARGE, _STEP_BYTES // dtype.bytes
    # What is rounded takes registers of its own, which a second set of fragments would leave none for.
    held = 1 if large and dtype is DType.F32 else 2
    return FragmentTile(rows, columns, config["slots"], depth, warp_columns=64 if large else 32, held=held, dtype=dtype)


def all_tiles(gpu: Gpu, dtype: DType) -> list[FragmentTile]:
    """The search space: rings of as many slots as the largest tile has room for."""
    largest = [tile_of({"rows": _ROWS[-1], "columns": _COLUMNS[-1], "slots": slots}, dtype) for slots in _SLOTS]
    fitting = [tile.slots for tile in largest if tile.shared_bytes <= gpu.shared_bytes]
    return [tile_of({"rows": m, "columns": n, "slots": s}, dtype) for m in _ROWS for n in _COLUMNS for s in fitting]


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not gpu_of(context).fragment_gflops:
        return "the GPU has no matrix units that are known"
    return f"no fragments of {a.dtype} and {b.dtype}" if dtype_of(op) is None else None


def _dtype(op: Gemm) -> DType:
    """Of an op that is admitted."""
    dtype = dtype_of(op)
    assert dtype is not None
    return dtype


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    slots = tuple(sorted({tile.slots for tile in all_tiles(gpu_of(context), _dtype(op))}))
    return (Axis(name="rows", values=_ROWS), Axis(name="columns", values=_COLUMNS), Axis(name="slots", values=slots), PARTS)


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)
    sizes, known = sizes_of(shape), isinstance(blocks(shape, 1, 1), int)

    def order(choice: tuple[FragmentTile, int]) -> tuple[float, ...]:
        tile, most = choice
        # Where only a run knows how many blocks there are, parts cost nothing until they are needed.
        return _ns(sizes, tile, most, gpu), -tile.rows * tile.columns, tile.slots, most if known else -most

    best, most = min(combinations(all_tiles(gpu, _dtype(op)), MOST), key=order)
    return {"rows": best.rows, "columns": best.columns, "slots": best.slots, "parts": most}


def _parts(shape: GemmShape, tile: FragmentTile, most: int, gpu: Gpu) -> Parts:
    return parts_of(shape.depth, tile.depth, blocks(shape, tile.rows, tile.columns), wanted(tile.threads, gpu), most)


def _ns(sizes: GemmSizes, tile: FragmentTile, most: int, gpu: Gpu) -> float:
    tiles = sizes.blocks(tile.rows, tile.columns)
    parts = parts_of(sizes.depth, tile.depth, tiles, wanted(tile.threads, gpu), most)
    ns = tiles_ns(parts.count * tiles, tile.work(typical(parts.length)), gpu.fragment_rate(tile.dtype) * _PEAK, gpu)
    return ns + meeting_ns(parts, sizes.results, gpu)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    sizes, gpu, dtype = sizes_of(shape_of(op)), gpu_of(context), _dtype(op)
    ns = max(_ns(sizes, tile_of(config, dtype), config["parts"], gpu), sizes.reading_ns(dtype.bytes, gpu))
    return LAUNCH_NS + ns + copies_ns(op, context)


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    read = [narrow(op, place) for place in (0, 1)]
    op = replace(op, inputs=(*(n.operand for n in read), *op.inputs[2:]))
    shape, tile = shape_of(op), tile_of(config, _dtype(op))
    parts = _parts(shape, tile, config["parts"], gpu_of(context))
    a, b = op.inputs[:2]
    k = GpuBuilder(f"xy_gemm_{a.dtype}_fragments_{tile.rows}x{tile.columns}", tile.threads)
    data = [k.buffer("a", a.dtype), k.buffer("b", b.dtype)]
    sums = Sums(k, op, shape.groups, parts, context)
    down, across = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    part, *batch, tile_row, tile_column = parts.split(k, [*shape.batch_extents, down, across])
    row, column = k.let("row", tile_row * tile.rows), k.let("column", tile_column * tile.columns)
    begin, end = parts.range(k, part)
    copiers = []
    matrices = zip(sides_of(op, shape), data, (row, column), (tile.rows, tile.columns), strict=True)
    for side, pointer, first, extent in matrices:
        copy = Copy(tile, extent, side.depth_stride == 1, is_a=side.operand is op.inputs[0])
        start = side.start(k, pointer, batch, first, begin)
        copiers.append(_Copier(k, side, copy, start, first, end - begin))
    totals = multiply(k, tile, copiers[0], copiers[1], parts.steps(k, begin, end, tile.depth))
    sums.finish(part, lambda end: _finish(k, shape, tile, end, [*batch, row, column], totals))
    kernel, params = k.finish()
    flops = 2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)
    return [
        *(call for n in read for call in n.copies(context)),
        KernelCall(
            kernel=kernel,
            buffers=(*(n.buffer for n in read), *sums.buffers),
            params=params,
            units=parts.count * blocks(shape, tile.rows, tile.columns),
            cost_ns=flops // int(gpu_of(context).fragment_rate(tile.dtype) * _PEAK) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


def _finish(
    k: GpuBuilder,
    shape: GemmShape,
    tile: FragmentTile,
    end: End,
    at: Sequence[Rvalue],
    totals: Mapping[tuple[int, int], Sequence[Var]],
) -> None:
    """Store the thread's results that are in the matrix; the tile begins ``at`` (batch, row, column)."""
    *batch, row, column = at
    here = tile.warps().emit(k, k.thread)
    lane = here["lane"]
    pairs = PacketEnd(k, end.epilogue, end.op.output, end.target, shape.n, 2)
    rows, columns = k.param(shape.m), k.param(shape.n)
    rows_fit, columns_fit = is_multiple(shape.m, tile.rows), is_multiple(shape.n, tile.columns)
    for i, half in combinations(range(WARP_ROWS // 16), range(2)):
        m = k.let("m", row + here["m"] + (16 * i + 8 * half) + lane // 4)
        with nullcontext() if rows_fit else k.when(lt(m, rows)):
            place = pairs.here()
            for j, first in combinations(range(tile.warp_columns // 8), range(0, 2, pairs.width)):
                n = k.let("n", column + here["n"] + (8 * j + first) + lane % 4 * 2)
                found = totals[i, j][2 * half + first : 2 * half + first + pairs.width]
                with nullcontext() if columns_fit else k.when(lt(n, columns)):
                    pairs.put(place if columns_fit else pairs.here(), [[*batch, m, n + e] for e in range(pairs.width)], found)


class _Copier(Copier):
    """Tiles of a matrix. ``data``: at the block's first row (or column), whose number is ``first``; ``depth``: what there is of k
    from there."""

    def __init__(self, k: GpuBuilder, side: Side, copy: Copy, data: Pointer, first: Rvalue, depth: Rvalue) -> None:
        super().__init__(k, side.operand.dtype, copy)
        self.side, self.data, self.depth = side, data, depth
        self.left = k.let("left", k.param(side.across) - first)

    def fetch(self, step: Rvalue) -> None:
        k, copy, side = self.k, self.copy, self.side
        begin = k.let("begin", step * copy.tile.depth)
        end = k.let("end", self.depth - begin)
        slot = k.slot(self.shared, step % copy.tile.slots)
        for more in copy.rounds():
            o = self.place["o"] + (more if copy.along_k else 0)
            at = self.place["k"] + (0 if copy.along_k else more)
            row, column, rows, columns = (o, at, self.left, end) if copy.along_k else (at, o, end, self.left)
            valid = k.let("valid", Select(lt(row, rows), vmin(columns - column, copy.tile.packet), index(0)))
            source = o * k.param(side.across_stride) + (begin + at) * k.param(side.depth_stride)
            k.copy_async(slot, self.layout.emit(k, row, column), self.data, source, copy.tile.packet, valid)


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
