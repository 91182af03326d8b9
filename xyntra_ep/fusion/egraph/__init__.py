"""Algebra on expressions: rules are applied until nothing new comes, then the cheapest way to write the expression is taken.

    Expr -> EGraph -> saturate(rules) -> Extraction -> Expr

Read first: `rule.py` and the rules (`../rules`), then `graph.py`. No rule comes first: what is found does not depend on an order.
"""

from xyntra_ep.fusion.egraph.algebra import Algebra, Simplified
from xyntra_ep.fusion.egraph.rule import Rule

__all__ = ["Algebra", "Rule", "Simplified"]
