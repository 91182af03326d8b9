"""attention.block: fused attention by fused multiply-adds, on any GPU. A block has a tile of rows of q; tiles of k and v come by
through shared memory, and scores never leave it.

Any mask, any layout, heads of up to 256. Tiles that a causal mask hides from a whole block are left out. Operands stay as they
are stored; sums are f32.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._block_code import BlockCode
from xyntra_ep.tracea.kernels.gpu.attention._space import STREAM, blocks_of, busy, heads_of, no_heads, read_ns, scores_of
from xyntra_ep.tracea.kernels.gpu.attention._tiles import ACROSS, AttentionTile, space_of, tile_of, tiles_in
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, blocks_held, gpu_of
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant

_LARGEST = 256  # of a head
_COMMON = 128  # up to which a block has as much shared memory as leaves room for others
_SUMS = 112  # of a thread at a time: with as many registers for everything else, it has not more than there are
_OTHERS = 64  # registers of a thread beside those
_SHARED = 3  # where nothing more is known, a unit has at least so many times what a block commonly has
_EXP_STEPS = 10  # what a score costs beside its products


def _admits(op: Attention, context: BuildContext) -> str | None:
    if gpu_of(context).is_cpu:
        return "a CPU gains nothing from tiles in shared memory"
    if (why := no_heads(op, _LARGEST)) is not None:
        return why
    if len({operand.dtype for operand in op.inputs[:3]}) > 1:
        return "q, k and v are of several types"
    return None if _space(op, context) else "tiles of so large heads have no room in shared memory"


def _sizes(op: Attention) -> tuple[int, int, DType]:
    """(elements of a head of q, of v, what they are)."""
    return *heads_of(op), op.inputs[0].dtype


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    gpu = gpu_of(context)
    return space_of(*_sizes(op), gpu.common_shared_bytes if max(heads_of(op)) <= _COMMON else gpu.shared_bytes)


def _default(op: Attention, context: BuildContext) -> Config:
    tiles = [tile for tile in tiles_in(_space(op, context), *_sizes(op)) if tile.sums <= _SUMS]
    best = min(tiles, key=lambda tile: (_tile_ns(op, tile, context), -tile.rows * tile.columns, tile.threads))
    return {"rows": best.rows, "columns": best.columns, "threads": best.threads}


def _peak(tile: AttentionTile) -> float:
    """Of the arithmetic peak, what reading packets leaves: a warp's packet takes shared memory as long as 16 products of the
    warp take the arithmetic units."""
    rows, columns, results = tile.side, tile.columns // ACROSS, 4 * tile.packets
    scores = 4 * rows * columns / max(4 * rows * columns, 16 * (rows + columns))
    sums = 4 * rows * results / max(4 * rows * results, 16 * (rows + results))
    return 0.8 * 2 / (1 / scores + 1 / sums)


def _tile_ns(op: Attention, tile: AttentionTile, context: BuildContext) -> float:
    """Waves of blocks, each taking what its arithmetic takes on one unit; few threads do not keep a unit busy."""
    gpu = gpu_of(context)
    blocks = typical(blocks_of(op, tile.rows))
    by_shared = _SHARED * gpu.common_shared_bytes // tile.shared_bytes
    at_once = blocks_held(gpu, tile.threads, tile.sums + _OTHERS, tile.shared_bytes, unknown=by_shared)
    together = max(1, min(-(-blocks // gpu.units), at_once))
    products = tile.depth + 4 * ACROSS * tile.packets + _EXP_STEPS
    flops = 2 * scores_of(op, tile.rows, tile.columns, context) * products
    computed = -(-blocks // gpu.units) * flops / (gpu.fma_gflops / gpu.units * _peak(tile) * busy(together * tile.threads))
    return max(computed, read_ns(op, gpu) / STREAM)


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(op, tile_of(config, *_sizes(op)), context)


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    tile = tile_of(config, *_sizes(op))
    return [BlockCode(op, tile, context).call(gpu_of(context).fma_gflops * _peak(tile))]


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
