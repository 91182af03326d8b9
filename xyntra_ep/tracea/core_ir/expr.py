"""Scalar expressions: what one element of a result is.

    expr  = Load(operand, index...)   element of an input operand; each index is an i64 expr
          | axis(i)                   the i-th loop index of the op's domain, i64
          | const(value, dtype)
          | size(Size)                a symbolic size as i64
          | acc(j)                    what the op computed before its epilogue (Gemm, Conv, Attention: j = 0; RowReduce: stage j)
          | call(op, args...)         one of SCALAR_OPS below

Expressions are interned: equal ones are one object, so identity is equality, sharing is free and every traversal memoises by
identity. ``dtype`` is a compute type: F32 (float64 in the interpreter), I64 or BOOL.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.tracea.core_ir.dims import Dim, Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.given_size import GivenSize

F, I, B = DType.F32, DType.I64, DType.BOOL  # noqa: E741


class Expr:
    """One node; see the module's grammar. Build with the functions below."""

    __slots__ = ("__weakref__", "args", "attr", "dtype", "kind")

    kind: str
    args: tuple[Expr, ...]
    attr: Any
    dtype: DType

    def __repr__(self) -> str:
        if self.kind == "load":
            return f"in{self.attr}[{', '.join(map(repr, self.args))}]"
        if self.kind == "axis":
            return f"i{self.attr}"
        if self.kind in ("const", "size"):
            return str(self.attr)
        if self.kind == "acc":
            return f"acc{self.attr}"
        return f"{self.attr}({', '.join(map(repr, self.args))})"


_INTERNED: weakref.WeakValueDictionary[tuple[Any, ...], Expr] = weakref.WeakValueDictionary()
_LOCK = threading.Lock()


def _make(kind: str, args: tuple[Expr, ...], attr: Any, dtype: DType) -> Expr:
    # repr tells -0.0 from 0.0 and one NaN is every NaN; 1 and 1.0 differ through dtype, and given sizes by their origin.
    told = repr(attr) if isinstance(attr, float) else (attr, attr.origin) if type(attr) is GivenSize else attr
    key = (kind, args, told, dtype)
    with _LOCK:
        found = _INTERNED.get(key)
        if found is None:
            found = Expr()
            found.kind, found.args, found.attr, found.dtype = kind, args, attr, dtype
            _INTERNED[key] = found
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalarOp:
    """A scalar operation: operand and result types and its float64 meaning (numpy, elementwise)."""

    name: str
    args: str  # per operand: f, i, b, or n (f or i, all n operands alike), t (any, all t operands alike)
    result: str  # f, i, b, n, t
    reference: Callable[..., Any]


def _erf(x: Any) -> Any:
    x = np.asarray(x, dtype=np.float64)
    return np.vectorize(math.erf, otypes=[np.float64])(x) if x.size else x


def _round_half_even(x: Any) -> Any:
    return np.rint(x)


def _trunc_divide(a: Any, b: Any) -> Any:
    if np.asarray(a).dtype.kind == "f" or np.asarray(b).dtype.kind == "f":
        return np.divide(a, b)
    b_safe = np.where(b == 0, 1, b)
    q = np.abs(a) // np.abs(b_safe)
    return np.where(b == 0, 0, np.where((a < 0) == (b < 0), q, -q))


def _floor_mod(a: Any, b: Any) -> Any:
    if np.asarray(b).dtype.kind != "f":
        return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))
    return np.mod(a, b)


def _relu(x: Any) -> Any:
    return np.where(np.isnan(x), x, np.maximum(x, 0))


def _sigmoid(x: Any) -> Any:
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _wrap(dtype: DType) -> ScalarOp:
    """What an integer has after a trip through a narrower type."""
    return ScalarOp(
        name=f"wrap_{dtype}", args="i", result="i", reference=lambda x: np.asarray(x).astype(dtype.numpy).astype(np.int64)
    )


