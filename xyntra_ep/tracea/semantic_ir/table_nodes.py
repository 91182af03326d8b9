"""Tables that lanes are looked up in: of literals, in memory, in vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xyntra_ep.tracea.semantic_ir.nodes import Elem, Pointer, Rvalue, Type, i32

ENTRIES = 256  # of the longest table
HALF = 128  # bytes that the instruction finds one in, in two vectors


@dataclass(frozen=True, slots=True)
class Lookup(Rvalue):
    """``table[index]`` of each i32 lane of ``index``, which must be at least 0 and below the number of entries.

    ``elem``: F32, or I32 for entries that are integers. Before a kernel is printed, `lifted_constants` makes one of the others of
    it.
    """

    table: tuple[float, ...]
    index: Rvalue
    elem: Elem

    @property
    def type(self) -> Type:
        return Type(self.elem, self.index.type.lanes)


@dataclass(frozen=True, slots=True)
class LookupIn(Rvalue):
    """The same in a table in memory, whose entries of 32 bits begin at ``pointer`` + ``first``."""

    pointer: Pointer
    first: Rvalue
    index: Rvalue
    elem: Elem

    @property
    def type(self) -> Type:
        return Type(self.elem, self.index.type.lanes)


@dataclass(frozen=True, slots=True)
class ByteLookup(Rvalue):
    """Byte ``index`` of each i32 lane in a table that lies in two or four vectors of 16 words (AVX512_VBMI)."""

    table: tuple[Rvalue, ...]
    index: Rvalue

    @property
    def type(self) -> Type:
        return i32(self.index.type.lanes)


def as_bytes(values: Sequence[float], elem: Elem) -> tuple[int, list[float]] | None:
    """(an integer, what to add it to) for entries that are integers near each other, filled up to what an instruction takes."""
    if elem is not Elem.I32 or max(values) - min(values) > 255:
        return None
    low = int(min(values)) if min(values) < 0 or max(values) > 255 else 0
    return low, [value - low for value in values] + [0.0] * (-len(values) % HALF)
