"""Shapes: folds of symbolic sizes, and views that keep or repeat the elements."""

from __future__ import annotations

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import broadcast_shapes
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, const_number, maybe, normal_axis, one, wanted_outputs
from xyntra_ep.fusion.op_spec import ALL, BOOLS, FLAG, FLOATS, INDICES, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor, from_content
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, product, smax
from xyntra_ep.tracea.core_ir.dtypes import DType, from_ort

MOST_CONTENT = 128  # elements that are worth following symbolically
_DTYPE_OF = {str(d.numpy): d for d in DType if d is not DType.BF16}


def _shape(c: Context, node: Node, inputs: Inputs) -> Tensor:
    shape = one(inputs, 0).shape
    return from_content(list(shape[slice(node.attr("start", 0), node.attr("end", None))]))


def _size(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return from_content(one(inputs, 0).size)


def _reshape(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    wanted = one(inputs, 1).ints("the shape of Reshape") if node.version >= 5 else list(node.need("shape"))
    keep_zero = bool(node.attr("allowzero", 0))
    for s in () if keep_zero else wanted[t.rank :]:
        c.require(dims.ne(s, 0), "The dimension with value zero exceeds the dimension size of the input tensor")
    shape = [s if keep_zero or i >= t.rank else _or_as_it_is(c, s, t.shape[i]) for i, s in enumerate(wanted)]
    if shape.count(-1) > 1:
        raise UnsupportedError("Reshape with more than one -1")
    if -1 in shape:
        known = product(s for s in shape if s != -1)
        c.require(dims.ne(known, 0), "Reshape: the number of elements differs")
        shape[shape.index(-1)] = t.size // known
    c.require(dims.eq(product(shape), t.size), "Reshape: the number of elements differs")
    return t.reshape(shape)


def _or_as_it_is(c: Context, wanted: Size, have: Size) -> Size:
    """What Reshape makes of ``wanted`` elements: none stands for as many as there are."""
    if isinstance(wanted, int):
        return have if wanted == 0 else wanted
    if dims.known_nonnegative(wanted - 1) or have == wanted or (have // wanted) * wanted == have:  # both are 0, or neither is
        return wanted
    if c.checks.assume(dims.ne(wanted, 0)):
        return wanted
    return dims.select(dims.eq(wanted, 0), have, wanted)


def _transpose(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    return t.permute(node.attr("perm") or tuple(reversed(range(t.rank))))


def _flatten(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    axis = int(node.attr("axis", 1))
    axis = axis + t.rank if axis < 0 else axis
    return t.reshape((product(t.shape[:axis]), product(t.shape[axis:])))


def _axes_operand(node: Node, inputs: Inputs) -> list[int] | None:
    """Axes as an attribute (before opset 13) or an input."""
    if node.attr("axes") is not None:
        return [int(a) for a in node.attr("axes")]
    operand = maybe(inputs, 1)
    return None if operand is None else operand.const_ints("axes")


def _unsqueeze(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, axes = one(inputs, 0), _axes_operand(node, inputs)
    if axes is None:
        raise UnsupportedError("axes are missing")
    rank = t.rank + len(axes)
    places = {normal_axis(a, rank) for a in axes}
    rest = iter(t.shape)
    return t.reshape([1 if i in places else next(rest) for i in range(rank)])


def _squeeze(c: Context, node: Node, inputs: Inputs) -> Tensor:
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


def _expand(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    return t.expand(broadcast_shapes(c.checks, t.shape, one(inputs, 1).ints("the shape of Expand")))


def _range(c: Context, node: Node, inputs: Inputs) -> Tensor:
    start, limit, step = (one(inputs, i) for i in range(3))
    if start.dtype.is_float:
        first, last, delta = (float(const_number(t, "a bound of a float Range")) for t in (start, limit, step))
        count = max(0, int(np.ceil((last - first) / delta)))
        body = E.call("add", E.const(first), E.call("mul", E.call("to_f", E.axis(0)), E.const(delta)))
        return Tensor((count,), start.dtype, Map(inputs=(), body=body))
    (a,), (b,), (d,) = (t.ints("a bound of Range") for t in (start, limit, step))
    if isinstance(d, Dim) or d == 0:
        raise UnsupportedError("Range with a step that is not constant")
    length = ceildiv(b - a, d) if d > 0 else ceildiv(a - b, -d)
    length = length if dims.known_nonnegative(length) else smax(0, length)
    if isinstance(length, int) and length <= MOST_CONTENT:
        return from_content([a + i * d for i in range(length)], start.dtype)
    index = E.call("add", E.size(a), E.call("mul", E.axis(0), E.const(int(d))))
    return Tensor((length,), start.dtype, Map(inputs=(), body=index))


def _constant_of_shape(c: Context, node: Node, inputs: Inputs) -> Tensor:
    shape = tuple(one(inputs, 0).ints("the shape of ConstantOfShape"))
    value = node.attrs.get("value")
    array = np.zeros(1, np.float32) if value is None else np.asarray(value).reshape(-1)
    dtype = _DTYPE_OF.get(str(array.dtype))
    if dtype is None:
        raise UnsupportedError(f"dtype {array.dtype}")
    sizes = [s for s in shape if isinstance(s, int)]
    if not dtype.is_float and len(sizes) == len(shape) and int(np.prod(sizes)) <= MOST_CONTENT:
        return from_content(np.full(sizes, int(array[0]), dtype=object), dtype)
    return Tensor(shape, dtype, Map(inputs=(), body=E.const(array[0].item(), dtype)))


def _eye_like(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = one(inputs, 0)
    dtype = from_ort(int(node.attr("dtype", t.dtype.ort)))
    if dtype is None or t.rank != 2:
        raise UnsupportedError("EyeLike of this type or rank")
    on = E.call("eq", E.axis(1), E.call("add", E.axis(0), E.const(int(node.attr("k", 0)))))
    one_, zero = (E.const(v, dtype) for v in (1, 0))
    return Tensor(t.shape, dtype, Map(inputs=(), body=E.call("where", on, one_, zero)))


def _identity(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return one(inputs, 0)


def _dropout(c: Context, node: Node, inputs: Inputs) -> list[Tensor]:
    """Identity at inference; the mask is then all true, from opset 12 on."""
    t, training = one(inputs, 0), maybe(inputs, 2)
    if training is not None and training.scalar() is not False:
        raise UnsupportedError("Dropout in training mode")
    if wanted_outputs(node) == 1:
        return [t]
    if node.version < 12:
        raise UnsupportedError("a mask of Dropout before opset 12")
    return [t, Tensor(t.shape, DType.BOOL, Map(inputs=(), body=E.const(True)))]


OPS = [
    OpSpec(name="Shape", lower=_shape, versions=(1, 25), attributes=takes("end", "start")),
    OpSpec(name="Size", lower=_size, versions=(1, 25)),
    OpSpec(
        name="Reshape",
        lower=_reshape,
        versions=(1, 25),
        inputs=2,
        attributes=takes("shape", allowzero=FLAG),
        types=(ALL, INDICES),
    ),
    OpSpec(name="Transpose", lower=_transpose, versions=(1, 25), attributes=takes("perm")),
    OpSpec(name="Flatten", lower=_flatten, versions=(1, 25), attributes=takes("axis")),
    OpSpec(name="Unsqueeze", lower=_unsqueeze, versions=(1, 25), inputs=2, attributes=takes("axes"), types=(ALL, INDICES)),
    OpSpec(name="Squeeze", lower=_squeeze, versions=(1, 25), inputs=2, attributes=takes("axes"), types=(ALL, INDICES)),
    OpSpec(name="Expand", lower=_expand, versions=(1, 13), inputs=2, types=(ALL, INDICES)),
    OpSpec(
        name="Range",
        lower=_range,
        versions=(1, 27),
        inputs=3,
        attributes=takes(stash_type=(1,)),
        types=(NUMBERS,),
        note="of constant floats, of a constant step",
    ),
    OpSpec(name="ConstantOfShape", lower=_constant_of_shape, versions=(1, 25), attributes=takes("value"), types=(INDICES,)),
    OpSpec(name="EyeLike", lower=_eye_like, versions=(1, 22), attributes=takes("dtype", "k"), note="of rank 2"),
    OpSpec(name="Identity", lower=_identity, versions=(1, 25)),
    OpSpec(
        name="Dropout",
        lower=_dropout,
        versions=(7, 22),
        inputs=3,
        attributes=takes("ratio", "seed"),
        types=(FLOATS, FLOATS, BOOLS),
        note="without training",
    ),
]
