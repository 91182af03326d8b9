"""attention.block: fused attention by fused multiply-adds, on any GPU. A block has a tile of rows of q; tiles of k and v come by
through shared memory, and scores never leave it.

Any mask, any layout, heads of up to 128. Tiles that a causal mask hides from a whole block are left out. Operands stay as they
are stored; sums are f32.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu._attention_block_code import BlockCode
from xyntra_ep.tracea.kernels.gpu._attention_tiles import ACROSS, LARGEST, AttentionTile, space_of, tile_of, tiles_in
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.shared.causal_mask import find_causal
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import Gpu

_BUSY = 256  # threads of a unit that keep it busy: two warps for each of its schedulers, with as many sums as a thread has here
_SHARED = 3  # a unit has at least so many times what a block may declare
_EXP_STEPS = 16  # what a score costs beside its products


def _admits(op: Attention, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    q, k, v = op.inputs[:3]
    if not all(o.dtype.is_float for o in (q, k, v, op.output)) or not q.dtype is k.dtype is v.dtype:
        return "q, k and v must be of one floating-point type"
    depth, width = q.shape[3], v.shape[3]
    if not isinstance(depth, int) or not isinstance(width, int):
        return "the size of a head must be known"
    if not (0 < depth <= LARGEST and 0 < width <= LARGEST):
        return f"a head of more than {LARGEST} elements"
    return None if _space(op, context) else "tiles of so large heads have no room in shared memory"


def _sizes(op: Attention) -> tuple[int, int, int]:
    """(elements of a head of q, of v, bytes of an element)."""
    depth, width = op.inputs[0].shape[3], op.inputs[2].shape[3]
    assert isinstance(depth, int) and isinstance(width, int)
    return depth, width, op.inputs[0].dtype.bytes


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    return space_of(*_sizes(op), gpu_of(context).shared_bytes)


def _default(op: Attention, context: BuildContext) -> Config:
    gpu = gpu_of(context)
    tiles = tiles_in(_space(op, context), *_sizes(op))
    best = min(tiles, key=lambda tile: (_tile_ns(op, tile, gpu), -tile.rows * tile.columns, tile.threads))
    return {"rows": best.rows, "columns": best.columns, "threads": best.threads}


def _blocks(op: Attention, tile: AttentionTile) -> Size:
    q = op.inputs[0]
    return product(q.shape[:2]) * ceildiv(q.shape[2], tile.rows)


def _peak(tile: AttentionTile) -> float:
    """Of the arithmetic peak, what reading packets leaves: a warp's packet takes shared memory as long as 16 products of the
    warp take the arithmetic units."""
    rows, columns, results = tile.side, tile.columns // ACROSS, 4 * tile.packets
    scores = 4 * rows * columns / max(4 * rows * columns, 16 * (rows + columns))
    sums = 4 * rows * results / max(4 * rows * results, 16 * (rows + results))
    return 0.8 * 2 / (1 / scores + 1 / sums)


def _tile_ns(op: Attention, tile: AttentionTile, gpu: Gpu) -> float:
    """Waves of blocks, each taking what its arithmetic takes on one unit; few threads do not keep a unit busy."""
    blocks, columns = typical(_blocks(op, tile)), typical(op.inputs[1].shape[2])
    together = max(1, min(-(-blocks // gpu.units), _SHARED * gpu.shared_bytes // tile.shared_bytes))
    busy = min(1.0, together * tile.threads / _BUSY)
    causal = find_causal(op.score)
    seen = 0.5 if causal is not None and causal.masked == -math.inf else 1.0
    products = tile.depth + 4 * ACROSS * tile.packets + _EXP_STEPS
    flops = 2 * tile.rows * math.ceil(columns / tile.columns) * tile.columns * products * seen
    return -(-blocks // gpu.units) * flops / (gpu.fma_gflops / gpu.units * _peak(tile) * busy)


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(op, tile_of(config, *_sizes(op)), gpu_of(context))


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    tile, gpu = tile_of(config, *_sizes(op)), gpu_of(context)
    code = BlockCode(op, tile, context)
    code.emit()
    kernel, params = code.b.finish()
    q, k = op.inputs[:2]
    flops = 2 * product(q.shape[:3]) * k.shape[2] * (tile.depth + tile.width)
    return [
        KernelCall(
            kernel=kernel,
            buffers=(*(ValueBuffer(value=o.value) for o in (*op.inputs[:3], op.output)), *code.scores.buffers),
            params=params,
            units=_blocks(op, tile),
            cost_ns=flops // max(1, int(gpu.fma_gflops * _peak(tile))) + LAUNCH_NS,
        )
    ]


VARIANTS = [
    Variant(
        name="attention.block",
        op=Attention,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=0,
    )
]
