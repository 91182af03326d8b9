"""attention.wgmma: fused attention of 16-bit floats by warpgroups of NVIDIA's compute capability 9.0.

A block has 128 or 192 rows of q; k and v come as boxes of tensors, and scores never leave registers (`_warpgroup_code.py`). Any
mask; operands that tensor copies take, heads of up to 192. Weights are rounded as the operands are; sums are f32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._fetch import packet_of, whole
from xyntra_ep.tracea.kernels.gpu.attention._space import blocks_of, heads_of, no_heads, read_ns, share_of, sure_mask_of
from xyntra_ep.tracea.kernels.gpu.attention._warpgroup_code import REGISTERS, WarpgroupCode
from xyntra_ep.tracea.kernels.gpu.attention._warpgroup_tiles import BYTES, HeadTile
from xyntra_ep.tracea.kernels.gpu.gemm._narrow import HALVES
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.tensors import is_tensor
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.nodes import PACKET_BYTES
from xyntra_ep.tracea.semantic_ir.gpu.warpgroup_nodes import DEPTH

_GROUPS, _COLUMNS, _TURNS = (2, 3), (64, 128), (0, 1)
_LARGEST = 192  # of a head
_MOST_SLOTS = 4  # more would not be under way before they are needed
_PEAK = 0.95  # of the matrix units' rate, by products alone
# What a score costs beside them, in multiply-adds, by how many warpgroups multiply: more of them wait less for their own results.
# With `_BEGIN_NS`, what a block takes until its first scores are there and from its last weights to its end, it is an H200's.
_WEIGHT_STEPS = {2: 7.5, 3: 5.5}
_BEGIN_NS = 1500.0


def _admits(op: Attention, context: BuildContext) -> str | None:
    if not gpu_of(context).warpgroups:
        return "no products by warpgroups, which are compute capability 9.0's"
    if (why := no_heads(op, _LARGEST)) is not None:
        return why
    stored = {o.dtype for o in op.inputs[:3]}
    if len(stored) > 1 or not stored <= set(HALVES) or op.product.matrix not in (None, *stored):
        return "q, k and v are not 16-bit floats of one type"
    if op.output.dtype not in stored:
        return f"no products of {op.inputs[0].dtype} for {op.output.dtype}"
    if not all(is_tensor(o) and packet_of(o) * BYTES == PACKET_BYTES for o in op.inputs[:3]):
        return "an operand that goes backwards, or whose rows are not apart or not aligned to 16 bytes: no tensor to the driver"
    return None if _tiles(op, context) else "tiles of so large heads have no room in registers"


def _tile(op: Attention, config: Config, gpu: Gpu) -> HeadTile:
    """With as many slots as there is room for; none where there is none."""
    depth, width = heads_of(op)
    one = HeadTile(config["groups"], config["columns"], depth, width, slots=1, turns=bool(config["turns"]))
    each = replace(one, slots=2).shared_bytes - one.shared_bytes
    return replace(one, slots=min(_MOST_SLOTS, 1 + (gpu.shared_bytes - one.shared_bytes) // each))


def _tiles(op: Attention, context: BuildContext) -> list[tuple[Config, HeadTile]]:
    """What fits."""
    gpu = gpu_of(context)
    configs = [{"groups": g, "columns": c, "turns": t} for g, c, t in product(_GROUPS, _COLUMNS, _TURNS)]
    made = [(config, _tile(op, config, gpu)) for config in configs]
    return [(c, tile) for c, tile in made if tile.slots > 1 and tile.registers <= REGISTERS[tile.groups][1]]


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    """The most values of which every combination fits."""
    fitting = [config for config, _ in _tiles(op, context)]
    columns = tuple(c for c in _COLUMNS if any(x["columns"] == c for x in fitting))
    groups = tuple(g for g in _GROUPS if all(any(x["groups"] == g and x["columns"] == c for x in fitting) for c in columns))
    return (Axis(name="groups", values=groups), Axis(name="columns", values=columns), Axis(name="turns", values=_TURNS))


def _default(op: Attention, context: BuildContext) -> Config:
    axes = [axis.values for axis in _space(op, context)]
    configs = [{"groups": g, "columns": c, "turns": t} for g, c, t in product(*axes)]
    return min(configs, key=lambda c: (_tile_ns(op, _tile(op, c, gpu_of(context)), context), -c["columns"], -c["turns"]))


def _tile_ns(op: Attention, tile: HeadTile, context: BuildContext) -> float:
    """Blocks one after the other, each as long as its products take on one unit."""
    gpu = gpu_of(context)
    waves = -(-typical(blocks_of(op, tile.rows)) // gpu.units)
    seen = share_of(op, sure_mask_of(op, context))
    scores = tile.rows * -(-typical(op.inputs[1].shape[2]) // tile.columns) * tile.columns * seen
    return max(waves * (_BEGIN_NS + scores * _score_ns(tile, gpu) * gpu.units), read_ns(op, gpu))


def _score_ns(tile: HeadTile, gpu: Gpu) -> float:
    """Of one score, on the whole device."""
    products = 2 * (whole(tile.depth, DEPTH) + tile.width) / (gpu.fragment_gflops * _PEAK)
    return products + 2 * _WEIGHT_STEPS[tile.groups] / gpu.fma_gflops


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _tile_ns(op, _tile(op, config, gpu_of(context)), context)


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    gpu = gpu_of(context)
    tile = _tile(op, config, gpu)
    return [WarpgroupCode(op, tile, context).call(2 * (tile.depth + tile.width) / _score_ns(tile, gpu))]


VARIANTS = [
    Variant(
        name="attention.wgmma",
        op=Attention,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=-1,  # where estimates see no difference, attention.fragments, which needs less of a unit
        may_hang=True,
    )
]
