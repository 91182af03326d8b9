"""gemm.wgmma: products of 16-bit floats by warpgroups of NVIDIA's compute capability 9.0, out of shared memory, summed in f32.

There is one block for each multiprocessor, which computes tiles of the result one after the other. One warpgroup copies tiles
of both operands as boxes of tensors into a ring of slots, two others multiply them and store (`_wgmma_product.py`). What is
outside of a matrix is copied as 0, so sizes need not fit the tile. Operands that tensor copies cannot take (f32, rows that are
not aligned to 16 bytes) are copied first, as for gemm.fragments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, le, lt, product, smin, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import Side, blocks, sides_of
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import HALVES, copies_ns, dtype_of, narrow
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of, only_where
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tensors import coordinate, is_tensor, moving, tensor_view
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import GemmSizes, sizes_of, stream_ns
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_product import Corner, Ring, Source
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_store import Store
from xyntra_ep.tracea.kernels.gpu.tensor_cores._wgmma_tiles import (
    BYTES,
    CONSUMERS,
    COPYING,
    MULTIPLYING,
    STEP,
    Panels,
    WarpgroupTile,
    all_configs,
    axes,
    in_bands,
    tile_of,
)
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, TempBuffer, TensorView, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_builder import WarpgroupBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, index

# Of the matrix units' rate, by turns: of parts of at least 128 x 128 results, and of smaller ones, which read more of shared
# memory for each product (H200).
_PEAK, _SMALL_PEAK = {1: 0.8, 2: 0.76}, {1: 0.72, 2: 0.68}
_ALONE = 0.55  # where one warpgroup has a tile and the other none
_MEETING_NS = 1500.0  # what blocks of a cluster take to begin and to end together (H200)
_LARGE = 128 * 128  # of a part's results
_BATCH_AXES = 3  # a tensor has five axes at most


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if not gpu_of(context).warpgroups:
        return "no products by warpgroups, which are compute capability 9.0's"
    if dtype_of(op) not in HALVES:
        return f"no products of {a.dtype} and {b.dtype}"
    if any(len(moving(side.others)) > _BATCH_AXES for side in sides_of(op, shape_of(op))):
        return f"tensors of more than {_BATCH_AXES} batch axes"
    if not all(is_tensor(narrow(op, place).operand) for place in (0, 1)):
        return "an operand that goes backwards, or whose rows are one: no tensor to the driver"
    return None


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    return (*axes(gpu_of(context)), PARTS)


def _default(op: Gemm, context: BuildContext) -> Config:
    shape, gpu = shape_of(op), gpu_of(context)
    sizes, known = sizes_of(shape), isinstance(blocks(shape, 1, 1), int)
    configs = [c for c in all_configs(gpu) if c["cluster"] == 1 or _may_fill(tile_of(c, gpu), shape)]

    def order(choice: tuple[Config, int]) -> tuple[float, ...]:
        tile, most = tile_of(choice[0], gpu), choice[1]
        # Where only a run knows how many tiles there are, parts cost nothing until they are needed.
        return _ns(sizes, tile, most, gpu), -tile.rows * tile.columns, tile.turns, -tile.cluster, most if known else -most

    best, most = min(combinations(configs, MOST), key=order)
    return {**best, PARTS.name: most}


def _parts(shape: GemmShape, tile: WarpgroupTile, most: int, gpu: Gpu) -> Parts:
    return parts_of(shape.depth, STEP, blocks(shape, tile.group_rows, tile.columns), gpu.units // tile.cluster, most)


def _may_fill(tile: WarpgroupTile, shape: GemmShape) -> bool:
    """Whether a cluster of such tiles has rows for more than one."""
    return not isinstance(shape.m, int) or shape.m > tile.rows


def _ns(sizes: GemmSizes, tile: WarpgroupTile, most: int, gpu: Gpu) -> float:
    tile = tile.fitting(sizes.m)
    groups, clusters = sizes.blocks(tile.group_rows, tile.columns), gpu.units // tile.cluster
    parts = parts_of(sizes.depth, STEP, groups, clusters, most)
    of_unit = -(-groups * typical(parts.count) // clusters)
    in_turns = tile.turns > 1
    peak = (_PEAK if tile.part_rows * tile.columns >= _LARGE else _SMALL_PEAK)[tile.turns]
    gflops = gpu.fragment_gflops * (_ALONE if in_turns and of_unit == 1 else peak)
    work = tile.work(typical(parts.length))
    ns = stream_ns(of_unit, work, gflops, gpu, sharing=tile.cluster, hides_stores=in_turns)
    return ns + meeting_ns(parts, sizes.results, gpu) + (_MEETING_NS if tile.cluster > 1 else 0.0)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    sizes, gpu = sizes_of(shape_of(op)), gpu_of(context)
    ns = _ns(sizes, tile_of(config, gpu), config[PARTS.name], gpu)
    return LAUNCH_NS + max(ns, sizes.reading_ns(BYTES, gpu)) + copies_ns(op, context)


def _build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    narrowed, gpu = [narrow(op, place) for place in (0, 1)], gpu_of(context)
    read = [n.buffer for n in narrowed]
    op = replace(op, inputs=(*(n.operand for n in narrowed), *op.inputs[2:]))
    m, tile, most = shape_of(op).m, tile_of(config, gpu), config[PARTS.name]
    if isinstance(m, int) or tile.cluster == 1:
        calls = _product(op, read, tile.fitting(typical(m)), most, context)
    else:  # a run knows
        calls = only_where(le(m, tile.rows), _product(op, read, tile.alone, most, context, "parts of few rows"))
        calls += only_where(lt(tile.rows, m), _product(op, read, tile, most, context))
    return [*(call for n in narrowed for call in n.copies(context)), *calls]


def _product(
    op: Gemm,
    read: Sequence[ValueBuffer | TempBuffer],
    tile: WarpgroupTile,
    most: int,
    context: BuildContext,
    memory: str = "parts",
) -> list[KernelCall]:
    """Of operands that tensor copies take, which are in the buffers ``read``."""
    shape, gpu = shape_of(op), gpu_of(context)
    parts = _parts(shape, tile, most, gpu)
    dtype = op.inputs[0].dtype
    name = f"xy_gemm_{dtype}_wgmma_{tile.rows}x{tile.columns}x{tile.turns}x{tile.cluster}"
    k = WarpgroupBuilder(name, 1 + CONSUMERS, tile.cluster)
    k.buffer("a", dtype)
    k.buffer("b", dtype)
    sums = Sums(k, op, shape.groups, parts, context, memory)
    groups = parts.count * blocks(shape, tile.group_rows, tile.columns)
    launched = smin(groups, gpu.units // tile.cluster)
    order = _Order(k, shape, tile, parts, tile.band(gpu), launched)
    turns = order.turns(groups)
    sides = sides_of(op, shape)
    a = _source(k, "a", sides[0], Panels(tile.rows, _is_across(sides[0])), index(0))
    b = _source(k, "b", sides[1], Panels(tile.columns, _is_across(sides[1]), tile.cluster), order.rank)
    ring = Ring(k, tile, (a, b), dtype, k.rounds("steps", k.param(ceildiv(parts.length, STEP))))
    with k.role("copies", 1, COPYING), k.once(), k.loop("turn", 0, turns) as turn:
        part, batch, row, column = order.tile(turn)
        corners = [Corner(first, _batch(k, side, batch)) for side, first in zip(sides, (row, column), strict=True)]
        ring.fill(turn, (corners[0], corners[1]), k.let("begin", part * k.param(parts.length)))
    with k.role("multiplies", CONSUMERS, MULTIPLYING) as group:
        store = Store(k, shape, tile)
        own, first = (group, index(0)) if tile.turns > 1 else (index(0), k.let("first", group * tile.part_rows))
        with k.loop("turn", own, turns, tile.turns) as turn:
            totals = ring.multiply(turn, first)
            part, batch, row, column = order.tile(turn)
            at = [*batch, k.let("top", row + first), column]
            sums.finish(part, lambda end: store.put(end, at, totals))
    kernel, params = k.finish()
    flops = 2 * shape.m * shape.n * shape.depth * product(shape.batch_extents)
    return [
        KernelCall(
            kernel=kernel,
            buffers=(*read, *sums.buffers),
            params=params,
            units=launched * tile.cluster,
            cost_ns=flops // int(gpu.fragment_gflops * _PEAK[tile.turns]) + LAUNCH_NS,
            tensors=tuple(_view(side, place) for place, side in enumerate(sides)),
        ),
        *sums.meeting(),
    ]


class _Order:
    """Which tiles a block computes: of ``launched`` clusters, each takes every so manieth group of tiles, one tile a block. Those
    that run at a time so have tiles that follow each other, in bands of so many rows of groups."""

    def __init__(
        self, k: WarpgroupBuilder, shape: GemmShape, size: WarpgroupTile, parts: Parts, band: int, launched: Size
    ) -> None:
        self.k, self.shape, self.size, self.parts, self.band, self.launched = k, shape, size, parts, band, launched
        alone = size.cluster == 1
        self.cluster = k.block if alone else k.let("cluster", k.block // size.cluster)
        self.rank = index(0) if alone else k.let("rank", k.block % size.cluster)

    def turns(self, groups: Size) -> Rvalue:
        """How many of all ``groups`` are the cluster's."""
        k = self.k
        every = k.param(self.launched)
        left = k.param(groups) - self.cluster
        return k.rounds("turns", index(1) if groups == self.launched else (left + (every - 1)) // every)

    def tile(self, turn: Rvalue) -> tuple[Rvalue, list[Rvalue], Rvalue, Rvalue]:
        """The part of k, the batch, the first row and the first column of the block's tile number ``turn``."""
        k, shape, size = self.k, self.shape, self.size
        number = k.let("tile", self.cluster + turn * k.param(self.launched))
        down, across = ceildiv(shape.m, size.group_rows), ceildiv(shape.n, size.columns)
        extents = [*shape.batch_extents, down * across]
        if self.parts.is_cut:
            part, *batch, rest = k.split(number, [self.parts.count, *extents])
        else:
            part, (*batch, rest) = index(0), k.split(number, extents)
        row, column = in_bands(k, rest, k.param(down), k.param(across), self.band)
        return part, batch, k.let("row", row * size.group_rows + self.rank * size.rows), k.let("column", column * size.columns)


def _is_across(side: Side) -> bool:
    return side.depth_stride != 1


def _source(k: WarpgroupBuilder, name: str, side: Side, panels: Panels, share: Rvalue) -> Source:
    return Source(panels, k.tensor(name, side.operand.dtype, (*panels.box, *(1 for _ in moving(side.others)))), share)


def _batch(k: WarpgroupBuilder, side: Side, batch: Sequence[Rvalue]) -> list[Rvalue]:
    return [coordinate(k, batch[i], side.others[i]) for i in moving(side.others)]


def _view(side: Side, place: int) -> TensorView:
    matrix = [(side.across, side.across_stride), (side.depth, side.depth_stride)]
    (inner, _), (rows, apart) = matrix if _is_across(side) else reversed(matrix)
    others = [(side.operand.shape[i], side.others[i]) for i in moving(side.others)]
    return tensor_view(side.operand, place, inner, rows, apart, others)


VARIANTS = [
    Variant(
        name="gemm.wgmma",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=-1,  # of products that are bound by reading, estimates see no difference to gemm.fragments, which keeps threads busy
        may_hang=True,
    )
]
