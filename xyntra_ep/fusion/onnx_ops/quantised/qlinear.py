"""Operators between dequantising and quantising, written as one: QLinearAdd and its kin of ONNX Runtime's own domain.

Each is what its kernel on x86 makes of it, to the order of multiplications: a level that lies between two, as many do where
scales are alike, then falls to the same side.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, f, maybe, normal_axis, one
from xyntra_ep.fusion.onnx_ops._window import images
from xyntra_ep.fusion.onnx_ops.movement.movement import concat
from xyntra_ep.fusion.onnx_ops.quantised._integers import dequantise, quantise, rounded, sums_along
from xyntra_ep.fusion.onnx_ops.quantised._made_of import same_values
from xyntra_ep.fusion.onnx_ops.rows.pooling import max_pool, quantised_average
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.op_spec import AUTO_PAD, FLAG, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor, literal
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import either, eq, lt, product
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr

_BYTES = (DType.U8, DType.I8)
_FLOAT = (DType.F32,)
_SOFTMAX_OPSET = 13  # of the attribute: before, all axes from one on were taken together


def _numbers(inputs: Inputs, at: int, dtype: DType) -> tuple[Tensor, Tensor]:
    """The scale at input ``at`` and the zero point behind it, which is 0 where it is left out."""
    scale, zero = one(inputs, at), maybe(inputs, at + 1)
    zero = literal(np.zeros((), dtype.numpy), dtype) if zero is None else zero
    for t in (scale, zero):
        if t.size != 1:
            raise UnsupportedError("a scale or a zero point that is not one number")
    if scale.dtype is not DType.F32 or zero.dtype is not dtype or dtype not in BYTES:
        raise UnsupportedError(f"{dtype} with a scale in {scale.dtype} and a zero point in {zero.dtype}")
    return scale.reshape(()), zero.reshape(())


def _f32(op: str, *operands: Expr) -> Expr:
    return E.call("round_f32", E.call(op, *operands))


def _floats(c: Context, q: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    return c.map([q, scale, zero], lambda v, s, z: E.call("round_f32", dequantise(v, s, z)), DType.F32).named(q.shape)


def _levels(c: Context, x: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """``x`` in floats as the bytes that stand for it."""
    return c.map([x, scale, zero], lambda v, s, z: quantise(v, s, z, zero.dtype), zero.dtype).named(x.shape)


def _requantised(c: Context, q: Tensor, given: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor]) -> Tensor:
    """Bytes with other numbers, the same ones where those are the same."""
    if all(same_values(a, b) for a, b in zip(given, wanted, strict=True)):
        return q
    return _levels(c, _floats(c, q, *given), *wanted)


# -- elementwise


def _add(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b = one(inputs, 0), one(inputs, 3)
    to = _numbers(inputs, 6, a.dtype)

    def body(v: Expr, sv: Expr, zv: Expr, w: Expr, sw: Expr, zw: Expr, scale: Expr, zero: Expr) -> Expr:
        rv, rw = _f32("div", sv, scale), _f32("div", sw, scale)
        zeros = _f32("add", _f32("mul", rv, E.call("to_f", zv)), _f32("mul", rw, E.call("to_f", zw)))
        level = _f32("sub", E.call("to_f", zero), zeros)
        for x, ratio in ((w, rw), (v, rv)):
            level = _f32("add", E.call("mul", E.call("to_f", x), ratio), level)
        return quantise(level, f(1), None, a.dtype)

    return c.map([a, *_numbers(inputs, 1, a.dtype), b, *_numbers(inputs, 4, b.dtype), *to], body, a.dtype)


def _mul(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b = one(inputs, 0), one(inputs, 3)
    to = _numbers(inputs, 6, a.dtype)

    def body(v: Expr, sv: Expr, zv: Expr, w: Expr, sw: Expr, zw: Expr, scale: Expr, zero: Expr) -> Expr:
        both = E.call("mul", E.call("sub", v, zv), E.call("sub", w, zw))
        return rounded(_f32("mul", E.call("to_f", both), _f32("div", _f32("mul", sv, sw), scale)), zero, a.dtype)

    return c.map([a, *_numbers(inputs, 1, a.dtype), b, *_numbers(inputs, 4, b.dtype), *to], body, a.dtype)


def _activation(formula: Callable[[Expr, Node], Expr]) -> Lower:
    """ONNX Runtime computes it of all 256 bytes, and then looks up."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        q = one(inputs, 0)

        def body(v: Expr, sv: Expr, zv: Expr, scale: Expr, zero: Expr) -> Expr:
            value = formula(E.call("round_f32", dequantise(v, sv, zv)), node)
            return quantise(E.call("round_f32", value), scale, zero, q.dtype)

        return c.map([q, *_numbers(inputs, 1, q.dtype), *_numbers(inputs, 3, q.dtype)], body, q.dtype).named(q.shape)

    return lower


def _leaky_relu(v: Expr, node: Node) -> Expr:
    return E.call("where", E.call("lt", v, f(0)), E.call("mul", v, f(node.attr("alpha", 0.01))), v)


def _where(c: Context, node: Node, inputs: Inputs) -> Tensor:
    condition, x, y = one(inputs, 0), one(inputs, 1), one(inputs, 4)
    to = _numbers(inputs, 7, x.dtype)
    x, y = (_requantised(c, t, _numbers(inputs, i, t.dtype), to) for t, i in ((x, 2), (y, 5)))
    return c.map([condition, x, y], lambda p, v, w: E.call("where", p, v, w), x.dtype)


