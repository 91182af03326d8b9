"""attention.fragments: fused attention of 16-bit floats, or of tf32, by the matrix units of NVIDIA GPUs (compute capability 8.0
and later).

A warp has 16 rows of q; tiles of k and v come by through shared memory by asynchronous copies, and scores never leave registers.
Any mask, any layout, heads of up to 128; what is not stored as it is multiplied, or not aligned, goes through registers instead.
Weights are rounded as the operands are; sums are f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import whole
from xyntra_ep.tracea.kernels.gpu.attention._fragment_code import FragmentCode, FragmentTile
from xyntra_ep.tracea.kernels.gpu.attention._space import (
    STREAM,
    axes_that_fit,
    blocks_of,
    busy,
    heads_of,
    no_heads,
    read_ns,
    scores_of,
)
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import HALVES
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, blocks_held, gpu_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant

_ROWS, _COLUMNS = (32, 64, 128), (32, 64)
_SLOTS = 2
_LARGEST = 128  # of a head: a warp has its rows of q and of the result in registers
_PEAK = 0.45  # of the matrix units' rate
_EXP_STEPS = 12  # what a score costs beside its products, in multiply-adds
_ALONE = 0.8  # of what blocks reach that take turns: one alone on a unit waits at its barriers
_THREAD_REGISTERS = 184  # of the 255 that a thread may have: with more, too few blocks fit a unit


def _admits(op: Attention, context: BuildContext) -> str | None:
    if not gpu_of(context).fragment_gflops:
        return "the GPU has no matrix units that are known"
    if (why := no_heads(op, _LARGEST)) is not None:
        return why
    if _dtype_of(op) is None:
        return f"no fragments of {op.inputs[0].dtype} for {op.output.dtype}"
    return None if _space(op, context) else "tiles of so large heads have no room in shared memory"


def _dtype_of(op: Attention) -> DType | None:
    """What is multiplied: what is asked for, else the 16-bit float that all operands are."""
    if op.product.matrix is not None:
        return op.product.matrix
    stored = {o.dtype for o in (*op.inputs[:3], op.output)}
    return stored.pop() if len(stored) == 1 and stored <= set(HALVES) else None


def _tile(op: Attention, rows: int, columns: int, context: BuildContext) -> FragmentTile:
    """With two slots where there is room for them."""
    dtype = _dtype_of(op)
    assert dtype is not None
    tile = FragmentTile(rows, columns, *heads_of(op), dtype, slots=_SLOTS)
    return tile if tile.shared_bytes <= _room(dtype, context) else replace(tile, slots=1)


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    def fits(rows: int, columns: int) -> bool:
        tile = _tile(op, rows, columns, context)
        return tile.shared_bytes <= _room(tile.dtype, context) and tile.registers <= _THREAD_REGISTERS

    return axes_that_fit(_ROWS, _COLUMNS, fits)


def _room(dtype: DType, context: BuildContext) -> int:
    """Bytes of shared memory that leave a unit room for two blocks or three; tiles of f32 are twice as large."""
    gpu = gpu_of(context)
    common = gpu.common_shared_bytes * dtype.bytes // DType.F16.bytes
    return min(gpu.shared_bytes, max(common, gpu.shared_bytes // 2))


def _default(op: Attention, context: BuildContext) -> Config:
    rows, columns = (axis.values for axis in _space(op, context))
    tiles = [_tile(op, r, c, context) for r in rows for c in columns]
    best = min(tiles, key=lambda tile: (_tile_ns(op, tile, context), -tile.rows * tile.columns))
    return {"rows": best.rows, "columns": best.columns}


def _tile_ns(op: Attention, tile: FragmentTile, context: BuildContext) -> float:
    """Waves of blocks, each taking what its products and its weights take on one unit."""
    gpu = gpu_of(context)
    waves = -(-typical(blocks_of(op, tile.rows)) // gpu.units)
    together = max(1, min(waves, blocks_held(gpu, tile.threads, tile.registers, tile.shared_bytes, unknown=1)))
    share = busy(together * tile.threads) * (_ALONE if together == 1 else 1.0)
    products = 2 * (whole(tile.depth, tile.grain) + whole(tile.width, tile.grain)) / (gpu.fragment_rate(tile.dtype) * _PEAK)
    each = (products + 2 * _EXP_STEPS / gpu.fma_gflops) * gpu.units
    # Beside that, k and v come from the second-level cache, at about twice the memory's rate, once for the block's rows.
    copied = op.inputs[1].dtype.bytes * (tile.depth + tile.width) / tile.rows / (2 * gpu.memory_gbs / gpu.units)
    return max(waves * scores_of(op, tile.rows, tile.columns, context) * max(each / share, copied), read_ns(op, gpu) / STREAM)


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(op, _tile(op, **config, context=context), context)


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    tile = _tile(op, **config, context=context)
    return [FragmentCode(op, tile, context).call(gpu_of(context).fragment_rate(tile.dtype) * _PEAK)]


VARIANTS = [
    Variant(
        name="attention.fragments",
        op=Attention,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
