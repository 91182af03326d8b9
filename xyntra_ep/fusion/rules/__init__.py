"""Algebraic rules on fused expressions; see `_engine`."""

from xyntra_ep.fusion.rules._engine import ExprRule, simplify

__all__ = ["ExprRule", "simplify"]
