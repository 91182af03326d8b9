"""Where an element of an operand is."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.semantic_ir.builder import KernelBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Rvalue


def address(k: KernelBuilder, operand: Operand, at: Sequence[Rvalue]) -> Rvalue:
    """The element at coordinates ``at`` of the first axes, the others 0: its distance from the start of the buffer."""
    place: Rvalue = k.param(operand.offset)
    for coordinate, stride in zip(at, operand.strides, strict=False):
        place = place + coordinate * k.param(stride)
    return place
