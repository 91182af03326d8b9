"""Formulas as text: what rules are written in.

    x * (erf(sqrt(0.5) * x) + 1) * 0.5
    exp(x - row_max(x)) / row_sum(exp(x - row_max(x)))

    x, mask         any expression, the same wherever it is named; a bool where an operation wants one
    K, Scale        a number that is known when the model is planned: an upper-case first letter
    2, 0.5, pi, inf a number
    + - * / -x      also x**2 up to x**8, <, <=, >, >=, ==
    f(x, ...)       a scalar op (`core_ir.expr.SCALAR_OPS`), or one over each row: row_max, row_min, row_sum, row_prod,
                    row_softmax

Nothing here is executed: the text is parsed, and only the forms above are known.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import did_you_mean
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, ScalarOp
from xyntra_ep.tracea.core_ir.ops import ReduceKind

NAME, NUMBER = "name", "number"  # of `Term.op`: what is no operation
LONGEST = 2000  # characters of a formula
_DEEPEST = 64  # nested operations
_NUMBERS = {"pi": math.pi, "inf": math.inf}

ROW_KINDS = {"row_max": ReduceKind.MAX, "row_min": ReduceKind.MIN, "row_sum": ReduceKind.SUM, "row_prod": ReduceKind.PROD}
SOFTMAX = "row_softmax"


def _softmax(x: NDArray[Any]) -> NDArray[Any]:
    weight = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.asarray(weight / np.sum(weight, axis=-1, keepdims=True))


_OVER_ROWS = {
    "row_max": lambda x: np.max(x, axis=-1, keepdims=True),
    "row_min": lambda x: np.min(x, axis=-1, keepdims=True),
    "row_sum": lambda x: np.sum(x, axis=-1, keepdims=True),
    "row_prod": lambda x: np.prod(x, axis=-1, keepdims=True),
    SOFTMAX: _softmax,
}
OPERATIONS: Mapping[str, ScalarOp] = {
    **SCALAR_OPS,
    **{name: ScalarOp(name=name, args="f", result="f", reference=meaning) for name, meaning in _OVER_ROWS.items()},
}


class FormulaError(ValueError):
    """A text that is no formula, and why."""


@dataclass(frozen=True, slots=True)
class Term:
    """``op``: an operation with its ``args``, or a name, or a number."""

    op: str
    args: tuple[Term, ...] = ()
    name: str = ""
    value: float = 0.0
    dtype: DType = DType.F32

    @property
    def is_constant(self) -> bool:
        """A name that stands for a number."""
        return self.op == NAME and self.name[0].isupper()

    def walk(self) -> Iterator[Term]:
        yield self
        for a in self.args:
            yield from a.walk()

    def names(self) -> dict[str, Term]:
        return {t.name: t for t in self.walk() if t.op == NAME}


def number(value: float) -> Term:
    return Term(NUMBER, value=float(value))


def parse(text: str) -> Term:
    """The term of a formula. Raises FormulaError."""
    if len(text) > LONGEST:
        raise FormulaError(f"a formula has at most {LONGEST} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
        raise FormulaError(f"{text!r} is no formula ({getattr(error, 'msg', error)})") from None
    term = _term(tree.body, _DEEPEST)
    types: dict[str, DType] = {}
    for t in term.walk():
        if t.op == NAME and types.setdefault(t.name, t.dtype) is not t.dtype:
            raise FormulaError(f"{t.name!r} is a number and a condition")
    return term


_BINARY: Mapping[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARED: Mapping[type[ast.cmpop], tuple[str, bool]] = {  # the operation, and whether its operands change places
    ast.Lt: ("lt", False),
    ast.LtE: ("le", False),
    ast.Gt: ("lt", True),
    ast.GtE: ("le", True),
    ast.Eq: ("eq", False),
}


def _term(node: ast.expr, depth: int) -> Term:
    if not depth:
        raise FormulaError(f"operations are nested more than {_DEEPEST} times")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return number(value)
        case ast.Name(id=name):
            return number(_NUMBERS[name]) if name in _NUMBERS else Term(NAME, name=name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return operation("neg", _term(inner, depth - 1))
        case ast.BinOp(op=ast.Pow(), left=base, right=ast.Constant(value=int() as times)) if 1 <= times <= 8:
            x = result = _term(base, depth - 1)
            for _ in range(times - 1):
                result = operation("mul", result, x)
            return result
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _BINARY:
            return operation(_BINARY[type(op)], _term(left, depth - 1), _term(right, depth - 1))
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
            name, swapped = _COMPARED[type(op)]
            a, b = _term(left, depth - 1), _term(right, depth - 1)
            return operation(name, b, a) if swapped else operation(name, a, b)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
            return operation(name, *(_term(a, depth - 1) for a in args))
    raise FormulaError(f"{ast.unparse(node)!r} is nothing that a formula can have")


def operation(name: str, *args: Term) -> Term:
    """``name`` of ``args``; a number, where those are numbers. Raises FormulaError for what does not exist or fit."""
    row = OPERATIONS.get(name)
    if row is None:
        raise FormulaError(f"no operation {name!r}. {did_you_mean(name, sorted(OPERATIONS))}")
    if "i" in row.args or row.result == "i":
        raise FormulaError(f"{name} is about integers, and rules are about floats")
    if len(args) != len(row.args):
        raise FormulaError(f"{name} takes {len(row.args)} operands")
    typed = tuple(_typed(name, a, letter) for a, letter in zip(args, row.args, strict=True))
    result = DType.BOOL if row.result == "b" else DType.F32
    if result is DType.F32 and name not in _OVER_ROWS and all(a.op == NUMBER for a in typed):
        with np.errstate(all="ignore"):
            return number(float(row.reference(*(np.float64(a.value) for a in typed))))
    return Term(name, typed, dtype=result)


def _typed(name: str, a: Term, letter: str) -> Term:
    wanted = DType.BOOL if letter == "b" else DType.F32
    if a.op == NAME and not a.is_constant:
        return replace(a, dtype=wanted)
    if a.dtype is not wanted:
        raise FormulaError(f"{name} wants a {'condition' if wanted is DType.BOOL else 'number'} there")
    return a


def evaluate(term: Term, values: Mapping[str, Any], shape: tuple[int, int]) -> NDArray[Any]:
    """The elements of ``term`` over rows: ``shape`` is how many, and of how many elements; ``values`` by name broadcast to it."""
    if term.op == NAME:
        return np.broadcast_to(values[term.name], shape)
    if term.op == NUMBER:
        return np.broadcast_to(np.asarray(term.value, dtype=np.result_type(*values.values(), np.float32)), shape)
    with np.errstate(all="ignore"):
        found = OPERATIONS[term.op].reference(*(evaluate(a, values, shape) for a in term.args))
    return np.broadcast_to(found, shape)
