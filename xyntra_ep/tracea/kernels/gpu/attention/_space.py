"""What the variants of fused attention ask of an op: which heads it has, which tiles fit, how much of it there is."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, eq, product, select, typical
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax
from xyntra_ep.tracea.kernels.shared.causal_mask import CausalMask, find_causal_sum
from xyntra_ep.tracea.kernels.shared.column_bounds import Bounds
from xyntra_ep.tracea.kernels.variant import Axis, BuildContext
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, Select, binary, f32

STREAM = 0.6  # of the memory's rate, by blocks that wait for each tile of k and v


def no_heads(op: Attention, largest: int) -> str | None:
    """Why the op's heads are not for tiles of up to ``largest`` elements."""
    q, k, v = op.inputs[:3]
    if not all(o.dtype.is_float for o in (q, k, v, op.output)):
        return "q, k, v and the output must be floating point"
    depth, width = q.shape[3], v.shape[3]
    if not isinstance(depth, int) or not isinstance(width, int):
        return "the size of a head must be known"
    return None if 0 < depth <= largest and 0 < width <= largest else f"a head of more than {largest} elements"


def heads_of(op: Attention) -> tuple[int, int]:
    """(elements of a head of q and k, of v)."""
    depth, width = op.inputs[0].shape[3], op.inputs[2].shape[3]
    assert isinstance(depth, int) and isinstance(width, int)
    return depth, width


def causal_of(op: Attention, context: BuildContext) -> CausalMask | None:
    """The mask by which tiles are left out; strict kernels leave out none, so that NaN and infinity in them show."""
    return None if context.strict else find_causal_sum(op.score, heads_of(op)[0])


def sure_mask_of(op: Attention, context: BuildContext) -> CausalMask | None:
    """The mask, if what it hides has no weight whatever else there is: by which those leave out columns that do not look back."""
    mask = causal_of(op, context)
    return mask if mask is not None and mask.hides_surely else None


def bounds_of(mask: CausalMask | None) -> Bounds:
    return Bounds() if mask is None else mask.bounds


def or_zero(op: Attention, result: Rvalue, weight: Rvalue) -> Rvalue:
    """``result`` of a row whose weights sum to ``weight``, or 0 where it has no softmax and that is wanted."""
    zero = Const(f32(1), 0.0)
    match op.no_softmax:
        case NoSoftmax.ZERO:
            return Select(binary("lt", zero, weight), result, zero)
        case NoSoftmax.UNSEEN_ZERO:
            return Select(binary("eq", weight, zero), zero, result)
        case NoSoftmax.NAN:
            return result


def axes_that_fit(rows: Sequence[int], columns: Sequence[int], fits: Callable[[int, int], bool]) -> tuple[Axis, ...]:
    """The most tiles of which every combination fits, where less of either does too; none where nothing fits."""
    found = [(rows[: i + 1], tuple(c for c in columns if fits(r, c))) for i, r in enumerate(rows)]
    some, others = max(found, key=lambda space: (len(space[0]) * len(space[1]), len(space[0])))
    return (Axis(name="rows", values=tuple(some)), Axis(name="columns", values=others)) if others else ()


def flops_of(op: Attention) -> Size:
    """Of both products."""
    q, k, v = op.inputs[:3]
    return 2 * product(q.shape[:3]) * k.shape[2] * (q.shape[3] + v.shape[3])


def blocks_of(op: Attention, rows: int) -> Size:
    q = op.inputs[0]
    return product(q.shape[:2]) * ceildiv(q.shape[2], rows)


def scores_of(op: Attention, rows: int, columns: int, context: BuildContext) -> float:
    """Of a block, those of its tiles that are computed."""
    seen = share_of(op, causal_of(op, context))
    return rows * math.ceil(typical(op.inputs[1].shape[2]) / columns) * columns * seen


def share_of(op: Attention, mask: CausalMask | None) -> float:
    """Of all scores, those that are computed, to a sixteenth."""
    share = bounds_of(mask).share(op.inputs[0].shape[2], op.inputs[1].shape[2])
    return max(1, round(16 * share)) / 16


def read_ns(op: Attention, gpu: Gpu) -> float:
    """What it takes the memory to hand out k and v once."""
    k, v = op.inputs[1:3]
    heads = product(op.inputs[0].shape[:1]) * select(eq(k.strides[1], 0), 1, op.inputs[0].shape[1])
    each = sum(o.dtype.bytes * typical(product(o.shape[2:])) for o in (k, v))
    return typical(heads) * each / gpu.memory_gbs


def busy(threads: int) -> float:
    """What so many threads get out of a multiprocessor: two warps for each of its four schedulers keep it busy with as many sums
    as a thread has here, one alone waits for its own results now and then."""
    return min(1.0, math.sqrt(threads / 256))
