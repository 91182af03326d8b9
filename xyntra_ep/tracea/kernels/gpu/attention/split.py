"""attention.split: few rows of q against long k and v, what a decode step needs; columns are cut into parts so that one row
keeps the whole device busy (Dao and others, "Flash-Decoding for long-context inference", 2023).

A few threads have a column of k between them, in packets side by side, and the same of v: they read each once, for several rows
of q where there are (the heads of a group that share them), and wait for nobody until they have seen all of their columns. What
the parts have found is put together by a second kernel, always in the same order. How many parts there are follows from the sizes
of a run; where that is one, blocks finish their rows themselves and the second kernel has nothing to do.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import lt, product, select, typical
from xyntra_ep.tracea.core_ir.ops import Attention
from xyntra_ep.tracea.kernels.gpu.attention._space import read_ns, share_of, sure_mask_of
from xyntra_ep.tracea.kernels.gpu.attention._split_code import WARP, RowEnd, SplitCode, SplitTile, tile_of
from xyntra_ep.tracea.kernels.gpu.shared.launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.sum_parts import Parts
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext, Config, KernelCall, ValueBuffer, Variant
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

_LARGEST = 512  # of a head: what a warp has in registers of it
_THREADS, _ROWS, _PARTS = (64, 128), (1, 2, 4), (1, 8, 32)
_BLOCKS = 4  # for a multiprocessor: so many have enough loads under way
_STREAM = 0.85  # of the memory's rate, by threads that wait for nobody
_PEAK = 0.4  # of the arithmetic peak
_SCORE_STEPS = 15  # of each thread that has a part of a column, for its score
_EXCHANGE_STEPS = 4  # an exchange takes as long as so many multiply-adds


def _admits(op: Attention, context: BuildContext) -> str | None:
    if gpu_of(context).subgroup < WARP:
        return "threads do not exchange registers"
    if not all(o.dtype.is_float for o in (*op.inputs[:3], op.output)):
        return "q, k, v and the output must be floating point"
    depth, width = op.inputs[0].shape[3], op.inputs[2].shape[3]
    if not isinstance(depth, int) or not isinstance(width, int):
        return "the size of a head must be known"
    return None if 0 < depth <= _LARGEST and 0 < width <= _LARGEST else f"a head of more than {_LARGEST} elements"


def _space(op: Attention, context: BuildContext) -> Sequence[Axis]:
    axes = {"threads": _THREADS, "rows": _ROWS, "parts": _PARTS}
    return tuple(Axis(name=name, values=values) for name, values in axes.items())


def _default(op: Attention, context: BuildContext) -> Config:
    rows = op.inputs[0].shape[2]
    # Rows of an unknown number are seldom few, and then not for this variant.
    together = max(r for r in _ROWS if r <= rows) if isinstance(rows, int) and rows else 1
    return {"threads": _THREADS[-1], "rows": together, "parts": _PARTS[-1]}


def _tile(op: Attention, config: Config) -> SplitTile:
    return tile_of(op, config["threads"], config["rows"])


def _parts(op: Attention, config: Config, gpu: Gpu) -> Parts:
    return _tile(op, config).parts(op, _BLOCKS * gpu.units, config["parts"])


def _ns(op: Attention, config: Config, context: BuildContext) -> float:
    """What reading k and v takes, once for a block's rows, or what is computed of it, on the units that have blocks."""
    gpu, tile, q = gpu_of(context), _tile(op, config), op.inputs[0]
    each = tile.depth + tile.width + tile.lanes * (_EXCHANGE_STEPS * (tile.lanes.bit_length() - 1) + _SCORE_STEPS)
    scores = typical(product(q.shape[:3]) * op.inputs[1].shape[2])
    blocks = typical(_parts(op, config, gpu).count * tile.blocks(op))
    share = min(1.0, blocks / gpu.units)
    again = typical(tile.blocks(op)) / max(1, typical(product(q.shape[:2])))  # of which most come from the second-level cache
    seen = share_of(op, sure_mask_of(op, context))
    return seen * max(read_ns(op, gpu) * max(1.0, again / 2) / _STREAM, 2 * scores * each / (gpu.fma_gflops * _PEAK)) / share


def _cost_ns(op: Attention, config: Config, context: BuildContext) -> float:
    return LAUNCH_NS + _ns(op, config, context)


def _build(op: Attention, config: Config, context: BuildContext) -> list[KernelCall]:
    gpu, tile = gpu_of(context), _tile(op, config)
    parts = _parts(op, config, gpu)
    code = SplitCode(op, tile, parts, context)
    code.emit()
    kernel, params = code.b.finish()
    memory = code.end.buffers() if parts.is_cut else ()
    call = KernelCall(
        kernel=kernel,
        buffers=(
            *(ValueBuffer(value=o.value) for o in (*op.inputs[:3], op.output)),
            *memory,
            *code.scores.buffers,
            *code.sight.buffers,
        ),
        params=params,
        units=parts.count * tile.blocks(op),
        cost_ns=int(_ns(op, config, context)) + LAUNCH_NS,
    )
    return [call, _meeting(op, parts)] if parts.is_cut else [call]


def _meeting(op: Attention, parts: Parts) -> KernelCall:
    """Puts the parts of a row together, a thread for each column."""
    width = op.inputs[2].shape[3]
    assert isinstance(width, int)
    b = GpuBuilder(f"xy_attention_{op.output.dtype}_parts", -(-min(width, 256) // WARP) * WARP)
    end = RowEnd(b, op, parts)
    sums, weights = end.declare(writable=False)
    out = b.buffer("out", op.output.dtype, writable=True)
    at = b.split(b.block, op.output.shape[:3])
    with b.loop("e", b.thread, width, b.threads) as column:
        total, _, weight = end.met(
            b.param(parts.count),
            lambda part: (
                b.load(sums, end.places(part, b.block) * width + column),
                b.load(weights, end.places(part, b.block) * 2),
                b.load(weights, end.places(part, b.block) * 2 + 1),
            ),
        )
        end.put(out, at, column, total, weight)
    kernel, params = b.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(*end.buffers(), ValueBuffer(value=op.output.value)),
        params=params,
        units=select(lt(1, parts.count), product(op.output.shape[:3]), 0),
        cost_ns=LAUNCH_NS,
    )


VARIANTS = [
    Variant(
        name="attention.split",
        op=Attention,
        admits=_admits,
        space=_space,
        default=_default,
        cost_ns=_cost_ns,
        build=_build,
        rank=5,
    )
]
