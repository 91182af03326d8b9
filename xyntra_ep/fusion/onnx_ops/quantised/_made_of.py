"""Which integers a float tensor stands for: what DequantizeLinear says of its result, seen through views of that.

A product of two such tensors is a product of the integers; whoever knows nothing of this computes with the floats, as written.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from xyntra_ep.fusion.tensor import Expand, Permute, Quantised, Reshape, Slice, Tensor, View


def mark(t: Tensor, made_of: Quantised) -> Tensor:
    """``t``, just made, with what it stands for."""
    t.node.quantised = made_of
    if isinstance(t.node, View) and isinstance(t.node.step, Permute) and t.node.base.node.quantised is None:
        perm = t.node.step.perm
        t.node.base.node.quantised = _permuted(made_of, [perm.index(i) for i in range(len(perm))])
    return t


def quantised(t: Tensor) -> Quantised | None:
    """What ``t`` stands for, None where nobody said."""
    if t.output:
        return None
    found = t.node.quantised
    if found is not None:
        return replace(found, q=found.q.named(t.shape))
    if not isinstance(t.node, View) or (below := quantised(t.node.base)) is None:
        return None
    match t.node.step:
        case Permute(perm=perm):
            return _permuted(below, perm)
        case Reshape(shape=shape) if below.axis is None:
            return replace(below, q=below.q.reshape(shape))
        case Slice(starts=starts, steps=steps, shape=shape) if below.axis is None:
            return replace(below, q=below.q.slice(starts, steps, shape))
        case Expand(shape=shape) if below.axis is None:
            return replace(below, q=below.q.expand(shape))
    return None


def _permuted(made_of: Quantised, perm: tuple[int, ...] | list[int]) -> Quantised:
    axis = None if made_of.axis is None else list(perm).index(made_of.axis)
    moved = replace(made_of, q=made_of.q.permute(perm), axis=axis)
    if not made_of.block:
        return moved
    return replace(moved, scale=made_of.scale.permute(perm), zero=None if made_of.zero is None else made_of.zero.permute(perm))


def same_values(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two scales or zero points, None being 0, are known to be one number."""
    if a is b or (a is not None and b is not None and a.node is b.node and a.output == b.output):
        return True
    values = [0.0 if t is None else t.scalar() for t in (a, b)]
    return None not in values and np.float32(values[0]) == np.float32(values[1])
