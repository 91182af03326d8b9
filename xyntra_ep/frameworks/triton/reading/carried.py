"""What a loop carries from one iteration to the next, seen by one iteration on marks.

p += 4                ->  p + 4 * iteration
acc += x              ->  a sum of x over the iterations
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from xyntra_ep.frameworks.triton.reading.functions import alike
from xyntra_ep.frameworks.triton.reading.values import Block, Place, Pointer, joined, renamed, unified
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind


def is_made_anew(mark: Any, after: Any) -> bool:
    """Whether each iteration gives a name another value, whatever it had before."""
    if isinstance(mark, Pointer) and isinstance(after, Pointer):
        mark, after = mark.at, after.at
    return isinstance(mark, Block) and isinstance(after, Block) and mark.expr not in E.walk(after.expr)


def step_of(place: Place, before: Any, mark: Any, after: Any) -> Expr | None:
    """What a number or pointer grows by in each iteration; 0 for what stays as it is, None for what is summed up."""
    if isinstance(before, Pointer) and isinstance(after, Pointer):
        before, mark, after = before.at, mark.at, after.at
    if not isinstance(before, Block) or not isinstance(after, Block):
        place.refuse("a name that is a number before the loop and something else in it")
    if after.expr is mark.expr:
        return E.const(0) if mark.expr.dtype is DType.I64 else None
    if mark.expr.dtype is not DType.I64:
        return None
    rest = _taken_off(after.expr, mark.expr)
    if rest is None or any(x.kind == "axis" for x in E.walk(rest)) or rest.kind != "const":
        place.refuse("a number that is carried from iteration to iteration and grows by no constant")
    return rest


def accumulated(place: Place, name: str, before: Any, mark: Any, after: Any, number: int) -> Block:
    """What a sum or maximum is behind the loop."""
    if after.expr is mark.expr:
        return before  # type: ignore[no-any-return]  # a Block
    for op, kind in (("add", ReduceKind.SUM), ("max", ReduceKind.MAX), ("min", ReduceKind.MIN)):
        terms = _terms(after.expr, op)
        others = [t for t in terms if t is not mark.expr]
        if len(terms) == len(others) + 1 and others and all(mark.expr not in E.walk(t) for t in others):
            body = others[0]
            for t in others[1:]:
                body = E.call(op, body, t)
            own = place.kernel.axis(place.kernel.axes[number])  # the loop may have other sums
            total = joined(place.kernel, kind, renamed(place.kernel, body, {number: own}), frozenset([own]), place.line)
            summed = Block(expr=total, shape=after.shape)
            if before.expr is _neutral(kind):
                return summed
            exprs, shape = unified(place, place.kernel, [before, summed])
            return Block(expr=E.call(op, *alike(exprs)), shape=shape)
    place.refuse(f"{name} is carried from iteration to iteration, and is no sum, maximum or minimum")


def as_value(value: Any) -> Any:
    return value if isinstance(value, Block | Pointer) or not isinstance(value, int | float) else Block(expr=E.const(value))


def marked(name: str, value: Any) -> Any:
    """Something unknown of the same kind."""
    if isinstance(value, Pointer):
        return replace(value, at=replace(value.at, expr=E.node("acc", (), f"carried {name}", DType.I64)))
    if isinstance(value, Block):
        return replace(value, expr=E.node("acc", (), f"carried {name}", value.expr.dtype))
    return value


def moved(value: Any, times: Expr, step: Expr) -> Any:
    if isinstance(value, Pointer):
        return replace(value, at=moved(value.at, times, step))
    return replace(value, expr=E.call("add", value.expr, E.call("mul", times, step)))


def _terms(e: Expr, op: str) -> list[Expr]:
    return [t for a in e.args for t in _terms(a, op)] if e.kind == "call" and e.attr == op else [e]


def _taken_off(e: Expr, mark: Expr) -> Expr | None:
    """``e`` - ``mark``, where it is a sum with the mark in it."""
    if e.kind == "call" and e.attr == "sub" and e.args[0] is mark:
        return E.call("sub", E.const(0), e.args[1])
    terms = _terms(e, "add")
    others = [t for t in terms if t is not mark]
    if len(others) + 1 != len(terms):
        return None
    total: Expr = E.const(0)
    for t in others:
        total = E.call("add", total, t)
    return total


def _neutral(kind: ReduceKind) -> Expr:
    return {ReduceKind.SUM: E.const(0.0), ReduceKind.MAX: E.const(-np.inf), ReduceKind.MIN: E.const(np.inf)}[kind]
