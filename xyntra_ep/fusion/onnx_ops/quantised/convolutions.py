"""Convolutions of integers: ConvInteger and QLinearConv."""

from __future__ import annotations

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, maybe, one
from xyntra_ep.fusion.onnx_ops._window import from_last, images
from xyntra_ep.fusion.onnx_ops.products.convolution import CONV_ATTRIBUTES
from xyntra_ep.fusion.onnx_ops.quantised._convolution import integer_convolution
from xyntra_ep.fusion.onnx_ops.quantised._integers import one_number, quantise
from xyntra_ep.fusion.op_spec import FLAG, OpSpec
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_BYTES = (DType.U8, DType.I8)
_FLOAT = (DType.F32,)
_OF_QLINEAR_CONV = (_BYTES, _FLOAT, _BYTES, _BYTES, _FLOAT, _BYTES, _FLOAT, _BYTES, (DType.I32,))


def _of_outputs(t: Tensor | None) -> Tensor | None:
    """One number, or one for each output channel."""
    return t.reshape(()) if t is not None and t.size == 1 else t


def _conv_integer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, w = one(inputs, 0), one(inputs, 1)
    zero = None if (given := maybe(inputs, 2)) is None else one_number(given, "x's zero point")
    sums = integer_convolution(c, node, x, zero, w, _of_outputs(maybe(inputs, 3)))
    return sums.permute(from_last(x.rank))


def _qlinear_conv(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (one(inputs, i) for i in range(8))
    bias = maybe(inputs, 8)
    each = [w_scale, bias]
    sums = integer_convolution(c, node, x, one_number(x_zero, "x's zero point"), w, _of_outputs(w_zero), each)
    to = [one_number(y_scale, "y's scale"), one_number(y_zero, "y's zero point")]
    others = [one_number(x_scale, "x's scale"), _of_outputs(w_scale), *to, bias]

    def body(total: Expr, sx: Expr, sw: Expr, sy: Expr, zero: Expr, *b: Expr) -> Expr:
        if b:
            total = E.call("wrap_i32", E.call("add", total, b[0]))
        scale = E.call("round_f32", E.call("div", E.call("round_f32", E.call("mul", sx, sw)), sy))
        return quantise(E.call("mul", E.call("to_f", total), scale), E.const(1.0), zero, y_zero.dtype)

    y = c.map([sums, *(t for t in others if t is not None)], body, y_zero.dtype)
    return y.named(sums.shape).permute(from_last(x.rank))


OPS = [
    OpSpec(name="ConvInteger", lower=_conv_integer, versions=(10, 10), inputs=4, attributes=CONV_ATTRIBUTES, types=(_BYTES,)),
    OpSpec(
        name="QLinearConv",
        lower=_qlinear_conv,
        versions=(10, 10),
        inputs=9,
        attributes=CONV_ATTRIBUTES,
        types=_OF_QLINEAR_CONV,
    ),
    OpSpec(
        name="com.microsoft.QLinearConv",
        lower=images(_qlinear_conv),
        inputs=9,
        attributes={**CONV_ATTRIBUTES, "channels_last": FLAG},
        types=_OF_QLINEAR_CONV,
    ),
]
