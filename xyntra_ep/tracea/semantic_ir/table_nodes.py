"""Tables of constants that lanes are looked up in."""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.nodes import Elem, Rvalue, Type

ENTRIES = 256  # of the longest table


@dataclass(frozen=True, slots=True)
class Lookup(Rvalue):
    """``table[index]`` of each i32 lane of ``index``, which must be at least 0 and below the number of entries.

    ``elem``: F32, or I32 for entries that are integers.
    """

    table: tuple[float, ...]
    index: Rvalue
    elem: Elem

    @property
    def type(self) -> Type:
        return Type(self.elem, self.index.type.lanes)
