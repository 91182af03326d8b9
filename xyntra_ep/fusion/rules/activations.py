"""Activations that exporters write out."""

from __future__ import annotations

import math

from xyntra_ep.fusion.rules._engine import ExprRule, P, Pattern, op
from xyntra_ep.tracea.core_ir.expr import call

X = P("x")
_CUBIC: Pattern = X + X * X * X * 0.044715
_TANH_ARGUMENT: Pattern = _CUBIC * math.sqrt(2 / math.pi)

RULES = [
    ExprRule(
        name="gelu.erf",
        pattern=X * (op("erf", X / math.sqrt(2)) + 1.0) * 0.5,
        rewrite=lambda m: call("gelu_erf", m["x"]),
    ),
    ExprRule(
        name="gelu.tanh",
        pattern=X * (op("tanh", _TANH_ARGUMENT) + 1.0) * 0.5,
        rewrite=lambda m: call("gelu_tanh", m["x"]),
    ),
    ExprRule(
        name="silu.sigmoid",
        pattern=X * op("sigmoid", X),
        rewrite=lambda m: call("silu", m["x"]),
    ),
]
