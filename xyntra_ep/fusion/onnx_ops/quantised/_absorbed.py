"""Products and convolutions of floats that stand for integers: of the integers, scaled afterwards."""

from __future__ import annotations

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._window import from_last
from xyntra_ep.fusion.onnx_ops.quantised._convolution import integer_convolution
from xyntra_ep.fusion.onnx_ops.quantised._integers import integer_product
from xyntra_ep.fusion.onnx_ops.quantised._made_of import quantised
from xyntra_ep.fusion.tensor import Quantised, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr


def product_of_quantised(c: Context, a: Tensor, b: Tensor) -> Tensor | None:
    """a @ b as f32 where a stands for bytes of one scale, b for bytes of one scale or one for each column; else None."""
    left, right = _of_bytes(a), _of_bytes(b)
    if left is None or right is None or left.axis is not None or right.axis not in (None, b.rank - 1):
        return None
    columns = _vector(right.scale)
    sums = integer_product(c, left.q, left.zero, right.q, None if right.zero is None else _vector(right.zero), [columns])
    return c.map([sums, left.scale, columns], _scaled, DType.F32).named(sums.shape)


def convolution_of_quantised(c: Context, node: Node, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor | None:
    """ONNX Conv as x's type where x stands for bytes of one scale, w for bytes of one scale or one for each output; else None."""
    left, right = _of_bytes(x), _of_bytes(w)
    if left is None or right is None or left.axis is not None or right.axis not in (None, 0):
        return None
    zero = None if right.zero is None else _vector(right.zero)
    each = [_vector(right.scale), *([] if bias is None else [bias])]
    if bias is not None and bias.rank != 1:
        return None
    sums = integer_convolution(c, node, left.q, left.zero, right.q, zero, each)
    operands = [sums, left.scale, *each]

    def body(total: Expr, sx: Expr, sw: Expr, *b: Expr) -> Expr:
        value = _scaled(total, sx, sw)
        return E.call("add", value, b[0]) if b else value

    return c.map(operands, body, x.dtype).named(sums.shape).permute(from_last(x.rank))


def _of_bytes(t: Tensor) -> Quantised | None:
    found = quantised(t)
    return found if found is not None and found.q.dtype in BYTES else None


def _vector(t: Tensor) -> Tensor:
    """One number, or one for each index of an axis, without axes of extent 1."""
    return t.reshape(()) if t.size == 1 else t.reshape((t.size,))


def _scaled(total: Expr, left: Expr, right: Expr) -> Expr:
    return E.call("mul", E.call("to_f", total), E.call("mul", left, right))
