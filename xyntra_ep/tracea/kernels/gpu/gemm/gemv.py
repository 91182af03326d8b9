"""gemm.gemv: products of few rows, as a decoding step has them, on any GPU: bound by reading b, which is read once.

Threads read b in packets, several under way in each, multiply them with all rows of a, and add up in a fixed order. Where the
columns are too few for a device's blocks, k is cut into parts (`shared/sum_parts.py`). Any sizes; both layouts of b; f32 that may
be multiplied in bf16 is copied in that, where it is constant: half as much is read then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product as combinations

from xyntra_ep.tracea.core_ir.dims import ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.gpu.gemm._fetch import blocks, sides_of
from xyntra_ep.tracea.kernels.gpu.gemm._gemv_code import GemvCode
from xyntra_ep.tracea.kernels.gpu.gemm._gemv_tiles import ROWS, THREADS, GemvTile, widest
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import Narrow, dtype_of, narrow
from xyntra_ep.tracea.kernels.gpu.shared.launch import CACHE, LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import AXIS as PARTS
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import MOST, Parts, Sums, meeting_ns, parts_of
from xyntra_ep.tracea.kernels.gpu.shared.tile_cost import LATENCY_NS, START_NS, sizes_of
from xyntra_ep.tracea.kernels.shared.gemm_shape import GemmShape, shape_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import index

MOST_ROWS = 16  # more are for tiles, which read both operands in shares
_PEAK = 0.3  # of the arithmetic peak: a value of a is read for as few products as a packet of b has columns
_BLOCKS = 2  # a unit, that parts are made for
_FEWEST = 1  # steps of a part: in each, threads wait for memory once


def _admits(op: Gemm, context: BuildContext) -> str | None:
    a, b = op.inputs[:2]
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from threads that share a column"
    if not (a.dtype.is_float and b.dtype.is_float):
        return f"no product of {a.dtype} and {b.dtype}"
    m = shape_of(op).m
    if not isinstance(m, int):
        return "the number of rows is not known"
    return f"{m} rows, more than {MOST_ROWS}, are for tiles" if m > MOST_ROWS else None


def _space(op: Gemm, context: BuildContext) -> Sequence[Axis]:
    op, gpu = replace(op, inputs=(op.inputs[0], _read(op, context).operand, *op.inputs[2:])), gpu_of(context)
    fitting = tuple(rows for rows in ROWS if _tile(op, rows, gpu).shared_bytes <= gpu.shared_bytes)
    return (Axis(name="rows", values=fitting), PARTS)


def _default(op: Gemm, context: BuildContext) -> Config:
    [rows, _] = _space(op, context)
    configs = [{"rows": r, "parts": p} for r, p in combinations(rows.values, MOST)]
    return min(configs, key=lambda config: (_cost_ns(op, config, context), config["parts"], config["rows"]))


def _read(op: Gemm, context: BuildContext) -> Narrow:
    """How b is read."""
    b = op.inputs[1]
    if dtype_of(op) is not None and context.is_constant(b.value):
        return narrow(op, 1)
    return Narrow(place=1, source=b, operand=b)


def _tile(op: Gemm, rows: int, gpu: Gpu) -> GemvTile:
    """In packets as wide as b is aligned to."""
    side = sides_of(op, shape_of(op))[1]
    along_k = side.depth_stride == 1
    apart = [side.across_stride] if along_k else [side.depth_stride, side.across]
    dtype = side.operand.dtype
    packet = widest(dtype) if 1 in (side.depth_stride, side.across_stride) else 1
    while not all(is_multiple(s, packet) for s in (*apart, side.operand.offset, *side.others)):
        packet //= 2
    return GemvTile(rows=rows, along_k=along_k, packet=packet, dtype=dtype, subgroup=gpu.subgroup)


def _parts(shape: GemmShape, tile: GemvTile, most: int, gpu: Gpu) -> Parts:
    return parts_of(shape.depth, tile.depth, blocks(shape, tile.rows, tile.columns), _BLOCKS * gpu.units, most, _FEWEST)


def _cost_ns(op: Gemm, config: Config, context: BuildContext) -> float:
    op, gpu = replace(op, inputs=(op.inputs[0], _read(op, context).operand, *op.inputs[2:])), gpu_of(context)
    sizes, tile = sizes_of(shape_of(op)), _tile(op, config["rows"], gpu)
    tiles = sizes.blocks(tile.rows, tile.columns)
    parts = parts_of(sizes.depth, tile.depth, tiles, _BLOCKS * gpu.units, config["parts"], _FEWEST)
    passes = -(-sizes.m // tile.rows)
    elements = sizes.batch * sizes.depth * sizes.n
    under_way = tiles * typical(parts.count) * tile.bytes_under_way
    rate = min(gpu.memory_gbs, max(1, under_way) / LATENCY_NS)
    reading = elements * tile.dtype.bytes * (1 + (passes - 1) / CACHE) / rate
    products = 2 * elements * passes * tile.rows / (gpu.fma_gflops * _PEAK)
    return LAUNCH_NS + START_NS + max(reading, products) + meeting_ns(parts, sizes.results, gpu)


def build(op: Gemm, config: Config, context: BuildContext) -> list[KernelCall]:
    """The calls for any number of rows; ``admits`` says for which ones they are fast."""
    read, gpu = _read(op, context), gpu_of(context)
    op = replace(op, inputs=(op.inputs[0], read.operand, *op.inputs[2:]))
    shape, tile = shape_of(op), _tile(op, config["rows"], gpu)
    parts = _parts(shape, tile, config["parts"], gpu)
    a, b = op.inputs[:2]
    k = GpuBuilder(f"xy_gemv_{a.dtype}_{b.dtype}_{tile.rows}", THREADS)
    data = k.buffer("a", a.dtype), k.buffer("b", b.dtype)
    sums = Sums(k, op, shape.groups, parts, context, memory="gemv_parts")
    groups = ceildiv(shape.m, tile.rows), ceildiv(shape.n, tile.columns)
    part, *batch, row, column = parts.split(k, [*shape.batch_extents, *groups])
    row, column = k.let("row", row * tile.rows), k.let("column", column * tile.columns)
    sides = sides_of(op, shape)
    a_start, b_start = (side.start(k, pointer, batch, index(0), index(0)) for side, pointer in zip(sides, data, strict=True))
    code = GemvCode(k, shape, tile, sides, (a_start, b_start), [*batch, row, column])
    code.multiply(*parts.range(k, part))
    code.meet()
    sums.finish(part, code.store)
    kernel, params = k.finish()
    return [
        *read.copies(context),
        KernelCall(
            kernel=kernel,
            buffers=(ValueBuffer(value=a.value), read.buffer, *sums.buffers),
            params=params,
            units=parts.count * blocks(shape, tile.rows, tile.columns),
            cost_ns=product(shape.batch_extents) * shape.depth * shape.n * b.dtype.bytes // int(gpu.memory_gbs) + LAUNCH_NS,
        ),
        *sums.meeting(),
    ]


VARIANTS = [
    Variant(
        name="gemm.gemv",
        op=Gemm,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=build,
        rank=5,
    )
]
