"""Recognising causal masks: the part of a score that need not be computed.

>>> from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const
>>> find_causal(call("where", call("le", axis(3), axis(2)), acc(), const(float("-inf"))))
CausalMask(visible=acc0, reach=1, masked=-inf, limit=None)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, call
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT, add_affine, affine

_HUGE, _LARGEST = 2.0**100, 60  # of a score, and exponent of a power of two: far from what floats overflow at
ROW, COLUMN = 2, 3  # axes of a score: batch, head, row (of q), column (of k)


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalMask:
    """Row s sees the columns below s + ``reach``: there the score is ``visible``, elsewhere the number ``masked``.

    With a ``limit`` the number is added to what the score would be there, and the sum is no more than ``masked`` less a quarter
    of it as long as no element of q and k is larger than that.
    """

    visible: Expr
    reach: Size
    masked: float
    limit: float | None = None

    def __str__(self) -> str:
        return f"row s sees the columns below s + {self.reach}"


def find_causal(score: Expr) -> CausalMask | None:
    """The mask of ``where(column <= row + ..., x, number)``, written with < or <=, either way round. Other conditions may be
    beside it, or around it where they put the same number."""
    if score.kind != "call" or score.attr != "where":
        return None
    condition, yes, no = score.args
    for number, x, seen in ((no, yes, True), (yes, no, False)):
        if number.kind != "const" or not number.attr < math.inf:
            continue
        parts = _operands(condition, "and" if seen else "or")
        for i, part in enumerate(parts):
            if (reach := _reach(part, seen)) is not None:
                visible = _under(parts[:i] + parts[i + 1 :], x, number, seen)
                return CausalMask(visible=visible, reach=reach, masked=number.attr)
        inner = find_causal(x)
        if inner is not None and inner.masked == number.attr:
            return replace(inner, visible=_under([condition], inner.visible, number, seen))
    return None


def find_causal_sum(score: Expr, depth: int) -> CausalMask | None:
    """As ``find_causal``, where the number may also be added to a score of ``depth`` products that nothing else is known of.

    >>> from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const
    >>> hidden = call("where", call("le", axis(3), axis(2)), const(0.0), const(-1e4))
    >>> find_causal_sum(call("add", call("mul", acc(), const(0.125)), hidden), 64)
    CausalMask(visible=mul(acc0, 0.125), reach=1, masked=-10000.0, limit=16.0)
    """
    found = find_causal(score)
    terms = _operands(score, "add")
    if found is not None or len(terms) == 1:
        return found
    for i, term in enumerate(terms):
        mask = find_causal(term)
        others = reduce(lambda a, b: call("add", a, b), terms[:i] + terms[i + 1 :])
        if mask is None or (limit := _limit(others, mask.masked, depth)) is None:
            continue
        nothing = mask.visible.kind == "const" and mask.visible.attr == 0
        return replace(mask, visible=others if nothing else call("add", others, mask.visible), limit=limit)
    return None


def _limit(x: Expr, masked: float, depth: int) -> float | None:
    """The largest power of two up to which elements of q and k leave ``x`` below a quarter of what is masked."""
    most = min(abs(masked) / 4, _HUGE)
    powers = (2.0**e for e in range(_LARGEST, -1, -1))
    return next((p for p in powers if _magnitude(x, depth * p * p) <= most), None) if masked < 0 else None


def _magnitude(x: Expr, product: float) -> float:
    """What ``x`` has at most, of either sign, where its product has no more than ``product``; infinity where nothing is known."""
    if x.kind == "acc":
        return product
    if x.kind == "const":
        return abs(float(x.attr))
    if x.kind != "call":
        return math.inf
    parts = [_magnitude(a, product) for a in x.args if a.dtype is DType.F32]
    match x.attr:
        case "mul":
            return parts[0] * parts[1] if 0 not in parts else 0.0
        case "div" if x.args[1].kind == "const" and parts[1]:
            return parts[0] / parts[1]
        case "add" | "sub":
            return sum(parts)
        case "neg" | "abs" | "relu" | "min" | "max" | "where":
            return max(parts)
        case "tanh" | "sigmoid":
            return 1.0 if math.isfinite(parts[0]) else math.inf
    return math.inf


def _under(conditions: Sequence[Expr], x: Expr, number: Expr, seen: bool) -> Expr:
    """``x`` where they all say that it is ``seen``, or none that it is not."""
    for condition in conditions:
        x = call("where", condition, *((x, number) if seen else (number, x)))
    return x


def _operands(condition: Expr, name: str) -> list[Expr]:
    """Of a condition that joins others by ``name``, all of them."""
    if condition.kind != "call" or condition.attr != name:
        return [condition]
    return [e for a in condition.args for e in _operands(a, name)]


def _reach(condition: Expr, seen: bool) -> Size | None:
    """How far row 0 sees by a condition that says what is ``seen``, or what is not; None where it says anything else."""
    if condition.kind != "call" or condition.attr not in ("le", "lt"):
        return None
    left, right = (affine(a) for a in condition.args)
    if left is None or right is None:
        return None
    strict = condition.attr == "lt"
    gap = add_affine(dict(right), left, -1)
    start = gap.pop(CONSTANT, 0)
    steps = {axis: c for axis, c in gap.items() if c != 0}
    if steps == {ROW: 1, COLUMN: -1} and seen:  # visible where column <= row + start
        return start if strict else start + 1
    if steps == {ROW: -1, COLUMN: 1} and not seen:  # masked where row - start <= column
        return 1 - start if strict else -1 * start
    return None
