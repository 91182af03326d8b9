"""Scores of an attention that are a multiple of their product: the largest of either is the largest of the other, and the number
fits into the exponential's argument, so scores themselves are never computed."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.expr import Expr, acc


def multiple_of(score: Expr) -> float | None:
    """c > 0 of a score that is c times its product: its order is the product's."""
    if score is acc():
        return 1.0
    if score.kind == "call" and score.attr == "mul":
        for a, b in (score.args, score.args[::-1]):
            if a is acc() and b.kind == "const" and b.attr > 0:
                return float(b.attr)
    return None
