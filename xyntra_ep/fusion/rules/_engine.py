"""Declarative rewrites of scalar expressions: a pattern that reads like the formula, guards that say why not, a replacement.

    ExprRule(name="gelu.erf", pattern=P("x") * 0.5 * (P.erf(P("x") / SQRT2) + 1.0), rewrite=lambda m: call("gelu_erf", m["x"]))

Rules act after fusion, on whole epilogues, so it does not matter how an exporter ordered or split the nodes. Sums and products
match in any order and grouping: a pattern's operands are searched among the flattened terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from xyntra_ep.registry import Registry
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr

Match = Mapping[str, Expr]
Guard = Callable[[Match], str | None]
COMMUTATIVE = frozenset({"add", "mul", "max", "min"})


@dataclass(frozen=True, slots=True)
class Pattern:
    """``op`` "var": any expression, the same everywhere it is named; "const": a number close to ``value``; else a scalar op."""

    op: str
    args: tuple[Pattern, ...] = ()
    name: str = ""
    value: float = 0.0

    def __add__(self, other: Pattern | float) -> Pattern:
        return Pattern("add", (self, as_pattern(other)))

    def __mul__(self, other: Pattern | float) -> Pattern:
        return Pattern("mul", (self, as_pattern(other)))

    def __truediv__(self, other: Pattern | float) -> Pattern:
        return Pattern("div", (self, as_pattern(other)))

    def __sub__(self, other: Pattern | float) -> Pattern:
        return Pattern("sub", (self, as_pattern(other)))


def as_pattern(value: Pattern | float) -> Pattern:
    return value if isinstance(value, Pattern) else Pattern("const", value=float(value))


def P(name: str) -> Pattern:
    """Any expression, called ``name``."""
    return Pattern("var", name=name)


def op(name: str, *args: Pattern | float) -> Pattern:
    """A scalar op of `core_ir.expr`."""
    return Pattern(name, tuple(as_pattern(a) for a in args))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExprRule:
    """``where``: guards, each None or the reason why the match is refused."""

    name: str
    pattern: Pattern
    rewrite: Callable[[Match], Expr]
    where: Sequence[Guard] = ()


RULES: Registry[ExprRule] = Registry("xyntra_ep.fusion.rules", "RULES")
DEEPEST = 6  # levels of nested sums and products that are searched: written-out activations have three
ORDER = ("gelu", "silu", "hard_swish")  # families in the order in which they are tried


@lru_cache(maxsize=1)
def _ordered() -> tuple[ExprRule, ...]:
    return tuple(sorted(RULES, key=lambda r: (ORDER.index(r.name.split(".")[0]), r.name)))


def simplify(root: Expr) -> Expr:
    """Apply every rule bottom-up until none matches."""
    kinds = {e.attr for e in E.walk(root) if e.kind == "call"}
    if not kinds & _anchors():
        return root

    done: dict[int, Expr] = {}
    for e in E.walk(root):
        args = tuple(done[id(a)] for a in e.args)
        new = e
        if e.kind == "call":
            new = E.call(e.attr, *args)
            for rule in _ordered():
                found = match(rule.pattern, new)
                if found is not None and all(guard(found) is None for guard in rule.where):
                    new = rule.rewrite(found)
                    break
        elif any(x is not y for x, y in zip(args, e.args, strict=True)):
            new = E.rewrite(e, lambda x, e=e: None if x is e else done.get(id(x)))  # type: ignore[misc]  # default binds e
        done[id(e)] = new
    return done[id(root)]


@lru_cache(maxsize=1)
def _anchors() -> frozenset[str]:
    """Ops that a rule's pattern cannot do without: an expression with none of them is left alone at once."""
    return frozenset({"erf", "tanh", "sigmoid", "exp"})


def match(pattern: Pattern, e: Expr) -> dict[str, Expr] | None:
    """The bindings under which ``pattern`` equals ``e``, or None."""
    bound: dict[str, Expr] = {}
    return bound if _match(pattern, e, bound) else None


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=2e-4, abs_tol=1e-12)  # exporters round their constants to fp16 at worst


