"""Recognising causal masks, windows and ends of sequences: the part of a score that need not be computed.

>>> from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const
>>> find_causal(call("where", call("le", axis(3), axis(2)), acc(), const(float("-inf"))))
CausalMask(visible=acc0, bounds=Bounds(ends=(Bound(query=i2, offset=1),), begins=()), masked=-inf, limit=None)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, call
from xyntra_ep.tracea.kernels.shared.column_bounds import Bound, Bounds, bound_of

_HUGE, _LARGEST = 2.0**100, 60  # of a score, and exponent of a power of two: far from what floats overflow at


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalMask:
    """A row sees the columns within its ``bounds``: there the score is ``visible``, elsewhere the number ``masked``.

    With a ``limit`` the number is added to what the score would be there, and the sum is no more than ``masked`` less a quarter
    of it as long as no element of q and k is larger than that.
    """

    visible: Expr
    bounds: Bounds
    masked: float
    limit: float | None = None

    @property
    def hides_surely(self) -> bool:
        """Whether what is masked has no weight, whatever the scores of other columns are."""
        return self.masked == -math.inf and self.limit is None

    def __str__(self) -> str:
        return str(self.bounds)


def find_causal(score: Expr) -> CausalMask | None:
    """The mask of ``where(column <= row + ..., x, number)``, written with < or <=, either way round. Other conditions may be
    beside it, or around it where they put the same number."""
    for seen in (True, False):
        level = where_number(score, seen)
        if level is None:
            continue
        number = level[0]
        ends: list[Bound] = []
        begins: list[Bound] = []
        hidden: list[tuple[list[Expr], bool]] = []  # conditions that stay, from the outermost on
        x = score
        while (level := where_number(x, seen) or where_number(x, not seen)) is not None and level[0] is number:
            _, condition, x, says_seen = level
            parts = operands_of(condition, "and" if says_seen else "or")
            rest = []
            for part in parts:
                bound = bound_of(part, says_seen)
                if bound is None:
                    rest.append(part)
                else:
                    (begins if bound[0] else ends).append(bound[1])
            hidden.append(([condition] if len(rest) == len(parts) else rest, says_seen))
        if ends or begins:
            for conditions, says_seen in reversed(hidden):
                x = _under(conditions, x, number, says_seen)
            bounds = Bounds(ends=tuple(dict.fromkeys(ends)), begins=tuple(dict.fromkeys(begins)))
            return CausalMask(visible=x, bounds=bounds, masked=number.attr)
    return None


def where_number(score: Expr, seen: bool) -> tuple[Expr, Expr, Expr, bool] | None:
    """(number, condition, x, ``seen``) of a choice between x and a number: x where the condition holds, or where it does not. Of
    two numbers the lower one masks."""
    if score.kind != "call" or score.attr != "where":
        return None
    condition, yes, no = score.args
    x, number = (yes, no) if seen else (no, yes)
    if number.kind != "const" or not number.attr < math.inf or (x.kind == "const" and not number.attr < x.attr):
        return None
    return number, condition, x, seen


def find_causal_sum(score: Expr, depth: int) -> CausalMask | None:
    """As ``find_causal``, where the number may also be added to a score of ``depth`` products that nothing else is known of.

    >>> from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const
    >>> hidden = call("where", call("le", axis(3), axis(2)), const(0.0), const(-1e4))
    >>> find_causal_sum(call("add", call("mul", acc(), const(0.125)), hidden), 64)
    CausalMask(visible=mul(acc0, 0.125), bounds=Bounds(ends=(Bound(query=i2, offset=1),), begins=()), masked=-10000.0, limit=16.0)
    """
    found = find_causal(score)
    terms = operands_of(score, "add")
    if found is not None or len(terms) == 1:
        return found
    for i, term in enumerate(terms):
        mask = find_causal(term)
        others = reduce(lambda a, b: call("add", a, b), terms[:i] + terms[i + 1 :])
        if mask is None or (limit := limit_of(others, mask.masked, depth)) is None:
            continue
        nothing = mask.visible.kind == "const" and mask.visible.attr == 0
        return replace(mask, visible=others if nothing else call("add", others, mask.visible), limit=limit)
    return None


def limit_of(x: Expr, masked: float, depth: int) -> float | None:
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


def operands_of(condition: Expr, name: str) -> list[Expr]:
    """Of a condition that joins others by ``name``, all of them."""
    if condition.kind != "call" or condition.attr != name:
        return [condition]
    return [e for a in condition.args for e in operands_of(a, name)]
