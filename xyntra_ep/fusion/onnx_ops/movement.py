"""Shapes and movement: everything here is a view, a fold of symbolic sizes, or an index expression."""

from __future__ import annotations

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node, OpKind
from xyntra_ep.fusion.onnx_ops._operands import all_of, maybe, normal_axis, one
from xyntra_ep.fusion.tensor import ConcatNode, Map, Tensor, broadcast_shapes, from_content
from xyntra_ep.fusion.trace import Context, OpSpec
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, product, select, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType


def _shape(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    shape = one(inputs, 0).shape
    start, end = node.attr("start", 0), node.attr("end", None)
    return from_content(list(shape[slice(start, end)]))


def _size(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    return from_content(one(inputs, 0).size)


def _reshape(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = one(inputs, 0)
    wanted = one(inputs, 1).ints("the shape of Reshape") if node.version >= 5 else list(node.attr("shape"))
    keep_zero = bool(node.attr("allowzero", 0))
    shape = [t.shape[i] if s == 0 and not keep_zero and i < t.rank else s for i, s in enumerate(wanted)]
    if -1 in shape:
        known = product(s for s in shape if s != -1)
        shape[shape.index(-1)] = t.size // known if known != 0 else 0
    c.require(dims.eq(product(shape), t.size), "Reshape: the number of elements differs")
    return t.reshape(shape)


def _transpose(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = one(inputs, 0)
    return t.permute(node.attr("perm") or tuple(reversed(range(t.rank))))


def _flatten(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = one(inputs, 0)
    axis = int(node.attr("axis", 1))
    axis = axis + t.rank if axis < 0 else axis
    return t.reshape((product(t.shape[:axis]), product(t.shape[axis:])))


def _axes_operand(node: Node, inputs: list[Tensor | None]) -> list[int] | None:
    if node.attr("axes") is not None:
        return [int(a) for a in node.attr("axes")]
    operand = maybe(inputs, 1)
    return None if operand is None else operand.const_ints("axes")


def _unsqueeze(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t, axes = one(inputs, 0), _axes_operand(node, inputs)
    assert axes is not None
    rank = t.rank + len(axes)
    places = {normal_axis(a, rank) for a in axes}
    rest = iter(t.shape)
    return t.reshape([1 if i in places else next(rest) for i in range(rank)])


def _squeeze(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t, axes = one(inputs, 0), _axes_operand(node, inputs)
    if axes is None:
        if any(isinstance(s, Dim) for s in t.shape):
            raise UnsupportedError("Squeeze without axes of a dynamic shape")
        places = {i for i, s in enumerate(t.shape) if s == 1}
    else:
        places = {normal_axis(a, t.rank) for a in axes}
        for i in places:
            c.require(dims.eq(t.shape[i], 1), "Squeeze: an axis is not 1")
    return t.reshape([s for i, s in enumerate(t.shape) if i not in places])


def _concat(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    parts = all_of(inputs)
    axis = normal_axis(int(node.need("axis")), parts[0].rank)
    if len(parts) == 1:
        return parts[0]
    for t in parts[1:]:
        for i, (have, want) in enumerate(zip(t.shape, parts[0].shape, strict=True)):
            if i != axis:
                c.require_equal(have, want, "Concat: shapes differ")
    shape = list(parts[0].shape)
    parts = [c.checks.fit(t, [*shape[:axis], t.shape[axis], *shape[axis + 1 :]]) for t in parts]
    shape[axis] = sum((t.shape[axis] for t in parts), start=0)
    if all(t.content is not None for t in parts):
        joined = np.concatenate([t.content for t in parts], axis=axis)  # type: ignore[misc]  # checked above
        return from_content(joined, parts[0].dtype)
    return Tensor(
        tuple(shape), parts[0].dtype, ConcatNode(parts=tuple(t for t in parts if t.shape[axis] != 0) or parts[:1], axis=axis)
    )


def _split(c: Context, node: Node, inputs: list[Tensor | None]) -> list[Tensor]:
    t = one(inputs, 0)
    axis = normal_axis(int(node.attr("axis", 0)), t.rank)
    sizes: list[Size]
    if maybe(inputs, 1) is not None:
        sizes = one(inputs, 1).ints("the sizes of Split")
        c.require(dims.eq(sum(sizes, start=0), t.shape[axis]), "Split: sizes do not add up")
    elif node.attr("split") is not None:
        sizes = [int(s) for s in node.attr("split")]
    else:
        parts = int(node.attr("num_outputs", len(node.outputs)))
        chunk = ceildiv(t.shape[axis], parts)
        sizes = [chunk] * (parts - 1) + [t.shape[axis] - chunk * (parts - 1)]
    result, start = [], 0
    for size in sizes:
        starts: list[Size] = [0] * t.rank
        starts[axis] = start
        shape = [*t.shape[:axis], size, *t.shape[axis + 1 :]]
        result.append(t.slice(starts, [1] * t.rank, shape))
        start = start + size  # type: ignore[assignment]  # Size
    return result


def _clamped(position: Size, extent: Size, low: Size, high: Size) -> Size:
    """A slice bound as ONNX reads it: negative counts from the end, then clamped."""
    if isinstance(position, int):
        moved = position + extent if position < 0 else position
        if isinstance(moved, int) and isinstance(extent, int):
            return min(
                max(moved, int(low) if isinstance(low, int) else moved),
                extent + (int(high - extent) if isinstance(high - extent, int) else 0),
            )
        return smax(low, moved) if position < 0 else smin(moved, high)
    moved = position if dims.known_nonnegative(position) else select(dims.lt(position, 0), position + extent, position)
    return smin(smax(low, moved), high)


def _slice(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = one(inputs, 0)
    if node.version < 10:
        starts, ends = list(node.attr("starts")), list(node.attr("ends"))
        axes, steps = node.attr("axes"), None
    else:
        starts, ends = one(inputs, 1).ints("the start of Slice"), one(inputs, 2).ints("the end of Slice")
        axes_t, steps_t = maybe(inputs, 3), maybe(inputs, 4)
        axes = None if axes_t is None else axes_t.const_ints("axes")
        steps = None if steps_t is None else steps_t.const_ints("steps")
    axes = list(range(len(starts))) if axes is None else [normal_axis(int(a), t.rank) for a in axes]
    begin: list[Size] = [0] * t.rank
    step = [1] * t.rank
    shape = list(t.shape)
    for i, axis in enumerate(axes):
        extent = t.shape[axis]
        step[axis] = 1 if steps is None else int(steps[i])
        if step[axis] > 0:
            first = _clamped(starts[i], extent, 0, extent)
            last = extent if isinstance(ends[i], int) and ends[i] >= 2**31 - 1 else _clamped(ends[i], extent, 0, extent)
            length = ceildiv(last - first, step[axis])
        else:
            first = _clamped(starts[i], extent, 0, extent - 1)
            open_end = isinstance(ends[i], int) and ends[i] <= -(2**31) + 1
            last = -1 if open_end else _clamped(ends[i], extent, -1, extent - 1)
            length = ceildiv(first - last, -step[axis])
        begin[axis] = first
        shape[axis] = smax(0, length) if not dims.known_nonnegative(length) else length
    return t.slice(begin, step, shape)


def _expand(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = one(inputs, 0)
    shape = broadcast_shapes(c.checks, t.shape, one(inputs, 1).ints("the shape of Expand"))
    return c.checks.fit(t, shape)


def _tile(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t, repeats = one(inputs, 0), one(inputs, 1).ints("the repeats of Tile")
    shape = tuple(s * r for s, r in zip(t.shape, repeats, strict=True))
    if t.content is not None and all(isinstance(r, int) for r in repeats):
        return from_content(np.tile(t.content, [int(r) for r in repeats if not isinstance(r, Dim)]), t.dtype)
    if all(s == 1 for s, r in zip(t.shape, repeats, strict=True) if r != 1):
        return t.expand(shape)
    index = [
        E.axis(i) if r == 1 else E.call("mod", E.axis(i), E.size(s))
        for i, (s, r) in enumerate(zip(t.shape, repeats, strict=True))
    ]
    return Tensor(shape, t.dtype, Map(inputs=(t,), body=E.load(0, *index, dtype=t.dtype)))


def _gather(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t, indices = one(inputs, 0), one(inputs, 1)
    axis = normal_axis(int(node.attr("axis", 0)), t.rank)
    extent = t.shape[axis]
    if indices.content is not None and not any(isinstance(i, Dim) for i in indices.content.reshape(-1)):
        where = [int(i) for i in indices.content.reshape(-1)]
        if t.content is not None and isinstance(extent, int):
            picked = np.take(t.content, [i + extent if i < 0 else i for i in where], axis=axis)
            return from_content(
                picked.reshape([*t.content.shape[:axis], *indices.content.shape, *t.content.shape[axis + 1 :]]), t.dtype
            )
        if len(where) == 1:  # a slice of one: a view
            first: Size = where[0] + extent if where[0] < 0 else where[0]
            starts: list[Size] = [0] * t.rank
            starts[axis] = first
            view = t.slice(starts, [1] * t.rank, [*t.shape[:axis], 1, *t.shape[axis + 1 :]])
            return view.reshape([*t.shape[:axis], *indices.shape, *t.shape[axis + 1 :]])
    shape = (*t.shape[:axis], *indices.shape, *t.shape[axis + 1 :])
    at = E.load(1, *(E.axis(axis + i) for i in range(indices.rank)), dtype=indices.dtype)
    wrapped = E.call("where", E.call("lt", at, E.const(0)), E.call("add", at, E.size(extent)), at)
    index = [
        *(E.axis(i) for i in range(axis)),
        wrapped,
        *(E.axis(axis + indices.rank + i) for i in range(t.rank - axis - 1)),
    ]
    return Tensor(shape, t.dtype, Map(inputs=(t, indices), body=E.load(0, *index, dtype=t.dtype)))


def _range(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    start, limit, step = (one(inputs, i) for i in range(3))
    if start.dtype.is_float:
        values = [t.scalar() for t in (start, limit, step)]
        if any(v is None for v in values):
            raise UnsupportedError("Range over floats that are not constant")
        a, b, d = (float(v) for v in values if v is not None)
        n = max(0, int(np.ceil((b - a) / d)))
        body = E.call("add", E.const(a), E.call("mul", E.call("to_f", E.axis(0)), E.const(d)))
        return Tensor((n,), start.dtype, Map(inputs=(), body=body))
    (a_,), (b_,), (d_,) = (t.ints("Range") for t in (start, limit, step))
    if isinstance(d_, Dim) or d_ == 0:
        raise UnsupportedError("Range with a step that is not constant")
    length = ceildiv(b_ - a_, d_) if d_ > 0 else ceildiv(a_ - b_, -d_)
    length = length if dims.known_nonnegative(length) else smax(0, length)
    if isinstance(length, int) and length <= 128:
        return from_content([a_ + i * d_ for i in range(length)], start.dtype)
    index = E.call("add", E.size(a_), E.call("mul", E.axis(0), E.const(int(d_))))
    return Tensor((length,), start.dtype, Map(inputs=(), body=index))


def _constant_of_shape(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    shape = tuple(one(inputs, 0).ints("the shape of ConstantOfShape"))
    value = node.attrs.get("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value).reshape(-1)
    dtype = {"float32": DType.F32, "float16": DType.F16, "int64": DType.I64, "int32": DType.I32, "bool": DType.BOOL,
             "int8": DType.I8, "uint8": DType.U8}.get(str(array.dtype))  # fmt: skip
    if dtype is None:
        raise UnsupportedError(f"dtype {array.dtype}")
    if not dtype.is_float and all(isinstance(s, int) for s in shape) and product(shape) in range(129):
        sizes = [int(s) for s in shape if not isinstance(s, Dim)]
        return from_content(np.full(sizes, int(array[0]), dtype=object), dtype)
    return Tensor(shape, dtype, Map(inputs=(), body=E.const(array[0].item(), dtype)))


def _dropout(node: Node, inputs: list[Tensor | None]) -> Tensor:
    """Identity at inference; declines when it trains or its mask is wanted."""
    training = maybe(inputs, 2)
    if (training is not None and training.scalar() is not False) or len([o for o in node.outputs if o]) > 1:
        raise UnsupportedError("Dropout in training mode")
    return one(inputs, 0)


OPS = [
    OpSpec(name="Shape", lower=_shape, kind=OpKind.SHAPE),
    OpSpec(name="Size", lower=_size, kind=OpKind.SHAPE),
    OpSpec(name="Reshape", lower=_reshape),
    OpSpec(name="Transpose", lower=_transpose),
    OpSpec(name="Flatten", lower=_flatten),
    OpSpec(name="Unsqueeze", lower=_unsqueeze),
    OpSpec(name="Squeeze", lower=_squeeze),
    OpSpec(name="Concat", lower=_concat, versions=(4, 10**6)),
    OpSpec(name="Split", lower=_split, versions=(2, 10**6)),
    OpSpec(name="Slice", lower=_slice),
    OpSpec(name="Expand", lower=_expand),
    OpSpec(name="Tile", lower=_tile, versions=(6, 10**6)),
    OpSpec(name="Gather", lower=_gather),
    OpSpec(name="Range", lower=_range),
    OpSpec(name="ConstantOfShape", lower=_constant_of_shape),
    OpSpec(name="Dropout", lower=lambda c, n, i: _dropout(n, i), versions=(7, 10**6)),
]
