"""Products of integers: MatMulInteger and what ONNX Runtime makes of it."""

from __future__ import annotations

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, maybe, one
from xyntra_ep.fusion.onnx_ops.quantised._integers import integer_product, quantise
from xyntra_ep.fusion.op_spec import OpSpec
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

_BYTES = (DType.U8, DType.I8)


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


OPS = [
    OpSpec(name="MatMulInteger", lower=_matmul_integer, versions=(10, 10), inputs=4, types=(_BYTES,)),
    OpSpec(
        name="QLinearMatMul",
        lower=_qlinear_matmul,
        versions=(10, 21),
        inputs=8,
        types=(_BYTES, (DType.F32,), _BYTES, _BYTES, (DType.F32,), _BYTES, (DType.F32,), _BYTES),
    ),
]