SCALAR_OPS: Mapping[str, ScalarOp] = {
    op.name: op
    for op in (
        ScalarOp(name="add", args="nn", result="n", reference=np.add),
        ScalarOp(name="sub", args="nn", result="n", reference=np.subtract),
        ScalarOp(name="mul", args="nn", result="n", reference=np.multiply),
        ScalarOp(name="div", args="nn", result="n", reference=_trunc_divide),  # integers: towards zero
        ScalarOp(name="mod", args="nn", result="n", reference=_floor_mod),  # sign of the divisor
        ScalarOp(name="fmod", args="nn", result="n", reference=np.fmod),  # sign of the dividend
        ScalarOp(name="pow", args="ff", result="f", reference=np.power),
        ScalarOp(name="min", args="nn", result="n", reference=np.minimum),  # NaN wins
        ScalarOp(name="max", args="nn", result="n", reference=np.maximum),  # NaN wins
        ScalarOp(name="neg", args="n", result="n", reference=np.negative),
        ScalarOp(name="abs", args="n", result="n", reference=np.abs),
        ScalarOp(name="sign", args="n", result="n", reference=np.sign),
        ScalarOp(name="relu", args="f", result="f", reference=_relu),
        ScalarOp(name="sqrt", args="f", result="f", reference=np.sqrt),
        ScalarOp(name="exp", args="f", result="f", reference=np.exp),
        ScalarOp(name="exp_nonpositive", args="f", result="f", reference=np.exp),  # for x <= 0; 0 from -88 down
        ScalarOp(name="log", args="f", result="f", reference=np.log),
        ScalarOp(name="sin", args="f", result="f", reference=np.sin),
        ScalarOp(name="cos", args="f", result="f", reference=np.cos),
        ScalarOp(name="tan", args="f", result="f", reference=np.tan),
        ScalarOp(name="asin", args="f", result="f", reference=np.arcsin),
        ScalarOp(name="acos", args="f", result="f", reference=np.arccos),
        ScalarOp(name="atan", args="f", result="f", reference=np.arctan),
        ScalarOp(name="sinh", args="f", result="f", reference=np.sinh),
        ScalarOp(name="cosh", args="f", result="f", reference=np.cosh),
        ScalarOp(name="tanh", args="f", result="f", reference=np.tanh),
        ScalarOp(name="asinh", args="f", result="f", reference=np.arcsinh),
        ScalarOp(name="acosh", args="f", result="f", reference=np.arccosh),
        ScalarOp(name="atanh", args="f", result="f", reference=np.arctanh),
        ScalarOp(name="erf", args="f", result="f", reference=_erf),
        ScalarOp(name="sigmoid", args="f", result="f", reference=_sigmoid),
        ScalarOp(name="logistic", args="f", result="f", reference=_sigmoid),  # sigmoid, but no number below 1e-38
        ScalarOp(name="softplus", args="f", result="f", reference=_softplus),
        ScalarOp(name="gelu_erf", args="f", result="f", reference=lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2)))),
        ScalarOp(name="gelu_tanh", args="f", result="f", reference=_gelu_tanh),
        ScalarOp(name="silu", args="f", result="f", reference=lambda x: x * _sigmoid(x)),
        ScalarOp(name="floor", args="f", result="f", reference=np.floor),
        ScalarOp(name="ceil", args="f", result="f", reference=np.ceil),
        ScalarOp(name="round", args="f", result="f", reference=_round_half_even),
        ScalarOp(name="isnan", args="f", result="b", reference=np.isnan),
        ScalarOp(name="isinf", args="f", result="b", reference=np.isinf),
        ScalarOp(name="eq", args="tt", result="b", reference=np.equal),
        ScalarOp(name="lt", args="nn", result="b", reference=np.less),
        ScalarOp(name="le", args="nn", result="b", reference=np.less_equal),
        ScalarOp(name="and", args="bb", result="b", reference=np.logical_and),
        ScalarOp(name="or", args="bb", result="b", reference=np.logical_or),
        ScalarOp(name="xor", args="bb", result="b", reference=np.logical_xor),
        ScalarOp(name="not", args="b", result="b", reference=np.logical_not),
        ScalarOp(name="bitand", args="ii", result="i", reference=np.bitwise_and),
        ScalarOp(name="bitor", args="ii", result="i", reference=np.bitwise_or),
        ScalarOp(name="bitxor", args="ii", result="i", reference=np.bitwise_xor),
        ScalarOp(name="bitnot", args="i", result="i", reference=np.invert),
        ScalarOp(name="where", args="btt", result="t", reference=np.where),
        ScalarOp(name="to_f", args="t", result="f", reference=lambda x: np.asarray(x).astype(np.float64)),
        ScalarOp(name="to_i", args="t", result="i", reference=lambda x: np.trunc(x).astype(np.int64)),  # truncates
        ScalarOp(name="to_b", args="t", result="b", reference=lambda x: np.asarray(x) != 0),
        # what a float has after a trip through a narrower storage type
        ScalarOp(name="round_f16", args="f", result="f", reference=lambda x: np.asarray(x).astype(np.float16).astype(np.float64)),
        ScalarOp(name="round_bf16", args="f", result="f", reference=lambda x: _through_bf16(x)),
        # a quotient or sum as f32 has it: a target computes in f32 and does nothing here, the reference is to decide as it does
        ScalarOp(name="round_f32", args="f", result="f", reference=lambda x: np.asarray(x).astype(np.float32).astype(np.float64)),
        # (x, scale, zero, low, high): the integer that stands for x, as a float; NaN is the lowest
        ScalarOp(name="quantise", args="fffff", result="f", reference=lambda *args: _quantise(*args)),
        *(_wrap(dtype) for dtype in (DType.I32, DType.I16, DType.U16, DType.I8, DType.U8)),
    )
}  # fmt: skip


