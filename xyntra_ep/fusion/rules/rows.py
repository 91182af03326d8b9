"""Functions of whole rows that exporters write out: what is found to be a softmax can be part of attention."""

from __future__ import annotations

from xyntra_ep.fusion.egraph.rule import Rule, Special

RULES = [
    Rule(
        name="softmax.shifted",
        pattern="exp(x - row_max(x)) / row_sum(exp(x - row_max(x)))",
        replacement="row_softmax(x)",
        exact=True,
    ),
    Rule(
        name="row_max.scaled",
        pattern="K * row_max(x)",
        replacement="row_max(K * x)",
        where=("positive(K)",),
        exact=True,
        form=True,
    ),
    Rule(
        name="exp.log",
        pattern="exp(a - log(b))",
        replacement="exp(a) / b",
        where=("nonnegative(b)",),
        keeps=frozenset({Special.NAN}),
        form=True,
    ),
]
