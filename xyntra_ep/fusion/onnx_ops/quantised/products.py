"""Products of integers: MatMulInteger and what ONNX Runtime makes of it."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, f, maybe, one
from xyntra_ep.fusion.onnx_ops.quantised._integers import integer_product, one_number, quantise
from xyntra_ep.fusion.onnx_ops.quantised.linear import dynamically_quantised
from xyntra_ep.fusion.op_spec import FLAG, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_BYTES = (DType.U8, DType.I8)
_FLOAT = (DType.F32,)


def _matrices(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Vectors as matrices of one row and of one column."""
    if a.rank == 0 or b.rank == 0:
        raise UnsupportedError("MatMul of a scalar")
    return a.reshape((1, *a.shape)) if a.rank == 1 else a, b.reshape((*b.shape, 1)) if b.rank == 1 else b


def _of_rows(t: Tensor | None) -> Tensor | None:
    """What a row of a has: one for all, [m], or [..., m, 1]."""
    if t is None or t.size == 1:
        return None if t is None else t.reshape(())
    return t.reshape((*t.shape, 1)) if t.rank == 1 else t


def _of_columns(t: Tensor | None) -> Tensor | None:
    """What a column of b has: one for all, [n], or [..., 1, n]."""
    return t.reshape(()) if t is not None and t.size == 1 else t


