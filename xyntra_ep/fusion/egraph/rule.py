"""A rule: two formulas that are equal, and where.

    Rule(name="gelu.erf", pattern="x * (erf(sqrt(0.5) * x) + 1) * 0.5", replacement="gelu_erf(x)", tolerance=EXPORTED)
    Rule(name="form.division", pattern="a / K", replacement="a * (1 / K)", where=("nonzero(K)",), form=True)

A *form* only writes the same differently, so that patterns are found however an exporter ordered and grouped a formula. Results
are never written in another form for its own sake.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from xyntra_ep.errors import ConfigError, did_you_mean
from xyntra_ep.fusion.egraph.facts import MOST_OPERANDS, Facts
from xyntra_ep.fusion.egraph.formula import NAME, NUMBER, FormulaError, Term, parse

EXPORTED = 2e-4  # relative: exporters round their numbers to fp16 at worst
ARITHMETIC = frozenset({"add", "sub", "mul", "div", "neg"})  # forms turn each of these into others
ROOT = "root"  # in guards: the whole of what the pattern matched


class Special(StrEnum):
    """Values of which a rule says that both sides give the same for them."""

    ZERO = "zero"
    INFINITY = "infinity"
    NAN = "nan"


ALL_SPECIAL = frozenset(Special)
FINITE = frozenset({Special.ZERO, Special.NAN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``where``: guards, as ``nonzero(K)`` (`GUARDS`). ``exact``: no rounding differs; else sums and products are associated
    otherwise, or a function is computed as a whole. ``keeps``: see `Special`. ``tolerance``: how far off, relatively, numbers of
    the pattern may be. ``source``: the user's file and line."""

    name: str
    pattern: str
    replacement: str
    where: tuple[str, ...] = ()
    exact: bool = False
    keeps: frozenset[Special] = ALL_SPECIAL
    tolerance: float = 0.0
    form: bool = False
    source: str = ""


Guard = Callable[[Facts], bool]
GUARDS: Mapping[str, Guard] = {
    "per_row": lambda f: f.per_row,
    "nonzero": lambda f: f.constant not in (None, 0) or f.low > 0 or f.high < 0,
    "positive": lambda f: f.low > 0,
    "negative": lambda f: f.high < 0,
    "nonnegative": lambda f: f.low >= 0,
    "no_multiple": lambda f: not f.multiple,
    "few_terms": lambda f: f.terms <= MOST_OPERANDS,
    "few_factors": lambda f: f.factors <= MOST_OPERANDS,
}
_GUARD = re.compile(r"\s*(\w+)\s*\(\s*(\w+)\s*\)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A rule as it is searched for. ``needs``: operations without which it cannot match; ``arithmetic``: whether it needs any."""

    rule: Rule
    pattern: Term
    replacement: Term
    guards: tuple[tuple[str, Guard, str], ...]
    needs: frozenset[str]
    arithmetic: bool
    makes: frozenset[str]


@lru_cache(maxsize=1024)
def compiled(rule: Rule) -> Compiled:
    """Parse a rule. Raises ConfigError with the reason why it is none."""

    def refuse(what: str) -> ConfigError:
        return ConfigError(what, where=f"{rule.source}: rule {rule.name}" if rule.source else f"rule {rule.name}")

    try:
        pattern, replacement = parse(rule.pattern), parse(rule.replacement)
    except FormulaError as error:
        raise refuse(str(error)) from None
    if pattern.op in (NAME, NUMBER):
        raise refuse("a pattern is an operation")
    if pattern.dtype is not replacement.dtype:
        raise refuse("one side is a number and the other a condition")
    names = pattern.names()
    for name, t in replacement.names().items():
        if name not in names:
            raise refuse(f"{name!r} of the replacement is not in the pattern")
        if names[name].dtype is not t.dtype:
            raise refuse(f"{name!r} is a number on one side and a condition on the other")
    guards = []
    for text in rule.where:
        found = _GUARD.fullmatch(text)
        if found is None or found[1] not in GUARDS:
            hint = did_you_mean(found[1] if found else text, list(GUARDS))
            raise refuse(f"{text!r} is no guard as in 'nonzero(K)'. {hint}")
        if found[2] not in names and found[2] != ROOT:
            raise refuse(f"{found[2]!r} of a guard is not in the pattern")
        guards.append((found[1], GUARDS[found[1]], found[2]))
    if ROOT in names:
        raise refuse(f"{ROOT!r} is the name of the whole")
    ops = {t.op for t in pattern.walk()} - {NAME, NUMBER}
    return Compiled(
        rule=rule,
        pattern=pattern,
        replacement=replacement,
        guards=tuple(guards),
        needs=frozenset(ops - ARITHMETIC),
        arithmetic=bool(ops & ARITHMETIC),
        makes=frozenset(t.op for t in replacement.walk()) - {NAME, NUMBER},
    )
