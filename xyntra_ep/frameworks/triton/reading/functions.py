"""The functions of `triton.language` that are read, by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind

# Of one number; of triton.language, triton.language.math and libdevice.
OF_ONE: Mapping[str, str] = {
    "exp": "exp", "log": "log", "sqrt": "sqrt", "sqrt_rn": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "erf": "erf",
    "abs": "abs", "floor": "floor", "ceil": "ceil", "sigmoid": "sigmoid", "tanh": "tanh", "rint": "round", "fabs": "abs",
    "isnan": "isnan", "isinf": "isinf", "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh",
}  # fmt: skip
OF_TWO: Mapping[str, str] = {"maximum": "max", "minimum": "min", "div_rn": "div", "fdiv": "div", "pow": "pow", "fmod": "fmod"}
WRITTEN_OUT: Mapping[str, Callable[..., Expr]] = {
    "rsqrt": lambda x: E.call("div", E.const(1.0), E.call("sqrt", x)),
    "exp2": lambda x: E.call("exp", E.call("mul", x, E.const(0.6931471805599453))),
    "log2": lambda x: E.call("mul", E.call("log", x), E.const(1.4426950408889634)),
    "log1p": lambda x: E.call("log", E.call("add", x, E.const(1.0))),
    "fma": lambda a, b, c: E.call("add", E.call("mul", a, b), c),
}
REDUCTIONS: Mapping[str, ReduceKind] = {"sum": ReduceKind.SUM, "max": ReduceKind.MAX, "min": ReduceKind.MIN}
UNCHANGED = ("multiple_of", "max_contiguous", "max_constancy")  # what only helps the compiler
ARITHMETIC: Mapping[str, str] = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div", "FloorDiv": "div", "Mod": "fmod", "BitAnd": "bitand",
    "BitOr": "bitor", "BitXor": "bitxor",
}  # fmt: skip
LOGICAL: Mapping[str, str] = {"BitAnd": "and", "BitOr": "or", "BitXor": "xor"}
COMPARISONS: Mapping[str, tuple[str, bool, bool]] = {  # (operation, whether its operands change places, whether it is negated)
    "Lt": ("lt", False, False),
    "LtE": ("le", False, False),
    "Gt": ("lt", True, False),
    "GtE": ("le", True, False),
    "Eq": ("eq", False, False),
    "NotEq": ("eq", False, True),
}
_TYPES: Mapping[str, DType] = {
    "float32": DType.F32, "float16": DType.F16, "bfloat16": DType.BF16, "int64": DType.I64, "int32": DType.I32,
    "int16": DType.I16, "uint16": DType.U16, "int8": DType.I8, "uint8": DType.U8, "int1": DType.BOOL,
}  # fmt: skip


def type_named(name: str) -> DType | None:
    return _TYPES.get(name)


def cast(x: Expr, to: DType) -> Expr:
    """``x`` as an element of type ``to`` would have it."""
    if to.is_float:
        x = E.call("to_f", x)
        return x if to is DType.F32 else E.call(f"round_{to}", x)
    if to is DType.BOOL:
        return E.call("to_b", x)
    x = E.call("to_i", x)
    return x if to in (DType.I64, DType.I32) else E.call(f"wrap_{to}", x)


def alike(values: list[Expr]) -> list[Expr]:
    """Operands of one type: floats where one is, else integers where one is."""
    kinds = {v.dtype for v in values}
    if len(kinds) == 1:
        return values
    wanted = "to_f" if DType.F32 in kinds else "to_i"
    return [E.call(wanted, v) for v in values]
