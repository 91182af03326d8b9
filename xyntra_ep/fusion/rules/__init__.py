"""Algebraic rules on scalar expressions, as GELU written out becomes one function: rows of `RULES`, in a file for each family.

`schedule.py` simplifies each fused expression with them. Read first: `_engine.py`, then `activations.py`.
"""

from xyntra_ep.fusion.rules._engine import ExprRule, simplify

__all__ = ["ExprRule", "simplify"]
