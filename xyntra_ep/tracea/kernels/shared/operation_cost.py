"""What evaluating an expression costs, roughly, in cycles of a vector of 16."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.semantic_ir.math_library import has_math_function
from xyntra_ep.tracea.semantic_ir.nodes import LIBM

_VECTOR_CYCLES = {"div": 8.0, "sqrt": 10.0, "mod": 60.0, "fmod": 300.0, "pow": 600.0}


def operation_cycles(e: Expr) -> float:
    """Cycles of one vector of 16 for one node."""
    if e.kind != "call":
        return 0.0
    if has_math_function(e.attr):
        return 8.0
    if e.attr in LIBM:
        return 300.0
    return _VECTOR_CYCLES.get(e.attr, 1.0)


def expression_cycles(root: Expr) -> float:
    """Cycles of one vector of 16 for everything below ``root``."""
    return sum(map(operation_cycles, walk(root)))