def _match(p: Pattern, e: Expr, bound: dict[str, Expr]) -> bool:
    if p.op == "var":
        return bound.setdefault(p.name, e) is e
    if p.op == "const":
        return e.kind == "const" and isinstance(e.attr, float) and _close(e.attr, p.value)
    if p.op in ("mul", "div") and e.kind == "call" and e.attr in ("mul", "div"):
        return _match_product(p, e, bound)
    if e.kind != "call" or e.attr != p.op:
        return False
    if p.op in COMMUTATIVE:
        patterns = _flatten_pattern(p, p.op)
        return any(_match_terms(patterns, terms, bound) for terms in _sums(e, p.op, len(patterns)))
    return _match_in_order(p.args, e.args, bound)


def _match_in_order(patterns: Sequence[Pattern], args: Sequence[Expr], bound: dict[str, Expr]) -> bool:
    return len(patterns) == len(args) and all(_match(p, a, bound) for p, a in zip(patterns, args, strict=True))


def _sums(e: Expr, name: str, most: int, depth: int = DEEPEST) -> Iterator[list[Expr]]:
    """The ways to read nested ``name`` as at most ``most`` operands, whole first: x may itself be a sum in x + x*x*x."""
    yield [e]
    if e.kind == "call" and e.attr == name and most > 1 and depth:
        for left in _sums(e.args[0], name, most - 1, depth - 1):
            for right in _sums(e.args[1], name, most - len(left), depth - 1):
                yield left + right


def _flatten_pattern(p: Pattern, name: str) -> list[Pattern]:
    return [t for a in p.args for t in _flatten_pattern(a, name)] if p.op == name else [p]


def _match_terms(patterns: list[Pattern], terms: list[Expr], bound: dict[str, Expr]) -> bool:
    """Every pattern on a different term, none left over; variables go last, when they are the least free."""
    if len(patterns) != len(terms):
        return False
    if not patterns:
        return True
    patterns = sorted(patterns, key=lambda p: p.op == "var")
    for i, term in enumerate(terms):
        trial = dict(bound)
        if _match(patterns[0], term, trial) and _match_terms(patterns[1:], terms[:i] + terms[i + 1 :], trial):
            bound.clear()
            bound.update(trial)
            return True
    return False


def _factors(e: Expr, most: int, depth: int = DEEPEST) -> Iterator[tuple[list[Expr], float]]:
    """The ways to read ``e`` as at most ``most`` factors and one constant, whole first; a division by a constant is a
    multiplication."""
    if e.kind == "const" and isinstance(e.attr, float):
        yield [], e.attr
        return
    if most:
        yield [e], 1.0
    if e.kind != "call" or not depth:
        return
    if e.attr == "mul":
        for left, x in _factors(e.args[0], most, depth - 1):
            for right, y in _factors(e.args[1], most - len(left), depth - 1):
                yield left + right, x * y
    elif e.attr == "div" and e.args[1].kind == "const" and e.args[1].attr:
        for left, x in _factors(e.args[0], most, depth - 1):
            yield left, x / e.args[1].attr


def _pattern_factors(p: Pattern) -> tuple[list[Pattern], float]:
    if p.op == "const":
        return [], p.value
    if p.op == "mul":
        (a, x), (b, y) = _pattern_factors(p.args[0]), _pattern_factors(p.args[1])
        return a + b, x * y
    if p.op == "div" and p.args[1].op == "const":
        a, x = _pattern_factors(p.args[0])
        return a, x / p.args[1].value
    return [p], 1.0


def _match_product(p: Pattern, e: Expr, bound: dict[str, Expr]) -> bool:
    patterns, want = _pattern_factors(p)
    if e.attr == "div" and not (e.args[1].kind == "const" and e.args[1].attr):  # a true division
        return p.op == "div" and _match_in_order(p.args, e.args, bound)
    if patterns == [p]:  # a true division cannot be a product; asking its factors would ask the same question again
        return False
    return any(_close(want, have) and _match_terms(patterns, found, bound) for found, have in _factors(e, len(patterns)))