def _concat(c: Context, node: Node, inputs: Inputs) -> Tensor:
    if len(inputs) < 5 or len(inputs) % 3 != 2:
        raise UnsupportedError("inputs that do not come in threes")
    to = _numbers(inputs, 0, one(inputs, 1).dtype)
    parts = []
    for i in range(2, len(inputs), 3):
        q = one(inputs, i)
        if q.dtype is not to[1].dtype:
            raise UnsupportedError(f"dtype {q.dtype} beside {to[1].dtype}")
        parts.append(_requantised(c, q, _numbers(inputs, i + 1, q.dtype), to))
    return concat(c, parts, normal_axis(int(node.need("axis")), parts[0].rank))


# -- over a window or a row


def _average_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = one(inputs, 0)
    mean = quantised_average(c, node, _floats(c, x, *_numbers(inputs, 1, x.dtype)))
    to = _numbers(inputs, 3, x.dtype)
    return c.map([mean, *to], lambda v, s, z: rounded(_f32("div", v, s), z, x.dtype), x.dtype).named(mean.shape)


def _global_average_pool(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """A sum of integers, which is exact."""
    x = one(inputs, 0)
    count = product(x.shape[2:])
    c.require(either(lt(0, count), eq(x.shape[0] * x.shape[1], 0)), "an image without elements")
    sums = sums_along(x, range(2, x.rank))

    def body(total: Expr, sx: Expr, zx: Expr, scale: Expr, zero: Expr) -> Expr:
        total = E.call("sub", total, E.call("mul", zx, E.size(count)))
        per_level = _f32("div", sx, _f32("mul", scale, E.call("to_f", E.size(count))))
        return quantise(E.call("mul", E.call("to_f", total), per_level), f(1), zero, x.dtype)

    return c.map([sums, *_numbers(inputs, 1, x.dtype), *_numbers(inputs, 3, x.dtype)], body, x.dtype).named(sums.shape)


def _softmax(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """ONNX Runtime rounds how many levels there are to 1 down to a whole number."""
    x = one(inputs, 0)
    is_of_one_axis = int(node.need("opset")) >= _SOFTMAX_OPSET
    axis = normal_axis(int(node.attr("axis", -1)), x.rank)
    scale, _ = _numbers(inputs, 1, x.dtype)
    values = c.map([x, scale], lambda v, s: _f32("mul", E.call("to_f", v), s), DType.F32).named(x.shape)
    shares = softmax(values, [axis] if is_of_one_axis else list(range(axis, x.rank)))

    def body(share: Expr, s: Expr, z: Expr) -> Expr:
        levels = E.call("floor", _f32("div", f(1), s))
        return quantise(E.call("mul", share, levels), f(1), z, x.dtype)

    return c.map([shares, *_numbers(inputs, 3, x.dtype)], body, x.dtype).named(x.shape)


_UNARY = (_BYTES, _FLOAT, _BYTES, _FLOAT, _BYTES)
_BINARY = (_BYTES, _FLOAT, _BYTES, _BYTES, _FLOAT, _BYTES, _FLOAT, _BYTES)
_MS = "com.microsoft"

OPS = [
    OpSpec(name=f"{_MS}.QLinearAdd", lower=_add, inputs=8, types=_BINARY),
    OpSpec(name=f"{_MS}.QLinearMul", lower=_mul, inputs=8, types=_BINARY),
    OpSpec(
        name=f"{_MS}.QLinearLeakyRelu",
        lower=_activation(_leaky_relu),
        inputs=5,
        attributes=takes("alpha"),
        types=_UNARY,
    ),
    OpSpec(
        name=f"{_MS}.QLinearSigmoid",
        lower=_activation(lambda v, node: E.call("sigmoid", v)),
        inputs=5,
        types=_UNARY,
    ),
    OpSpec(
        name=f"{_MS}.QLinearWhere",
        lower=_where,
        inputs=9,
        types=((DType.BOOL,), _BYTES, _FLOAT, _BYTES, _BYTES, _FLOAT, _BYTES, _FLOAT, _BYTES),
    ),
    OpSpec(
        name=f"{_MS}.QLinearConcat",
        lower=_concat,
        inputs=None,
        attributes=takes("axis"),
        types=(_FLOAT, _BYTES, (*_BYTES, DType.F32)),
    ),
    OpSpec(
        name=f"{_MS}.QLinearAveragePool",
        lower=images(_average_pool),
        inputs=5,
        attributes=takes(
            "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD, ceil_mode=FLAG, channels_last=FLAG, count_include_pad=FLAG
        ),
        types=_UNARY,
    ),
    OpSpec(
        name=f"{_MS}.NhwcMaxPool",
        lower=images(max_pool, always_last=True),
        attributes=takes("dilations", "kernel_shape", "pads", "strides", auto_pad=AUTO_PAD, ceil_mode=FLAG),
        types=(_BYTES,),
    ),
    OpSpec(
        name=f"{_MS}.QLinearGlobalAveragePool",
        lower=images(_global_average_pool),
        inputs=5,
        attributes=takes(channels_last=FLAG),
        types=_UNARY,
    ),
    OpSpec(
        name=f"{_MS}.QLinearSoftmax",
        lower=_softmax,
        inputs=5,
        attributes=takes("axis", "opset"),
        types=_UNARY,
    ),
]