def _without_axes(t: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """``t`` [..., m, n] without the axes that vectors were given."""
    shape = list(t.shape)
    if a.rank == 1:
        del shape[-2]
    if b.rank == 1:
        del shape[-1]
    return t.reshape(shape)


def _matmul_integer(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, b = one(inputs, 0), one(inputs, 1)
    left, right = _matrices(a, b)
    product = integer_product(c, left, _of_rows(maybe(inputs, 2)), right, _of_columns(maybe(inputs, 3)))
    return _without_axes(product, a, b)


def _qlinear_matmul(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (one(inputs, i) for i in range(8))
    left, right = _matrices(a, b)
    scales = [_of_rows(a_scale), _of_columns(b_scale)]
    product = integer_product(c, left, _of_rows(a_zero), right, _of_columns(b_zero), [b_scale])
    outputs = [y_scale, y_zero]
    if any(t.size != 1 for t in outputs):
        raise UnsupportedError("an output that is quantised in rows")

    def body(total: Expr, sa: Expr, sb: Expr, sy: Expr, zero: Expr) -> Expr:
        scale = E.call("round_f32", E.call("div", E.call("round_f32", E.call("mul", sa, sb)), sy))
        return quantise(E.call("mul", E.call("to_f", total), scale), E.const(1.0), zero, y_zero.dtype)

    operands = [product, *(t for t in scales if t is not None), *(t.reshape(()) for t in outputs)]
    return _without_axes(c.map(operands, body, y_zero.dtype).named(product.shape), a, b)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """A matrix of bytes. ``scale``: as it broadcasts to the product; ``zero``: one number, or one for each column of b."""

    q: Tensor
    scale: Tensor
    zero: Tensor | None


def scaled_product(c: Context, a: Bytes, b: Bytes, bias: Tensor | None) -> Tensor:
    """a @ b + bias as f32. A scale of one axis is of the columns, whichever operand it is given with: ONNX Runtime's optimiser
    does not always know which of two is which."""
    left, right = _matrices(a.q, b.q)
    columns = [t for t in (a.scale, b.scale, *([] if bias is None else [bias])) if t.rank == 1]
    zero = None if a.zero is None else one_number(a.zero, "a's zero point")
    total = integer_product(c, left, zero, right, _of_columns(b.zero), columns)
    shape = total.shape
    scales = [t.reshape(()) if t.size == 1 else c.checks.fit(t, shape) for t in (a.scale, b.scale)]
    more = [] if bias is None else [c.checks.fit(bias, shape)]

    def body(sums: Expr, sa: Expr, sb: Expr, *added: Expr) -> Expr:
        value = E.call("mul", E.call("to_f", sums), E.call("round_f32", E.call("mul", sa, sb)))
        return E.call("add", value, added[0]) if added else value

    return _without_axes(c.map([total, *scales, *more], body, DType.F32).named(shape), a.q, b.q)


def _matmul_integer_to_float(c: Context, node: Node, inputs: Inputs) -> Tensor:
    a = Bytes(q=one(inputs, 0), scale=one(inputs, 2), zero=maybe(inputs, 4))
    b = Bytes(q=one(inputs, 1), scale=one(inputs, 3), zero=maybe(inputs, 5))
    return scaled_product(c, a, b, maybe(inputs, 6))


def _dynamic_quantize_matmul(c: Context, node: Node, inputs: Inputs) -> Tensor:
    q, scale, zero = dynamically_quantised(c, one(inputs, 0))
    b = Bytes(q=one(inputs, 1), scale=one(inputs, 2), zero=maybe(inputs, 3))
    return scaled_product(c, Bytes(q=q, scale=scale, zero=zero), b, maybe(inputs, 4))


def _qgemm(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """Quantised where it is said how; else the floats."""
    a, a_scale, a_zero, b, b_scale, b_zero = (one(inputs, i) for i in range(6))
    bias, y_scale, y_zero = (maybe(inputs, i) for i in range(6, 9))
    a, b = (t.permute((1, 0)) if node.attr(name, 0) else t for t, name in ((a, "transA"), (b, "transB")))
    if (y_scale is None) != (y_zero is None):
        raise UnsupportedError("a scale without a zero point, or the other way round")
    alpha = float(node.attr("alpha", 1.0))
    total = integer_product(c, a, one_number(a_zero, "a's zero point"), b, _of_columns(b_zero), [b_scale])
    shape = total.shape
    operands = [total, one_number(a_scale, "a's scale"), b_scale.reshape(()) if b_scale.size == 1 else b_scale]
    given = [] if bias is None else [c.checks.fit(bias, shape)]
    outputs = (
        [] if y_scale is None or y_zero is None else [one_number(y_scale, "y's scale"), one_number(y_zero, "y's zero point")]
    )

    def body(sums: Expr, sa: Expr, sb: Expr, *more: Expr) -> Expr:
        if given:
            sums = E.call("wrap_i32", E.call("add", sums, more[0]))
        scale = E.call("round_f32", E.call("mul", E.call("round_f32", E.call("mul", f(alpha), sa)), sb))
        if not outputs:
            return E.call("mul", E.call("to_f", sums), scale)
        scale = E.call("round_f32", E.call("div", scale, more[-2]))
        return quantise(E.call("mul", E.call("to_f", sums), scale), E.const(1.0), more[-1], outputs[1].dtype)

    dtype = outputs[1].dtype if outputs else DType.F32
    return c.map([*operands, *given, *outputs], body, dtype).named(shape)


OPS = [
    OpSpec(name="MatMulInteger", lower=_matmul_integer, versions=(10, 10), inputs=4, types=(_BYTES,)),
    OpSpec(
        name="QLinearMatMul",
        lower=_qlinear_matmul,
        versions=(10, 21),
        inputs=8,
        types=(_BYTES, _FLOAT, _BYTES, _BYTES, _FLOAT, _BYTES, _FLOAT, _BYTES),
    ),
    OpSpec(
        name="com.microsoft.MatMulIntegerToFloat",
        lower=_matmul_integer_to_float,
        inputs=7,
        types=(_BYTES, _BYTES, _FLOAT, _FLOAT, _BYTES, _BYTES, _FLOAT),
    ),
    OpSpec(
        name="com.microsoft.DynamicQuantizeMatMul",
        lower=_dynamic_quantize_matmul,
        inputs=5,
        types=(_FLOAT, _BYTES, _FLOAT, _BYTES, _FLOAT),
    ),
    OpSpec(
        name="com.microsoft.QGemm",
        lower=_qgemm,
        inputs=9,
        attributes=takes("alpha", transA=FLAG, transB=FLAG),
        types=(_BYTES, _FLOAT, _BYTES, _BYTES, _FLOAT, _BYTES, (DType.I32,), _FLOAT, _BYTES),
    ),
]
