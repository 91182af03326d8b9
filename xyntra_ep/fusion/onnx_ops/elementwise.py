"""Elementwise operators: one expression per element, full broadcasting."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import all_of, one, same_float_rounding
from xyntra_ep.fusion.tensor import Tensor, cast_expr, from_content
from xyntra_ep.fusion.trace import Context, OpSpec
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType, from_ort
from xyntra_ep.tracea.core_ir.expr import Expr

Lower = Callable[[Context, Node, list[Tensor | None]], Tensor]


def _fold(c: Context, operands: list[Tensor], fold: Callable[..., Size] | None) -> Tensor | None:
    """Symbolic result of an integer op over known contents (shape arithmetic)."""
    if fold is None or any(t.content is None or t.dtype.is_float for t in operands):
        return None
    contents = np.broadcast_arrays(*(t.content for t in operands))
    values = [fold(*elements) for elements in zip(*(x.reshape(-1) for x in contents), strict=True)]
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return from_content(array.reshape(contents[0].shape), operands[0].dtype)


def _unary(op: str) -> Lower:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        x = one(inputs, 0)
        if x.dtype.compute is not DType.F32 and op not in ("neg", "abs", "sign"):
            raise UnsupportedError(f"dtype {x.dtype}")
        if op == "neg" and x.content is not None:
            return from_content(-x.content, x.dtype)
        return c.map([x], lambda v: same_float_rounding(x.dtype, E.call(op, v)), x.dtype)

    return lower


def _binary(op: str, fold: Callable[[Size, Size], Size] | None = None) -> Lower:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        a, b = one(inputs, 0), one(inputs, 1)
        if a.dtype is DType.BOOL:
            raise UnsupportedError("dtype bool")
        if op == "div" and not a.dtype.is_float and fold is not None and b.content is not None:
            if any(v == 0 for v in b.content.reshape(-1)):
                raise UnsupportedError("integer division by zero")
        folded = _fold(c, [a, b], fold)
        if folded is not None:
            return folded
        return c.map([a, b], lambda x, y: same_float_rounding(a.dtype, E.call(op, x, y)), a.dtype)

    return lower


def _variadic(op: str, fold: Callable[[Size, Size], Size] | None = None) -> Lower:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        result, *rest = all_of(inputs)
        for t in rest:
            folded = _fold(c, [result, t], fold)
            dtype = result.dtype
            result = folded or c.map([result, t], lambda x, y, d=dtype: same_float_rounding(d, E.call(op, x, y)), dtype)
        return result

    return lower


def _mean(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    total = _variadic("add")(c, node, inputs)
    return c.map([total], lambda v: same_float_rounding(total.dtype, E.call("div", v, E.const(float(len(inputs))))), total.dtype)


def _comparison(op: str, swap: bool = False, fold: Callable[[Size, Size], Size] | None = None) -> Lower:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        a, b = one(inputs, 0), one(inputs, 1)
        if swap:
            a, b = b, a
        if a.content is not None and b.content is not None and fold is not None and not a.dtype.is_float:
            folded = _fold(c, [a, b], fold)
            assert folded is not None and folded.content is not None
            return from_content(folded.content, DType.BOOL)
        if a.dtype is DType.BOOL and op != "eq":
            raise UnsupportedError("dtype bool")
        return c.map([a, b], lambda x, y: E.call(op, x, y), DType.BOOL)

    return lower


def _logical(op: str) -> Lower:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        return c.map(all_of(inputs), lambda *v: E.call(op, *v), DType.BOOL)

    return lower


def _not(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x = one(inputs, 0)
    if x.content is not None:
        flipped = np.vectorize(lambda v: dims.eq(v, 0), otypes=[object])(x.content) if x.content.size else x.content
        return from_content(flipped, DType.BOOL)
    return c.map([x], lambda v: E.call("not", v), DType.BOOL)


def _where(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    condition, a, b = (one(inputs, i) for i in range(3))
    if condition.content is not None and a.content is not None and b.content is not None:
        folded = _fold(c, [a, b, condition], lambda x, y, k: dims.select(k, x, y))
        if folded is not None:
            return from_content(folded.content, a.dtype)
    return c.map([condition, a, b], lambda k, x, y: E.call("where", k, x, y), a.dtype)


def _cast(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x, target = one(inputs, 0), from_ort(int(node.need("to")))
    if target is None:
        raise UnsupportedError(f"Cast to element type {node.need('to')}")
    if x.content is not None and not target.is_float and target is not DType.BOOL:
        return from_content(x.content, target)
    if target is x.dtype:
        return x
    return c.map([x], lambda v: cast_expr(v, x.dtype, target), target)


def _clip(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x = one(inputs, 0)
    bounds = [inputs[1] if len(inputs) > 1 else None, inputs[2] if len(inputs) > 2 else None]
    operands, roles = [x], []
    for role, t in zip(("max", "min"), bounds, strict=True):
        if t is not None:
            operands.append(t)
            roles.append(role)
    fixed = [("max", node.attr("min")), ("min", node.attr("max"))] if node.version < 11 else []

    def body(v: Expr, *limits: Expr) -> Expr:
        for role, limit in zip(roles, limits, strict=True):
            v = E.call(role, v, limit)
        for role, number in fixed:
            v = v if number is None else E.call(role, v, E.const(float(number)))
        return v

    return c.map(operands, body, x.dtype)


def _identity(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    return one(inputs, 0)


def _parametric(formula: Callable[[Expr, Node], Expr]) -> Lower:
    """A float activation with scalar attributes."""

    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        x = one(inputs, 0)
        if not x.dtype.is_float:
            raise UnsupportedError(f"dtype {x.dtype}")
        return c.map([x], lambda v: same_float_rounding(x.dtype, formula(v, node)), x.dtype)

    return lower


def _f(value: float) -> Expr:
    return E.const(float(value))


def _gelu(v: Expr, node: Node) -> Expr:
    return E.call("gelu_tanh" if node.attr("approximate", "none") == "tanh" else "gelu_erf", v)


def _leaky(v: Expr, node: Node) -> Expr:
    return E.call("where", E.call("lt", v, _f(0)), E.call("mul", v, _f(node.attr("alpha", 0.01))), v)


def _hard_sigmoid(v: Expr, node: Node) -> Expr:
    line = E.call("add", E.call("mul", v, _f(node.attr("alpha", 0.2))), _f(node.attr("beta", 0.5)))
    return E.call("max", E.call("min", line, _f(1)), _f(0))


def _hard_swish(v: Expr, node: Node) -> Expr:
    gate = E.call("max", E.call("min", E.call("add", E.call("mul", v, _f(1 / 6)), _f(0.5)), _f(1)), _f(0))
    return E.call("mul", v, gate)


def _elu(v: Expr, node: Node) -> Expr:
    negative = E.call("mul", E.call("sub", E.call("exp", v), _f(1)), _f(node.attr("alpha", 1.0)))
    return E.call("where", E.call("lt", v, _f(0)), negative, v)


def _pow(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x, y = one(inputs, 0), one(inputs, 1)
    if not x.dtype.is_float:
        raise UnsupportedError(f"dtype {x.dtype}")
    exponent = y.scalar()

    def body(v: Expr, e: Expr) -> Expr:
        powers: dict[float, Callable[[], Expr]] = {
            1.0: lambda: v,
            2.0: lambda: E.call("mul", v, v),
            3.0: lambda: E.call("mul", E.call("mul", v, v), v),
            0.5: lambda: E.call("sqrt", v),
            -1.0: lambda: E.call("div", _f(1), v),
        }
        if exponent is not None and float(exponent) in powers:
            return powers[float(exponent)]()
        return E.call("pow", v, E.call("to_f", e))

    return c.map([x, y], lambda v, e: same_float_rounding(x.dtype, body(v, e)), x.dtype)


_UNARY = {
    "Neg": "neg", "Abs": "abs", "Sign": "sign", "Relu": "relu", "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Sin": "sin",
    "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh",
    "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh", "Erf": "erf", "Sigmoid": "sigmoid",
    "Softplus": "softplus", "Floor": "floor", "Ceil": "ceil", "Round": "round",
}  # fmt: skip
_PARAMETRIC: dict[str, Callable[[Expr, Node], Expr]] = {
    "Reciprocal": lambda v, n: E.call("div", _f(1), v),
    "Gelu": _gelu,
    "LeakyRelu": _leaky,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Elu": _elu,
    "Softsign": lambda v, n: E.call("div", v, E.call("add", _f(1), E.call("abs", v))),
    "ThresholdedRelu": lambda v, n: E.call("where", E.call("lt", _f(n.attr("alpha", 1.0)), v), v, _f(0)),
    "Mish": lambda v, n: E.call("mul", v, E.call("tanh", E.call("softplus", v))),
}

OPS = [
    *(OpSpec(name=name, lower=_unary(op)) for name, op in _UNARY.items()),
    *(OpSpec(name=name, lower=_parametric(formula)) for name, formula in _PARAMETRIC.items()),
    OpSpec(name="Add", lower=_binary("add", lambda a, b: a + b), versions=(7, 10**6)),
    OpSpec(name="Sub", lower=_binary("sub", lambda a, b: a - b), versions=(7, 10**6)),
    OpSpec(name="Mul", lower=_binary("mul", lambda a, b: a * b), versions=(7, 10**6)),
    OpSpec(name="Div", lower=_binary("div", dims.trunc_div), versions=(7, 10**6)),
    OpSpec(name="Pow", lower=_pow, versions=(7, 10**6)),
    OpSpec(name="Max", lower=_variadic("max", dims.smax), versions=(8, 10**6)),
    OpSpec(name="Min", lower=_variadic("min", dims.smin), versions=(8, 10**6)),
    OpSpec(name="Sum", lower=_variadic("add"), versions=(8, 10**6)),
    OpSpec(name="Mean", lower=_mean, versions=(8, 10**6)),
    OpSpec(name="Equal", lower=_comparison("eq", fold=dims.eq), versions=(7, 10**6)),
    OpSpec(name="Less", lower=_comparison("lt", fold=dims.lt), versions=(7, 10**6)),
    OpSpec(name="LessOrEqual", lower=_comparison("le", fold=dims.le)),
    OpSpec(name="Greater", lower=_comparison("lt", swap=True, fold=dims.lt), versions=(7, 10**6)),
    OpSpec(name="GreaterOrEqual", lower=_comparison("le", swap=True, fold=dims.le)),
    OpSpec(name="And", lower=_logical("and"), versions=(7, 10**6)),
    OpSpec(name="Or", lower=_logical("or"), versions=(7, 10**6)),
    OpSpec(name="Xor", lower=_logical("xor"), versions=(7, 10**6)),
    OpSpec(name="Not", lower=_not),
    OpSpec(name="Where", lower=_where),
    OpSpec(name="Cast", lower=_cast, versions=(6, 10**6)),
    OpSpec(name="Clip", lower=_clip, versions=(6, 10**6)),
    OpSpec(name="Identity", lower=_identity),
    OpSpec(name="IsNaN", lower=lambda c, n, i: c.map([one(i, 0)], lambda v: E.call("isnan", v), DType.BOOL)),
]
