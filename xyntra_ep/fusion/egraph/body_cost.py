"""How many scalar operations an expression is: fusion and rules weigh that. Times are estimated elsewhere (`estimates/`)."""

from __future__ import annotations

from xyntra_ep.tracea.core_ir.expr import Expr, walk

_HEAVY = frozenset(
    {"exp", "log", "erf", "tanh", "sigmoid", "softplus", "gelu_erf", "gelu_tanh", "silu", "pow", "sin", "cos", "div", "quantise"}
)


def op_cost(op: str) -> int:
    """Of one operation: a transcendental one counts several."""
    return 4 if op in _HEAVY else 1


def body_cost(body: Expr) -> int:
    """Of all operations of an element."""
    return sum(op_cost(e.attr) for e in walk(body) if e.kind == "call")
