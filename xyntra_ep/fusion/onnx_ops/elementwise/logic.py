"""Comparisons, logic, selection and conversion, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import cast_expr
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, all_of, f, float_input, fold, one
from xyntra_ep.fusion.op_spec import ALL, BOOLS, FLAG, FLOATS, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType, from_ort
from xyntra_ep.tracea.core_ir.expr import Expr


def _comparison(op: str, folded: Callable[[Size, Size], Size], swap: bool = False) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        a, b = one(inputs, 0), one(inputs, 1)
        if swap:
            a, b = b, a
        if a.dtype is DType.BOOL and op != "eq":
            raise UnsupportedError("dtype bool")
        return fold([a, b], folded, DType.BOOL) or c.map([a, b], lambda x, y: E.call(op, x, y), DType.BOOL)

    return lower


def _logical(op: str, folded: Callable[..., Size]) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        operands = all_of(inputs)
        return fold(operands, folded, DType.BOOL) or c.map(operands, lambda *v: E.call(op, *v), DType.BOOL)

    return lower


def _where(c: Context, node: Node, inputs: Inputs) -> Tensor:
    condition, a, b = (one(inputs, i) for i in range(3))
    known = fold([condition, a, b], dims.select, a.dtype)
    return known or c.map([condition, a, b], lambda k, x, y: E.call("where", k, x, y), a.dtype)


def _convert(c: Context, x: Tensor, target: DType) -> Tensor:
    if target is x.dtype:
        return x
    known = None if target.is_float else fold([x], (lambda v: dims.ne(v, 0)) if target is DType.BOOL else (lambda v: v), target)
    return known or c.map([x], lambda v: cast_expr(v, x.dtype, target), target)


def _cast(c: Context, node: Node, inputs: Inputs) -> Tensor:
    target = from_ort(int(node.need("to")))
    if target is None:
        raise UnsupportedError(f"Cast to element type {node.need('to')}")
    return _convert(c, one(inputs, 0), target)


def _cast_like(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return _convert(c, one(inputs, 0), one(inputs, 1).dtype)


def _is_inf(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = float_input(inputs, 0)
    signs = [s for s, name in ((1, "detect_positive"), (-1, "detect_negative")) if node.attr(name, 1)]

    def body(v: Expr) -> Expr:
        if len(signs) == 2:
            return E.call("isinf", v)
        return E.call("eq", v, f(signs[0] * math.inf)) if signs else E.const(False)

    return c.map([x], body, DType.BOOL)


def _is_nan(c: Context, node: Node, inputs: Inputs) -> Tensor:
    return c.map([float_input(inputs, 0)], lambda v: E.call("isnan", v), DType.BOOL)


_CAST = takes("round_mode", "saturate")  # of float8 alone

OPS = [
    OpSpec(name="Equal", lower=_comparison("eq", dims.eq), versions=(7, 19), inputs=2),
    OpSpec(name="Less", lower=_comparison("lt", dims.lt), versions=(7, 13), inputs=2, types=(NUMBERS,)),
    OpSpec(name="LessOrEqual", lower=_comparison("le", dims.le), versions=(1, 16), inputs=2, types=(NUMBERS,)),
    OpSpec(name="Greater", lower=_comparison("lt", dims.lt, swap=True), versions=(7, 13), inputs=2, types=(NUMBERS,)),
    OpSpec(name="GreaterOrEqual", lower=_comparison("le", dims.le, swap=True), versions=(1, 16), inputs=2, types=(NUMBERS,)),
    OpSpec(name="And", lower=_logical("and", dims.both), versions=(7, 7), inputs=2, types=(BOOLS,)),
    OpSpec(name="Or", lower=_logical("or", dims.either), versions=(7, 7), inputs=2, types=(BOOLS,)),
    OpSpec(name="Xor", lower=_logical("xor", dims.ne), versions=(7, 7), inputs=2, types=(BOOLS,)),
    OpSpec(name="Not", lower=_logical("not", lambda v: dims.eq(v, 0)), types=(BOOLS,)),
    OpSpec(name="Where", lower=_where, versions=(1, 16), inputs=3, types=(BOOLS, ALL)),
    OpSpec(name="Cast", lower=_cast, versions=(6, 28), attributes={**_CAST, **takes("to")}),
    OpSpec(name="CastLike", lower=_cast_like, versions=(1, 25), inputs=2, attributes=_CAST),
    OpSpec(name="IsNaN", lower=_is_nan, versions=(1, 20), types=(FLOATS,)),
    OpSpec(
        name="IsInf",
        lower=_is_inf,
        versions=(1, 20),
        attributes=takes(detect_negative=FLAG, detect_positive=FLAG),
        types=(FLOATS,),
    ),
]