def _quantise(x: Any, scale: Any, zero: Any, low: Any, high: Any) -> Any:
    level = np.rint(np.asarray(x / scale).astype(np.float32).astype(np.float64)) + zero
    return np.clip(np.where(np.isnan(level), low, level), low, high)


def _through_bf16(x: Any) -> Any:
    from xyntra_ep.tracea.core_ir.dtypes import from_float64, to_float64

    return to_float64(from_float64(np.asarray(x), DType.BF16), DType.BF16)


def load(operand: int, *index: Expr, dtype: DType) -> Expr:
    """Element of input ``operand`` (a position in the op's ``inputs``); ``dtype`` is the operand's compute type."""
    return _make("load", index, operand, dtype.compute)


def axis(i: int) -> Expr:
    return _make("axis", (), i, I)


def const(value: float | int | bool, dtype: DType | None = None) -> Expr:
    if dtype is None:
        dtype = B if isinstance(value, bool) else I if isinstance(value, int) else F
    kinds: dict[DType, Callable[[Any], Any]] = {F: float, I: int, B: bool}
    return _make("const", (), kinds[dtype.compute](value), dtype.compute)


def size(value: Size) -> Expr:
    return _make("size", (), value, I) if isinstance(value, (Dim, GivenSize)) else const(int(value), I)


def acc(j: int = 0) -> Expr:
    return _make("acc", (), j, F)


def acc_int(j: int) -> Expr:
    """A RowReduce stage whose result is an integer (arg_min, arg_max, or a reduction over integers)."""
    return _make("acc", (), j, I)


def acc_bool(j: int) -> Expr:
    """A RowReduce stage whose result is a bool."""
    return _make("acc", (), j, B)


def node(kind: str, args: tuple[Expr, ...], attr: Any, dtype: DType) -> Expr:
    """The node with these parts, as `walk` finds it: for who reads expressions that were written down."""
    return _make(kind, args, attr, dtype)


def call(op: str, *args: Expr) -> Expr:
    """Apply a scalar op. Integer operands beside float ones are a caller's mistake: cast first."""
    row = SCALAR_OPS[op]
    assert len(args) == len(row.args), f"{op} takes {len(row.args)} operands"
    alike = [a.dtype for a, letter in zip(args, row.args, strict=True) if letter in "nt"]
    assert len(set(alike)) <= 1, f"{op}: operand types differ: {alike}"
    for a, letter in zip(args, row.args, strict=True):
        assert letter in "nt" or a.dtype is {"f": F, "i": I, "b": B}[letter], f"{op}: got {a.dtype}"
    result = alike[0] if row.result in "nt" else {"f": F, "i": I, "b": B}[row.result]
    return _simplify(op, args, result) or _make("call", args, op, result)


