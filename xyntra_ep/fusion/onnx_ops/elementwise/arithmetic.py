"""Arithmetic, element by element, with full broadcasting."""

from __future__ import annotations

import math
from collections.abc import Callable

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    Lower,
    all_of,
    as_float,
    f,
    float_input,
    fold,
    maybe,
    one,
    wrapped,
)
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, INTEGERS, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

LARGEST_UNROLLED_POWER = 8


def _unary(op: str) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        x = float_input(inputs, 0)
        return c.map([x], lambda v: wrapped(x.dtype, E.call(op, v)), x.dtype)

    return lower


def _signed_unary(op: str, folded: Callable[[Size], Size]) -> Lower:
    """For floats and integers."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        x = one(inputs, 0)
        if x.dtype is DType.BOOL:
            raise UnsupportedError("dtype bool")
        known = fold([x], folded, x.dtype)
        return known or c.map([x], lambda v: wrapped(x.dtype, E.call(op, v)), x.dtype)

    return lower


def _binary(op: str, folded: Callable[[Size, Size], Size]) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        a, b = one(inputs, 0), one(inputs, 1)
        if a.dtype is DType.BOOL:
            raise UnsupportedError("dtype bool")
        if op in ("div", "mod", "fmod") and not a.dtype.is_float:
            _require_divisors(c, b)
        known = fold([a, b], folded, a.dtype)
        return known or c.map([a, b], lambda x, y: wrapped(a.dtype, E.call(op, x, y)), a.dtype)

    return lower


def _require_divisors(c: Context, t: Tensor) -> None:
    """Integers are not divided by zero: ORT fails such a run."""
    if t.content is not None:
        for v in t.content.reshape(-1):
            c.require(dims.ne(v, 0), "Integer division by zero")
    elif t.is_const:
        if not c.constant(t, "a divisor").all():
            raise UnsupportedError("Integer division by zero")
    else:
        c.require_data(t, lambda v, _: E.call("eq", v, E.const(0)), "Integer division by zero")


def _variadic(op: str, folded: Callable[[Size, Size], Size] | None = None) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        result, *rest = all_of(inputs)
        dtype = result.dtype
        if dtype is DType.BOOL:
            raise UnsupportedError("dtype bool")
        for t in rest:
            known = None if folded is None else fold([result, t], folded, dtype)
            result = known or c.map([result, t], lambda x, y: wrapped(dtype, E.call(op, x, y)), dtype)
        return result

    return lower


def _mean(c: Context, node: Node, inputs: Inputs) -> Tensor:
    as_float(one(inputs, 0))
    total = _variadic("add")(c, node, inputs)
    count = f(len(inputs))
    return c.map([total], lambda v: wrapped(total.dtype, E.call("div", v, count)), total.dtype)


def _mod(c: Context, node: Node, inputs: Inputs) -> Tensor:
    if node.attr("fmod", 0):
        return _binary("fmod", lambda a, b: a - b * dims.trunc_div(a, b))(c, node, inputs)
    if one(inputs, 0).dtype.is_float:
        raise UnsupportedError("Mod of floats without fmod")
    return _binary("mod", lambda a, b: a % b)(c, node, inputs)


def _pow(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, y = one(inputs, 0), one(inputs, 1)
    exponent = y.scalar()
    if not x.dtype.is_float:
        # ORT takes pow() in double and converts back; below 2**53 that is repeated multiplication
        if exponent is None or exponent != int(exponent) or not 0 <= exponent <= LARGEST_UNROLLED_POWER or x.dtype is DType.BOOL:
            raise UnsupportedError(f"dtype {x.dtype}")
        return c.map([x], lambda v: wrapped(x.dtype, _repeated(v, int(exponent), E.const(1))), x.dtype)
    if exponent is not None:
        known = _power(float(exponent))
        if known is not None:
            result = known
            shape_of = [x, y] if y.rank > x.rank else [x]
            return c.map(shape_of, lambda v, *_: wrapped(x.dtype, result(v)), x.dtype)
    return c.map([x, y], lambda v, e: wrapped(x.dtype, E.call("pow", v, E.call("to_f", e))), x.dtype)


def _repeated(v: Expr, times: int, unit: Expr) -> Expr:
    result = v if times else unit
    for _ in range(times - 1):
        result = E.call("mul", result, v)
    return result


def _power(exponent: float) -> Callable[[Expr], Expr] | None:
    """x ** exponent without pow(), where that is as exact."""
    if exponent in (1.0, 2.0, 3.0):
        return lambda v: _repeated(v, int(exponent), f(1))
    return {0.5: _root, -1.0: lambda v: E.call("div", f(1), v)}.get(exponent)


def _root(v: Expr) -> Expr:
    """v ** 0.5, which differs from a square root at -inf."""
    return E.call("where", E.call("eq", v, f(-math.inf)), f(math.inf), E.call("sqrt", v))


def _clip(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """max(min) then min(max): where min > max the result is max, as in ORT."""
    x = one(inputs, 0)
    names = (("max", "min", 1), ("min", "max", 2))
    operands, roles = [x], []
    fixed: list[tuple[str, float]] = []
    for role, name, i in names:
        t = maybe(inputs, i)
        if t is not None:
            operands.append(t)
            roles.append(role)
        elif x.dtype.is_float:  # as wide as numbers go: what has no bound is no infinity either
            fixed.append((role, float(node.attr(name, x.dtype.largest if role == "min" else -x.dtype.largest))))

    def body(v: Expr, *limits: Expr) -> Expr:
        for role, limit in zip(roles, limits, strict=True):
            v = _limited(role, v, limit)
        for role, number in fixed:
            v = E.call(role, v, f(number))
        return v

    return c.map(operands, body, x.dtype)


def _limited(role: str, v: Expr, limit: Expr) -> Expr:
    """``v`` or the limit beyond it; a limit that is NaN is none."""
    if limit.dtype is not DType.F32 or (limit.kind == "const" and not math.isnan(limit.attr)):
        return E.call(role, v, limit)
    beyond = E.call("lt", v, limit) if role == "max" else E.call("lt", limit, v)
    return E.call("where", beyond, limit, v)


def _bitwise(op: str) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        operands = all_of(inputs)
        if operands[0].dtype.compute is not DType.I64:
            raise UnsupportedError(f"dtype {operands[0].dtype}")
        dtype = operands[0].dtype
        return c.map(operands, lambda *v: wrapped(dtype, E.call(op, *v)), dtype)

    return lower


_UNARY = {
    "Relu": "relu", "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin",
    "Acos": "acos", "Atan": "atan", "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh",
    "Atanh": "atanh", "Erf": "erf", "Sigmoid": "sigmoid", "Softplus": "softplus", "Floor": "floor", "Ceil": "ceil",
    "Round": "round",
}  # fmt: skip

_OF_22 = ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Softplus", "Round")
_NEWEST = {**dict.fromkeys(_UNARY, 13), **dict.fromkeys(_OF_22, 22), "Relu": 14}

OPS = [
    *(OpSpec(name=name, lower=_unary(op), versions=(1, _NEWEST[name]), types=(FLOATS,)) for name, op in _UNARY.items()),
    OpSpec(name="Neg", lower=_signed_unary("neg", lambda v: -v), versions=(1, 13), types=(NUMBERS,)),
    OpSpec(name="Abs", lower=_signed_unary("abs", lambda v: dims.smax(v, -v)), versions=(1, 13), types=(NUMBERS,)),
    OpSpec(name="Sign", lower=_signed_unary("sign", lambda v: dims.lt(0, v) - dims.lt(v, 0)), versions=(1, 13), types=(NUMBERS,)),
    OpSpec(name="Add", lower=_binary("add", lambda a, b: a + b), versions=(7, 14), inputs=2, types=(NUMBERS,)),
    OpSpec(name="Sub", lower=_binary("sub", lambda a, b: a - b), versions=(7, 14), inputs=2, types=(NUMBERS,)),
    OpSpec(name="Mul", lower=_binary("mul", lambda a, b: a * b), versions=(7, 14), inputs=2, types=(NUMBERS,)),
    OpSpec(name="Div", lower=_binary("div", dims.trunc_div), versions=(7, 14), inputs=2, types=(NUMBERS,)),
    OpSpec(
        name="Mod",
        lower=_mod,
        versions=(1, 28),
        inputs=2,
        attributes=takes(fmod=FLAG),
        types=(NUMBERS,),
        note="floats with `fmod` = 1 only",
    ),
    OpSpec(
        name="Pow",
        lower=_pow,
        versions=(7, 15),
        inputs=2,
        types=(NUMBERS,),
        note=f"integers to a constant power of 0 to {LARGEST_UNROLLED_POWER} only",
    ),
    OpSpec(name="Max", lower=_variadic("max", dims.smax), versions=(8, 13), inputs=None, types=(NUMBERS,)),
    OpSpec(name="Min", lower=_variadic("min", dims.smin), versions=(8, 13), inputs=None, types=(NUMBERS,)),
    OpSpec(name="Sum", lower=_variadic("add"), versions=(8, 13), inputs=None, types=(NUMBERS,)),
    OpSpec(name="Mean", lower=_mean, versions=(8, 13), inputs=None, types=(FLOATS,)),
    OpSpec(name="Clip", lower=_clip, versions=(6, 13), inputs=3, attributes=takes("min", "max"), types=(NUMBERS,)),
    OpSpec(name="BitwiseAnd", lower=_bitwise("bitand"), versions=(1, 18), inputs=2, types=(INTEGERS,)),
    OpSpec(name="BitwiseOr", lower=_bitwise("bitor"), versions=(1, 18), inputs=2, types=(INTEGERS,)),
    OpSpec(name="BitwiseXor", lower=_bitwise("bitxor"), versions=(1, 18), inputs=2, types=(INTEGERS,)),
    OpSpec(name="BitwiseNot", lower=_bitwise("bitnot"), versions=(1, 18), types=(INTEGERS,)),
]
