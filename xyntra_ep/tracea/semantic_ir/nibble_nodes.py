"""Integers of four bits, eight in each i32 lane: how weights of that width are read."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.nodes import Rvalue, Type, f32

NIBBLES = 8  # of a lane


@dataclass(frozen=True, slots=True)
class Nibble(Rvalue):
    """Number ``position`` of the eight signed 4-bit integers of each lane of ``words`` (i32), as f32; 0 is in the lowest bits."""

    words: Rvalue
    position: int

    @property
    def type(self) -> Type:
        return f32(self.words.type.lanes)
