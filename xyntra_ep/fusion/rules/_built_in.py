"""Our own rules, as what is asked for simpler expressions."""

from __future__ import annotations

from functools import lru_cache

from xyntra_ep.fusion.egraph import Algebra, Rule
from xyntra_ep.registry import Registry

RULES: Registry[Rule] = Registry("xyntra_ep.fusion.rules", "RULES")


@lru_cache(maxsize=2)
def built_in(strict: bool = False) -> Algebra:
    """``strict``: only those that keep zero, infinity and NaN."""
    return Algebra(RULES, strict=strict)
