"""tf32: an f32 of which matrix units take the exponent and the ten bits behind the leading one."""

from __future__ import annotations

from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.math_library import math_function
from xyntra_ep.tracea.semantic_ir.nodes import Bitcast, CallValue, Rvalue, f32, i32


def as_tf32(k: GpuBuilder, value: Rvalue) -> Rvalue:
    """``value``, an f32 or its bits, as an element of a fragment: rounded to the nearest, since matrix units only cut off, which
    would make every product smaller."""
    exact = value if value.type == f32(1) else Bitcast(f32(1), value)
    rounded = CallValue(k.function(math_function("round_tf32", 1)), (exact,))
    return k.let("rounded", Bitcast(i32(1), rounded))
