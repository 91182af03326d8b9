"""Whether the two sides of a rule are equal: both are computed by the float64 interpreter, on numbers that are drawn.

Ordinary numbers first: both sides agree to `CLOSE`, where both are finite (bit for bit in float32, if the rule says ``exact``).
Then those that the rule claims to keep: each name becomes each of them, beside ordinary ones for the others, and the same comes
out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.fusion.egraph.formula import Term, evaluate
from xyntra_ep.fusion.egraph.rule import ROOT, Compiled, Rule, Special, compiled
from xyntra_ep.tracea.core_ir.dtypes import DType

CLOSE = 1e-9  # of what float64 rounds; numbers in formulas are exact
_SHAPE = (32, 7)
_SCALES = (0.3, 3.0, 20.0)
_SPECIAL: Mapping[Special, tuple[float, ...]] = {
    Special.ZERO: (0.0, -0.0),
    Special.INFINITY: (np.inf, -np.inf),
    Special.NAN: (np.nan,),
}
Values = dict[str, NDArray[Any]]


def disagreement(rule: Rule, seed: int = 0) -> str:
    """Where the sides of ``rule`` differ, as a sentence; "" where they do not. Raises ConfigError for what is no rule."""
    each = compiled(rule)
    with np.errstate(all="ignore"):
        return _disagreement(each, np.random.default_rng(seed))


def _disagreement(each: Compiled, rng: np.random.Generator) -> str:
    rule = each.rule
    compared = False
    for scale in _SCALES:
        for values in (_drawn(each, rng, scale) for _ in range(4)):
            left, right = _sides(each, values)
            both = np.isfinite(left) & np.isfinite(right)
            compared = compared or bool(both.any())
            near = np.abs(left - right) <= CLOSE * (1 + np.abs(left) + np.abs(right))
            if not near[both].all():
                return _told(each, values, left, right, both & ~near)
            if rule.exact and each.pattern.dtype is DType.F32:
                single = {name: v.astype(np.float32) for name, v in values.items()}
                left, right = (side.astype(np.float32) for side in _sides(each, single))
                same = (left == right) | (np.isnan(left) & np.isnan(right))
                if not same.all():
                    return f"exact, but float32 rounds differently: {_told(each, single, left, right, ~same)}"
    if not compared:
        return "no numbers were found for which both sides are finite"
    for values in _with_special(each, rng):
        left, right = _sides(each, values)
        same = (np.abs(left - right) <= CLOSE * (1 + np.abs(left))) | (left == right) | (np.isnan(left) & np.isnan(right))
        if not same.all():
            return _told(each, values, left, right, ~same)
    return ""


def _sides(each: Compiled, values: Values) -> tuple[NDArray[Any], NDArray[Any]]:
    left, right = (np.asarray(evaluate(t, values, _SHAPE)) for t in (each.pattern, each.replacement))
    return left.astype(np.float64), right.astype(np.float64)


def _drawn(each: Compiled, rng: np.random.Generator, scale: float) -> Values:
    """A value for each name that its guards allow."""
    return {name: _allowed(each, name, t, rng.standard_normal(_SHAPE) * scale) for name, t in each.pattern.names().items()}


def _allowed(each: Compiled, name: str, t: Term, x: NDArray[Any]) -> NDArray[Any]:
    guards = {guard for guard, _, of in each.guards if of == name}
    if t.dtype is DType.BOOL:
        return np.asarray(x > 0)
    if t.is_constant:
        x = x[:1, :1]
    elif "per_row" in guards:
        x = x[:, :1]
    if guards & {"positive", "nonnegative"}:
        x = np.abs(x)
    if "negative" in guards:
        x = -np.abs(x)
    return x + np.copysign(0.01, x) if guards & {"positive", "negative", "nonzero"} else x


def _with_special(each: Compiled, rng: np.random.Generator) -> Iterator[Values]:
    """Each combination of special and ordinary values for all names that are no numbers."""
    special = [v for kind in sorted(each.rule.keeps) for v in _SPECIAL[kind]]
    names = [name for name, t in each.pattern.names().items() if t.dtype is DType.F32 and not t.is_constant]
    for chosen in product([None, *special], repeat=min(len(names), 3)):
        values = _drawn(each, rng, 1.0)
        for name, value in zip(names, chosen, strict=False):
            if value is not None and _fits(each, name, value):
                values[name] = np.array(values[name])
                values[name][:, : max(1, values[name].shape[1] // 2)] = value
        yield values


def _fits(each: Compiled, name: str, value: float) -> bool:
    """Whether a guard lets ``value`` through: bounds are of what is no NaN."""
    guards = {guard for guard, _, of in each.guards if of in (name, ROOT)}
    if np.isnan(value):
        return True
    refused = {"positive": value <= 0, "negative": value >= 0, "nonnegative": value < 0, "nonzero": value == 0}
    return not any(refused.get(guard, False) for guard in guards)


def _told(each: Compiled, values: Values, left: NDArray[Any], right: NDArray[Any], where: NDArray[np.bool_]) -> str:
    at = tuple(int(i) for i in np.argwhere(where)[0])
    shown = ", ".join(f"{name} = {np.broadcast_to(v, _SHAPE)[at]:.6g}" for name, v in sorted(values.items()))
    return f"for {shown} the pattern is {left[at]:.9g} and the replacement {right[at]:.9g}"
