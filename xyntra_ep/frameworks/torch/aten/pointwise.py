"""Elementwise operators. Operands are brought to the type that PyTorch's promotion gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.fx import Node as FxNode

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.frameworks.torch.aten._arguments import arguments
from xyntra_ep.frameworks.torch.conversion import AtenRow, Conversion, dtype_of, meta
from xyntra_ep.frameworks.torch.dtypes import OURS
from xyntra_ep.tracea.core_ir.dtypes import DType

Convert = Callable[[Conversion, FxNode], str]


def _unary(op: str, **attrs: Any) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        return c.node(op, c.operand(node.args[0], c.dtype_of(node)), **attrs)

    return convert


def _binary(op: str, swap: bool = False) -> Convert:
    """``alpha`` scales the second operand, where there is one."""

    def convert(c: Conversion, node: FxNode) -> str:
        dtype, args = c.dtype_of(node), arguments(node)
        a, b = (c.operand(args[name], dtype) for name in ("self", "other"))
        alpha = args.get("alpha", 1)
        if alpha != 1:
            b = c.node("Mul", b, c.operand(alpha, dtype))
        return c.node(op, *((b, a) if swap else (a, b)))

    return convert


def _div(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    mode, dtype = args.get("rounding_mode"), c.dtype_of(node)
    a, b = (c.operand(args[name], dtype) for name in ("self", "other"))
    found = c.node("Div", a, b)
    if mode is None:
        return found
    if mode == "floor" and dtype.is_float:
        return c.node("Floor", found)
    if mode == "trunc" and not dtype.is_float:
        return found
    raise UnsupportedError(f"division rounded by {mode} of {dtype}")


def _pow(c: Conversion, node: FxNode) -> str:
    dtype = c.dtype_of(node)
    exponent = node.args[1]
    base = c.operand(node.args[0], dtype)
    if isinstance(exponent, int | float) and exponent in (2, 3):
        square = c.node("Mul", base, base)
        return square if exponent == 2 else c.node("Mul", square, base)
    return c.node("Pow", base, c.operand(exponent, dtype))


def promoted(c: Conversion, *args: Any) -> DType:
    """The type that operands are compared in."""
    values = [meta(arg) if isinstance(arg, FxNode) else arg for arg in args]
    if not all(isinstance(value, torch.Tensor | bool | int | float) for value in values):
        raise UnsupportedError("a scalar that is known at run time only")
    found = OURS.get(torch.result_type(*values))
    if found is None:
        raise UnsupportedError(f"dtype {torch.result_type(*values)}")
    return found


def _comparison(op: str, negated: bool = False) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        dtype = promoted(c, *node.args[:2])
        if dtype is DType.BOOL and op != "Equal":
            dtype = DType.I32
        a, b = (c.operand(arg, dtype) for arg in node.args[:2])
        found = c.node(op, a, b, dtype=DType.BOOL)
        return c.node("Not", found) if negated else found

    return convert


def _truth(c: Conversion, arg: Any) -> str:
    return c.cast(c.value(arg), DType.BOOL)


def _logical(op: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        return c.node(op, *(_truth(c, arg) for arg in node.args))

    return convert


def _bitwise(of_bools: str, of_integers: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        dtype = c.dtype_of(node)
        return c.node(of_bools if dtype is DType.BOOL else of_integers, *(c.operand(arg, dtype) for arg in node.args))

    return convert


def _where(c: Conversion, node: FxNode) -> str:
    dtype = c.dtype_of(node)
    condition, yes, no = node.args
    return c.node("Where", _truth(c, condition), c.operand(yes, dtype), c.operand(no, dtype), dtype=dtype)


def _clamp(c: Conversion, node: FxNode) -> str:
    args, dtype = arguments(node), c.dtype_of(node)
    found = c.operand(args["self"], dtype)
    for op, limit in (("Max", args.get("min", args.get("min_val"))), ("Min", args.get("max", args.get("max_val")))):
        if limit is not None:
            found = c.node(op, found, c.operand(limit, dtype))
    return found


def _gelu(c: Conversion, node: FxNode) -> str:
    return c.node("Gelu", c.value(node.args[0]), approximate=arguments(node)["approximate"])


def _cast(c: Conversion, node: FxNode) -> str:
    return c.cast(c.value(node.args[0]), c.dtype_of(node))


def _same(c: Conversion, node: FxNode) -> str:
    return c.node("Identity", c.value(node.args[0]))


def _rsqrt(c: Conversion, node: FxNode) -> str:
    return c.node("Reciprocal", c.node("Sqrt", c.operand(node.args[0], c.dtype_of(node))))


def _expm1(c: Conversion, node: FxNode) -> str:
    x = c.operand(node.args[0], c.dtype_of(node))
    return c.node("Sub", c.node("Exp", x), c.number(1, x))


def _log2(base: float) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        x = c.node("Log", c.operand(node.args[0], c.dtype_of(node)))
        return c.node("Mul", x, c.number(1 / math.log(base), x))

    return convert


def _elu(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    if args["scale"] != 1 or args["input_scale"] != 1:
        raise UnsupportedError("ELU with scales")
    return c.node("Elu", c.value(args["self"]), alpha=float(args["alpha"]))


def _softplus(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    if args["beta"] != 1:
        raise UnsupportedError("softplus with a beta")  # beyond the threshold it is x, which is what it rounds to
    return c.node("Softplus", c.value(args["self"]))


def _leaky_relu(c: Conversion, node: FxNode) -> str:
    args = arguments(node)
    return c.node("LeakyRelu", c.value(args["self"]), alpha=float(args["negative_slope"]))


def _test(op: str) -> Convert:
    def convert(c: Conversion, node: FxNode) -> str:
        x = c.value(node.args[0])
        if not dtype_of(meta(node.args[0])).is_float:
            raise UnsupportedError("of integers")
        return c.node(op, x, dtype=DType.BOOL)

    return convert


_UNARY = {
    "relu": "Relu", "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "sin": "Sin", "cos": "Cos", "tan": "Tan", "tanh": "Tanh",
    "erf": "Erf", "sigmoid": "Sigmoid", "floor": "Floor", "ceil": "Ceil", "round": "Round", "neg": "Neg", "abs": "Abs",
    "sign": "Sign", "reciprocal": "Reciprocal", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
    "hardswish": "HardSwish", "silu": "Swish", "mish": "Mish",
}  # fmt: skip
_BINARY = {"add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min"}
_COMPARISONS = {
    "eq": ("Equal", False), "ne": ("Equal", True), "lt": ("Less", False), "le": ("LessOrEqual", False),
    "gt": ("Greater", False), "ge": ("GreaterOrEqual", False),
}  # fmt: skip

ROWS = [
    *(AtenRow(name=f"aten.{name}.default", convert=_unary(op)) for name, op in _UNARY.items()),
    *(
        AtenRow(name=f"aten.{name}.{overload}", convert=_binary(op))
        for name, op in _BINARY.items()
        for overload in (("default",) if name in ("maximum", "minimum") else ("Tensor", "Scalar"))
    ),
    AtenRow(name="aten.rsub.Scalar", convert=_binary("Sub", swap=True)),
    *(AtenRow(name=f"aten.div.{overload}", convert=_div) for overload in ("Tensor", "Scalar", "Tensor_mode", "Scalar_mode")),
    *(AtenRow(name=f"aten.pow.{overload}", convert=_pow) for overload in ("Tensor_Scalar", "Tensor_Tensor")),
    *(
        AtenRow(name=f"aten.{name}.{overload}", convert=_comparison(op, negated))
        for name, (op, negated) in _COMPARISONS.items()
        for overload in ("Tensor", "Scalar")
    ),
    *(AtenRow(name=f"aten.logical_{op.lower()}.default", convert=_logical(op)) for op in ("And", "Or", "Xor", "Not")),
    AtenRow(name="aten.bitwise_and.Tensor", convert=_bitwise("And", "BitwiseAnd")),
    AtenRow(name="aten.bitwise_or.Tensor", convert=_bitwise("Or", "BitwiseOr")),
    AtenRow(name="aten.bitwise_xor.Tensor", convert=_bitwise("Xor", "BitwiseXor")),
    AtenRow(name="aten.bitwise_not.default", convert=_bitwise("Not", "BitwiseNot")),
    AtenRow(name="aten.where.self", convert=_where),
    *(AtenRow(name=f"aten.{name}", convert=_clamp) for name in ("clamp.default", "clamp.Tensor", "hardtanh.default")),
    *(AtenRow(name=f"aten.{name}.default", convert=_clamp) for name in ("clamp_min", "clamp_max")),
    AtenRow(name="aten.gelu.default", convert=_gelu),
    AtenRow(name="aten.elu.default", convert=_elu),
    AtenRow(name="aten.softplus.default", convert=_softplus),
    AtenRow(name="aten.leaky_relu.default", convert=_leaky_relu),
    AtenRow(name="aten.rsqrt.default", convert=_rsqrt),
    AtenRow(name="aten.expm1.default", convert=_expm1),
    AtenRow(name="aten.log2.default", convert=_log2(2)),
    AtenRow(name="aten.log10.default", convert=_log2(10)),
    AtenRow(name="aten.isnan.default", convert=_test("IsNaN")),
    AtenRow(name="aten.isinf.default", convert=_test("IsInf")),
    AtenRow(name="aten._to_copy.default", convert=_cast),
    AtenRow(name="prims.convert_element_type.default", convert=_cast),
    *(AtenRow(name=f"aten.{name}.default", convert=_same) for name in ("alias", "clone", "detach", "lift_fresh_copy")),
]
