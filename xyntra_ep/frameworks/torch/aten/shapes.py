"""What moves elements, makes constants, or picks parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.torch.aten._arguments import arguments, axes_of, known_ints, normal, rank
from xyntra_ep.frameworks.torch.conversion import AtenRow, Conversion, Result, meta
from xyntra_ep.tracea.core_ir.dtypes import DType

_END = 2**63 - 1


def _view(c: Conversion, node: FxNode) -> str:
    x = c.value(node.args[0])
    return c.node("Reshape", x, c.shape(meta(node).shape, of=x))


def _reshaped(c: Conversion, node: FxNode) -> str:
    """squeeze and unsqueeze: all but 1s stay."""
    return _view(c, node)


def _permute(c: Conversion, node: FxNode) -> str:
    count = rank(node)
    return c.node("Transpose", c.value(node.args[0]), perm=[normal(int(axis), count) for axis in node.args[1]])


def _transpose(c: Conversion, node: FxNode) -> str:
    count = rank(node)
    a, b = (normal(int(axis), count) for axis in node.args[1:])
    order = list(range(count))
    order[a], order[b] = b, a
    return c.node("Transpose", c.value(node.args[0]), perm=order)


def _expand(c: Conversion, node: FxNode) -> str:
    x = c.value(node.args[0])
    old, new = meta(node.args[0]).shape, meta(node).shape
    kept = [1] * (len(new) - len(old)) + [*old]
    # what has its size already may meet a 1, which asks nothing of it
    sizes = [1 if i >= len(new) - len(old) and str(a) == str(b) else b for i, (a, b) in enumerate(zip(kept, new, strict=True))]
    return c.node("Expand", x, c.shape(sizes))


def _copy(c: Conversion, node: FxNode) -> str:
    """What is copied into a tensor, as large as that is."""
    x = c.cast(c.value(node.args[1]), c.dtype_of(node))
    old, new = meta(node.args[1]).shape, meta(node).shape
    return c.node("Identity", x) if [*map(str, old)] == [*map(str, new)] else c.node("Expand", x, c.shape(new))


def _cat(c: Conversion, node: FxNode) -> str:
    args, dtype = arguments(node), c.dtype_of(node)
    parts = [part for part in args["tensors"] if rank(part) == rank(node)]  # a list of nothing is allowed among them
    return c.node("Concat", *(c.operand(part, dtype) for part in parts), axis=normal(int(args["dim"]), rank(node)))


def _slice(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    axis = normal(int(args["dim"]), rank(node))
    start, end, step = args["start"] or 0, args["end"], args["step"]
    bounds = []
    for bound in (start, _END if end is None else end):
        if isinstance(bound, int):
            bounds.append(c.draft.ints(bound))
        else:
            bounds.append(c.sizes.vector([bound.meta["val"]]))
    return c.node("Slice", c.value(args["self"]), *bounds, c.draft.ints(axis), c.draft.ints(*known_ints([step], "a step")))


def _slice_scatter(c: Conversion, node: FxNode) -> str:
    """A tensor with a part of it replaced: what is before the part, the part, what is behind it."""
    args, count = arguments(node), rank(node)
    axis = normal(int(args["dim"]), count)
    if args["step"] != 1:
        raise UnsupportedError("every second of the elements, or fewer")
    extent = known_ints([meta(args["self"]).shape[axis]], "a part")[0]
    start, end = known_ints([args["start"] or 0, extent if args["end"] is None else args["end"]], "a part")
    start, end = (min(max(normal(n, extent), 0), extent) for n in (start, end))
    x, ints = c.value(args["self"]), c.draft.ints
    parts = [c.operand(args["src"], c.draft.dtype(x))]
    if start:
        parts.insert(0, c.node("Slice", x, ints(0), ints(start), ints(axis), ints(1)))
    if end < extent:
        parts.append(c.node("Slice", x, ints(end), ints(extent), ints(axis), ints(1)))
    return c.node("Concat", *parts, axis=axis)


def _select(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    index = known_ints([args["index"]], "an index")[0]
    axis = normal(int(args["dim"]), rank(args["self"]))
    return c.node("Gather", c.value(args["self"]), c.draft.constant(index, DType.I64), axis=axis)


def _split(c: Conversion, node: FxNode) -> Result:
    args = arguments(node)
    parts = node.meta["val"]
    axis = normal(int(args["dim"]), len(parts[0].shape))
    sizes = known_ints([part.shape[axis] for part in parts], "a part")
    x, start, results = c.value(args["self"]), 0, []
    for size in sizes:
        bounds = (c.draft.ints(start), c.draft.ints(start + size), c.draft.ints(axis), c.draft.ints(1))
        results.append(c.node("Slice", x, *bounds))
        start += size
    return results


def _filled(c: Conversion, node: FxNode, value: Any) -> str:
    number = c.operand(value, c.dtype_of(node))
    shape = meta(node).shape
    return c.node("Expand", number, c.shape(shape)) if len(shape) else number


def _full(c: Conversion, node: FxNode) -> str:
    return _filled(c, node, node.args[1])


def _constant(value: float) -> Callable[[Conversion, FxNode], str]:
    return lambda c, node: _filled(c, node, value)


def _scalar(c: Conversion, node: FxNode) -> str:
    return c.node("Identity", c.operand(node.args[0], c.dtype_of(node)))


def _arange(c: Conversion, node: FxNode) -> str:
    args, dtype = arguments(node), c.dtype_of(node)
    if dtype.is_float:
        raise UnsupportedError("a range of floats")
    bounds = [args.get("start", 0), args["end"], args.get("step", 1)]
    names = []
    for bound in bounds:
        if isinstance(bound, int):
            names.append(c.draft.constant(bound, DType.I64))
        elif isinstance(bound, FxNode) and isinstance(bound.meta.get("val"), torch.SymInt):
            one = c.sizes.vector([bound.meta["val"]])
            names.append(c.node("Reshape", one, c.draft.ints()))
        else:
            raise UnsupportedError("a bound that is no integer")
    return c.node("Range", *names)


def _pad(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    flat, count = known_ints(args["pad"], "padding"), rank(node)
    before, after = [0] * count, [0] * count
    for i in range(len(flat) // 2):
        before[count - 1 - i], after[count - 1 - i] = flat[2 * i], flat[2 * i + 1]
    x = c.value(args["self"])
    return c.node("Pad", x, c.draft.ints(*before, *after), c.number(args.get("value") or 0, x), mode="constant")


def _repeat(c: Conversion, node: FxNode) -> str:
    repeats = known_ints(node.args[1], "a repetition")
    x, missing = c.value(node.args[0]), len(repeats) - rank(node.args[0])
    if missing:
        x = c.node("Unsqueeze", x, c.draft.ints(*range(missing)))
    return c.node("Tile", x, c.draft.ints(*repeats))


def _flip(c: Conversion, node: FxNode) -> str:
    axes = axes_of(node.args[1], rank(node))
    ints = c.draft.ints
    ends, starts, steps = ints(*[-_END] * len(axes)), ints(*[-1] * len(axes)), ints(*[-1] * len(axes))
    return c.node("Slice", c.value(node.args[0]), starts, ends, ints(*axes), steps)


def _embedding(c: Conversion, node: FxNode) -> str:
    return c.node("Gather", c.value(node.args[0]), c.value(node.args[1]), axis=0)


def _index_select(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    return c.node("Gather", c.value(args["self"]), c.value(args["index"]), axis=normal(int(args["dim"]), rank(node)))


def _gather(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    return c.node("GatherElements", c.value(args["self"]), c.value(args["index"]), axis=normal(int(args["dim"]), rank(node)))


def _index(c: Conversion, node: FxNode) -> str:
    """x[..., indices, ...] of one index, or x[indices, indices, ...] of several, none of which is a mask."""
    args = arguments(node)
    at = [(axis, index) for axis, index in enumerate(args["indices"]) if index is not None]
    if any(c.dtype_of(index) not in (DType.I64, DType.I32) for _, index in at):
        raise UnsupportedError("a mask as an index")
    if len(at) == 1:
        axis, index = at[0]
        return c.node("Gather", c.value(args["self"]), c.value(index), axis=axis)
    if [axis for axis, _ in at] != list(range(len(at))):
        raise UnsupportedError("several indices behind axes that are kept")
    count = max(rank(index) for _, index in at)
    shape = meta(node).shape[:count]
    parts = []
    for _, index in at:
        name = c.cast(c.value(index), DType.I64)
        if [*map(str, meta(index).shape)] != [*map(str, shape)]:
            name = c.node("Expand", name, c.shape(shape))
        parts.append(c.node("Unsqueeze", name, c.draft.ints(count)))
    return c.node("GatherND", c.value(args["self"]), c.node("Concat", *parts, axis=count))


ROWS = [
    *(AtenRow(name=f"aten.{name}.default", convert=_view) for name in ("view", "_unsafe_view", "reshape", "flatten")),
    *(AtenRow(name=f"aten.{name}", convert=_reshaped) for name in ("unsqueeze.default", "squeeze.dim", "squeeze.dims")),
    AtenRow(name="aten.squeeze.default", convert=_reshaped),
    AtenRow(name="aten.permute.default", convert=_permute),
    AtenRow(name="aten.transpose.int", convert=_transpose),
    AtenRow(name="aten.expand.default", convert=_expand),
    AtenRow(name="aten.copy.default", convert=_copy),
    AtenRow(name="aten.cat.default", convert=_cat),
    AtenRow(name="aten.slice.Tensor", convert=_slice),
    AtenRow(name="aten.slice_scatter.default", convert=_slice_scatter),
    AtenRow(name="aten.select.int", convert=_select),
    AtenRow(name="aten.split_with_sizes.default", convert=_split),
    AtenRow(name="aten.split.Tensor", convert=_split),
    AtenRow(name="aten.full.default", convert=_full),
    AtenRow(name="aten.full_like.default", convert=_full),
    AtenRow(name="aten.fill.Scalar", convert=_full),
    *(AtenRow(name=f"aten.{name}.default", convert=_constant(0)) for name in ("zeros", "zeros_like", "new_zeros")),
    # memory with whatever is in it: zeros as well as anything, which nobody computes where all of it is written over
    *(AtenRow(name=f"aten.{name}.default", convert=_constant(0)) for name in ("new_empty", "new_empty_strided", "empty_like")),
    *(AtenRow(name=f"aten.{name}.default", convert=_constant(1)) for name in ("ones", "ones_like", "new_ones")),
    AtenRow(name="aten.scalar_tensor.default", convert=_scalar),
    *(AtenRow(name=f"aten.arange.{name}", convert=_arange) for name in ("start_step", "start", "default")),
    AtenRow(name="aten.constant_pad_nd.default", convert=_pad),
    AtenRow(name="aten.repeat.default", convert=_repeat),
    AtenRow(name="aten.flip.default", convert=_flip),
    AtenRow(name="aten.embedding.default", convert=_embedding),
    AtenRow(name="aten.index_select.default", convert=_index_select),
    AtenRow(name="aten.gather.default", convert=_gather),
    AtenRow(name="aten.index.Tensor", convert=_index),
]