def _simplify(op: str, args: tuple[Expr, ...], result: DType) -> Expr | None:
    """Identities that hold for every value, NaN and -0 included; integer arithmetic on constants and sizes is folded."""
    if op in ("to_f", "to_i", "to_b") and args[0].dtype is result:
        return args[0]
    if op in ("to_f", "wrap_i32") and (found := _simplify_level(op, args[0])) is not None:
        return found
    if op == "where":
        if args[0].kind == "const":
            return args[1] if args[0].attr else args[2]
        return args[1] if args[1] is args[2] else _simplify_choice(*args)
    if op == "not":
        return _simplify_not(args[0])
    if op in ("and", "or"):
        for a, b in (args, args[::-1]):
            if a.kind == "const":
                return b if a.attr == (op == "and") else a
    if op != "pow" and (chosen := _choice_of_constants(args)) is not None:
        condition, *branches = args[chosen].args
        return call("where", condition, *(call(op, *args[:chosen], b, *args[chosen + 1 :]) for b in branches))
    if op == "mul" and result is F:
        if args[1].kind == "const" and args[1].attr == 1.0:
            return args[0]
        if args[0].kind == "const" and args[0].attr == 1.0:
            return args[1]
    if op in ("div",) and result is F and args[1].kind == "const" and args[1].attr == 1.0:
        return args[0]
    if all(a.kind == "const" for a in args) and op != "pow":
        value = SCALAR_OPS[op].reference(*(np.asarray(a.attr) for a in args))
        return const(value.item() if hasattr(value, "item") else value, result)
    if result is I and op in ("add", "sub", "mul") and all(a.kind in ("const", "size") for a in args):
        a, b = (x.attr for x in args)
        return size(a + b if op == "add" else a - b if op == "sub" else a * b)
    if result is I and op in ("add", "sub") and args[1].kind == "const" and args[1].attr == 0:
        return args[0]
    if result is I and op == "add" and args[0].kind == "const" and args[0].attr == 0:
        return args[1]
    if result is I and op == "mul":
        for a, b in (args, args[::-1]):
            if a.kind == "const" and a.attr in (0, 1):
                return const(0) if a.attr == 0 else b
    return None


def _simplify_level(op: str, x: Expr) -> Expr | None:
    """``x`` as a float, or wrapped, where it is a quantised element, as an integer, or that less a constant: exact, since such
    elements have few bits."""
    offset = const(0)
    if op == "to_f" and x.kind == "call" and x.attr == "wrap_i32":
        x = x.args[0]
    if x.kind == "call" and x.attr == "sub" and x.args[1].kind == "const" and abs(x.args[1].attr) < 1 << 16:
        x, offset = x.args
    if x.kind != "call" or x.attr != "to_i" or x.args[0].kind != "call" or x.args[0].attr != "quantise":
        return None
    if op == "wrap_i32":
        return x if offset.attr == 0 else None
    of, scale, zero, low, high = x.args[0].args
    moved = float(offset.attr)
    if not moved:
        return x.args[0]
    if any(a.kind != "const" for a in (zero, low, high)):
        return call("sub", x.args[0], const(moved))
    return call("quantise", of, scale, *(const(a.attr - moved) for a in (zero, low, high)))


def _simplify_choice(condition: Expr, yes: Expr, no: Expr) -> Expr | None:
    if condition.kind == "call" and condition.attr == "not":
        return call("where", condition.args[0], no, yes)
    if yes.dtype is B and yes.kind == "const" and no.kind == "const":  # they differ
        return condition if yes.attr else call("not", condition)
    return None


def _simplify_not(x: Expr) -> Expr | None:
    if x.kind == "const":
        return const(not x.attr)
    if x.kind == "call" and x.attr == "not":
        return x.args[0]
    if x.kind == "call" and x.attr in ("lt", "le") and x.args[0].dtype is I:  # floats may be NaN
        return call("le" if x.attr == "lt" else "lt", *x.args[::-1])
    return None


def _choice_of_constants(args: tuple[Expr, ...]) -> int | None:
    """Which of the operands chooses between two constants, where all others are constants."""
    varying = [i for i, a in enumerate(args) if a.kind != "const"]
    if len(varying) != 1:
        return None
    x = args[varying[0]]
    is_choice = x.kind == "call" and x.attr == "where" and all(b.kind == "const" for b in x.args[1:])
    return varying[0] if is_choice else None


def rewrite(root: Expr, leaf: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild ``root`` bottom-up; ``leaf(e)`` replaces a node (its result is not descended into) or returns None."""
    done: dict[int, Expr] = {}

    def visit(e: Expr) -> Expr:
        found = done.get(id(e))
        if found is None:
            found = leaf(e)
            if found is None:
                args = tuple(visit(a) for a in e.args)
                if all(x is y for x, y in zip(args, e.args, strict=True)):
                    found = e
                elif e.kind == "call":
                    found = call(e.attr, *args)
                else:
                    found = _make(e.kind, args, e.attr, e.dtype)
            done[id(e)] = found
        return found

    return visit(root)


def walk(*roots: Expr) -> list[Expr]:
    """Every distinct node under ``roots``, operands before users."""
    order: list[Expr] = []
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        e, ready = stack.pop()
        if ready:
            order.append(e)
        elif id(e) not in seen:
            seen.add(id(e))
            stack.append((e, True))
            stack.extend((a, False) for a in reversed(e.args))
    return order
