"""The same, written differently: order, grouping, common factors. Sums are multiplied out only where a number is involved."""

from __future__ import annotations

from xyntra_ep.fusion.egraph.rule import ALL_SPECIAL, FINITE, Rule, Special


def _form(
    name: str, pattern: str, replacement: str, *where: str, exact: bool = False, keeps: frozenset[Special] = ALL_SPECIAL
) -> Rule:
    return Rule(name=name, pattern=pattern, replacement=replacement, where=where, exact=exact, keeps=keeps, form=True)


RULES = [
    _form("sum.order", "a + b", "b + a", exact=True),
    _form("sum.grouping", "(a + b) + c", "a + (b + c)", "few_terms(root)"),
    _form("product.order", "a * b", "b * a", exact=True),
    _form("product.grouping", "(a * b) * c", "a * (b * c)", "few_factors(root)"),
    _form("product.one", "1 * a", "a", exact=True),
    _form("difference", "a - b", "a + -1 * b", exact=True),
    _form("difference.back", "a + -1 * b", "a - b", exact=True),
    _form("negation", "-a", "-1 * a", exact=True),
    _form("negation.back", "-1 * a", "-a", exact=True),
    _form("negation.number", "K * a", "-1 * (-K * a)", "negative(K)", exact=True),
    _form("division.number", "a / K", "a * (1 / K)", "nonzero(K)"),
    _form("division", "a / b", "a * (1 / b)"),
    _form("division.back", "a * (1 / b)", "a / b"),
    _form("factor.out", "a * (K + b)", "K * a + a * b", keeps=FINITE),
    _form("factor.in", "K * a + a * b", "a * (K + b)", keeps=FINITE),
    _form("factor.one", "a + a * b", "a * (1 + b)", keeps=FINITE),
    _form(
        "factor.numbers", "K * a + L * b", "K * (a + (L / K) * b)", "nonzero(K)", "no_multiple(a)", "no_multiple(b)"
    ),  # else each quotient of numbers would be a new number, without end
    _form("factor.numbers.back", "K * (a + b)", "K * a + K * b"),
]
