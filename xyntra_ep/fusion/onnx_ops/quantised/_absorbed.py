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
    factors = _factors(c, "a", a, "b", b, b.rank - 1)
    if factors is None:
        return None
    left, right = factors
    columns = _vector(right.scale)
    sums = integer_product(c, left.q, left.zero, right.q, None if right.zero is None else _vector(right.zero), [columns])
    return c.map([sums, left.scale, columns], _scaled, DType.F32).named(sums.shape)


def convolution_of_quantised(c: Context, node: Node, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor | None:
    """ONNX Conv as x's type where x stands for bytes of one scale, w for bytes of one scale or one for each output; else None."""
    factors = _factors(c, "x", x, "w", w, 0)
    if factors is None or (bias is not None and bias.rank != 1):
        return None
    left, right = factors
    zero = None if right.zero is None else _vector(right.zero)
    each = [_vector(right.scale), *([] if bias is None else [bias])]
    sums = integer_convolution(c, node, left.q, left.zero, right.q, zero, each)
    operands = [sums, left.scale, *each]

    def body(total: Expr, sx: Expr, sw: Expr, *b: Expr) -> Expr:
        value = _scaled(total, sx, sw)
        return E.call("add", value, b[0]) if b else value

    return c.map(operands, body, x.dtype).named(sums.shape).permute(from_last(x.rank))


def _factors(c: Context, a_name: str, a: Tensor, b_name: str, b: Tensor, axis: int) -> tuple[Quantised, Quantised] | None:
    """What both stand for, b with scales along ``axis``. Where that is no product of bytes though one of them is quantised, a
    remark says why."""
    left, right = quantised(a), quantised(b)
    if left is None and right is None:
        return None
    reason = ""
    for name, found, allowed in ((a_name, left, None), (b_name, right, axis)):
        if found is None:
            reason = f"{name} is not quantised"
        elif found.q.dtype not in BYTES:
            reason = f"{name} is of {found.q.dtype}"
        elif found.block:
            reason = f"{name} has a scale for each block of {found.block}"
        elif found.axis not in (None, allowed):
            reason = f"{name} has a scale for each index of axis {found.axis}"
        if reason:
            c.remark(f"product of floats: {reason}")
            return None
    assert left is not None and right is not None
    return left, right


def _vector(t: Tensor) -> Tensor:
    """One number, or one for each index of an axis, without axes of extent 1."""
    return t.reshape(()) if t.size == 1 else t.reshape((t.size,))


def _scaled(total: Expr, left: Expr, right: Expr) -> Expr:
    return E.call("mul", E.call("to_f", total), E.call("mul", left, right))
