"""Floats as unsigned bytes by their range, as DynamicQuantizeLinear defines it.

scale = (high - low) / 255        of the range that holds 0 as well; 1 where that is all it holds
zero  = round(-low / scale)       from 0 to 255
q     = round(x / scale) + zero   from 0 to 255
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr

_HIGHEST = 255.0


def byte_range(low: Expr, high: Expr) -> tuple[Expr, Expr]:
    """The scale and the zero point for elements from ``low`` to ``high``."""
    nothing = E.const(0.0)
    low, high = E.call("min", low, nothing), E.call("max", high, nothing)
    width = E.call("round_f32", E.call("sub", high, low))
    usual = E.call("round_f32", E.call("div", width, E.const(_HIGHEST)))
    scale = E.call("where", E.call("eq", low, high), E.const(1.0), usual)
    zero = E.call("round_f32", E.call("neg", E.call("round_f32", E.call("div", low, scale))))
    clamped = E.call("min", E.call("max", zero, nothing), E.const(_HIGHEST))
    return scale, E.call("to_i", E.call("round", clamped))


def finite_byte_range(low: Expr, high: Expr) -> tuple[Expr, Expr]:
    """The same where one may not be finite: the scale is NaN then, as all is that follows of it, and the zero point a number."""
    width = E.call("round_f32", E.call("sub", high, low))
    is_finite = E.call("lt", width, E.const(float("inf")))
    scale, zero = byte_range(*(E.call("where", is_finite, x, E.const(0.0)) for x in (low, high)))
    return E.call("where", is_finite, scale, E.const(float("nan"))), zero


def byte_of(x: Expr, scale: Expr, zero: Expr) -> Expr:
    """The byte that stands for ``x``; 0 for NaN."""
    return E.call("to_i", E.call("quantise", x, scale, E.call("to_f", zero), E.const(0.0), E.const(_HIGHEST)))
