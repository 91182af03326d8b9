"""Elements picked by indices that are data.

An index out of range is the caller's mistake, and the run fails, as ORT's does. Kernels clamp indices all the same: no memory
outside the tensor is touched before that is known.
"""

from __future__ import annotations

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    clamp_index,
    const_number,
    from_end,
    maybe,
    normal_axis,
    one,
    require_indices,
)
from xyntra_ep.fusion.onnx_ops.movement.movement import part
from xyntra_ep.fusion.op_spec import ALL, INDICES, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor, from_content, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_OUT_OF_RANGE = "indices element out of data bounds"


def _legal(position: Expr, extent: Size) -> Expr:
    return clamp_index(from_end(position, extent), extent)


def _known_indices(indices: Tensor) -> list[int] | None:
    if indices.content is None or any(isinstance(i, Dim) for i in indices.content.reshape(-1)):
        return None
    return [int(i) for i in indices.content.reshape(-1)]


def _gather(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    return gather(c, t, one(inputs, 1), normal_axis(int(node.attr("axis", 0)), t.rank))


def gather(c: Context, t: Tensor, indices: Tensor, axis: int) -> Tensor:
    """Parts of ``t`` along ``axis``; the axes of ``indices`` take its place."""
    extent = t.shape[axis]
    shape = (*t.shape[:axis], *indices.shape, *t.shape[axis + 1 :])
    known = _known_indices(indices)
    require_indices(c, indices, [extent], _OUT_OF_RANGE)
    if known is not None and t.content is not None:
        picked = np.take(t.content, known, axis=axis)
        return from_content(picked.reshape([s for s in shape if isinstance(s, int)]), t.dtype)
    if known is not None and len(known) == 1:  # a slice of one: a view
        first: Size = known[0] + extent if known[0] < 0 else known[0]
        return part(t, axis, first, 1).reshape(shape)
    if known is not None and isinstance(extent, int):
        wrapped = np.asarray([i + extent if i < 0 else i for i in known]).reshape(
            [s for s in indices.shape if isinstance(s, int)]
        )
        indices = literal(wrapped, DType.I64)
    at = E.load(1, *(E.axis(axis + i) for i in range(indices.rank)), dtype=indices.dtype)
    at = at if known is not None and isinstance(extent, int) else _legal(at, extent)
    after = [E.axis(axis + indices.rank + i) for i in range(t.rank - axis - 1)]
    index = [*(E.axis(i) for i in range(axis)), at, *after]
    return Tensor(shape, t.dtype, Map(inputs=(t, indices), body=E.load(0, *index, dtype=t.dtype)))


def _gather_elements(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, indices = one(inputs, 0), one(inputs, 1)
    axis = normal_axis(int(node.attr("axis", 0)), t.rank)
    if indices.rank != t.rank:
        raise UnsupportedError("indices of another rank")
    for i, (have, extent) in enumerate(zip(indices.shape, t.shape, strict=True)):
        if i != axis:
            c.require(le(have, extent), "'indices' shape should have values within bounds of 'data' shape")
    require_indices(c, indices, [t.shape[axis]], _OUT_OF_RANGE)
    index = [E.axis(i) for i in range(t.rank)]
    index[axis] = _legal(E.load(1, *index, dtype=indices.dtype), t.shape[axis])
    return Tensor(indices.shape, t.dtype, Map(inputs=(t, indices), body=E.load(0, *index, dtype=t.dtype)))


def _gather_nd(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, indices = one(inputs, 0), one(inputs, 1)
    batch, depth = int(node.attr("batch_dims", 0)), indices.shape[-1]
    if isinstance(depth, Dim):
        raise UnsupportedError("indices of unknown depth")
    if batch + depth > t.rank:
        raise UnsupportedError("indices of more axes than there are")
    for i in range(batch):
        c.require_equal(indices.shape[i], t.shape[i], "the batch dimensions of data and indices differ")
    if depth:
        require_indices(c, indices, t.shape[batch : batch + depth], "invalid index found")
    first = indices.rank - 1  # the result's axes: those of the indices but the last, then what they leave of ``t``
    leading = [E.axis(i) for i in range(first)]
    index: list[Expr] = leading[:batch]
    for k in range(depth):
        at = E.load(1, *leading, E.const(k), dtype=indices.dtype)
        index.append(_legal(at, t.shape[batch + k]))
    rest = t.shape[batch + depth :]
    index += [E.axis(first + i) for i in range(len(rest))]
    shape = (*indices.shape[:-1], *rest)
    return Tensor(shape, t.dtype, Map(inputs=(t, indices), body=E.load(0, *index, dtype=t.dtype)))


def _one_hot(c: Context, node: Node, inputs: Inputs) -> Tensor:
    indices, values = one(inputs, 0), one(inputs, 2)
    depth = int(const_number(one(inputs, 1), "the depth of OneHot"))
    axis = normal_axis(int(node.attr("axis", -1)), indices.rank + 1)
    c.require_equal(values.size, 2, "the values are not two")
    shape = (*indices.shape[:axis], depth, *indices.shape[axis:])
    at = E.load(0, *(E.axis(i) for i in range(indices.rank + 1) if i != axis), dtype=indices.dtype)
    hot = E.call("eq", E.axis(axis), from_end(E.call("to_i", at), depth))
    off, on = (E.load(1, E.const(k), dtype=values.dtype) for k in range(2))
    return Tensor(shape, values.dtype, Map(inputs=(indices, values), body=E.call("where", hot, on, off)))


def _tensor_scatter(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """A cache with new rows written from a position on, as the gather that reads either."""
    past, update, write = one(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    axis = normal_axis(int(node.attr("axis", -2)), past.rank)
    extent, length = past.shape[axis], update.shape[axis]
    index = [E.axis(i) for i in range(past.rank)]
    for i, (have, want) in enumerate(zip(update.shape, past.shape, strict=True)):
        if i != axis:
            c.require_equal(have, want, "the update has another shape than the cache")
    c.require(le(length, extent), "the update is longer than the cache")
    if write is not None:
        c.require_equal(write.size, past.shape[0], "one position for each batch is wanted")
        room = extent if node.attr("mode", "linear") == "circular" else extent - length + 1
        require_indices(c, write, [room], "an update lies outside of the cache", backwards=False)
    start = E.const(0) if write is None else E.load(2, E.axis(0), dtype=write.dtype)
    source = E.call("sub", E.axis(axis), start)
    if node.attr("mode", "linear") == "circular":
        source = E.call("mod", source, E.size(extent))
    fresh = E.call("and", E.call("le", E.const(0), source), E.call("lt", source, E.size(length)))
    old = E.load(0, *index, dtype=past.dtype)
    index[axis] = source
    body = E.call("where", fresh, E.load(1, *index, dtype=update.dtype), old)
    operands = (past, update) if write is None else (past, update, write)
    return Tensor(past.shape, past.dtype, Map(inputs=operands, body=body))


OPS = [
    OpSpec(name="Gather", lower=_gather, versions=(1, 13), inputs=2, attributes=takes("axis"), types=(ALL, INDICES)),
    OpSpec(
        name="GatherElements", lower=_gather_elements, versions=(1, 13), inputs=2, attributes=takes("axis"), types=(ALL, INDICES)
    ),
    OpSpec(name="GatherND", lower=_gather_nd, versions=(1, 13), inputs=2, attributes=takes("batch_dims"), types=(ALL, INDICES)),
    OpSpec(
        name="OneHot",
        lower=_one_hot,
        versions=(1, 28),
        inputs=3,
        attributes=takes("axis"),
        types=(NUMBERS, NUMBERS, ALL),
        note="of constant depth",
    ),
    OpSpec(
        name="TensorScatter",
        lower=_tensor_scatter,
        versions=(1, 24),
        inputs=3,
        attributes=takes("axis", mode=("linear", "circular")),
        types=(ALL, ALL, INDICES),
    ),
]
