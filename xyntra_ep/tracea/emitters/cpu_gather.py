"""Gathers of floats that are close together: two loads and a permutation in place of one load for each lane.

What a kernel gathers is mostly near: the neighbours in a resized row, every second element. Lanes that lie at most two vectors
behind the first one, and none behind the last one, are picked from what is between those two. Nothing beyond them is read.
"""

from __future__ import annotations

from typing import Protocol

from xyntra_ep.tracea.semantic_ir.capabilities import Isa
from xyntra_ep.tracea.semantic_ir.nodes import Type, f32, i32, i64


class Names(Protocol):
    """What of the target is needed here."""

    def type(self, kind: Type) -> str: ...


def near_gather(names: Names, isa: Isa, lanes: int) -> str:
    """Statements of a gather from ``p`` at ``i`` that return where the lanes are near; none where that is no gain."""
    if isa is not Isa.AVX512 or lanes != 16:  # of vectors of 8 the checks cost what is gained
        return ""
    wide, words, floats = (names.type(kind) for kind in (i64(lanes), i32(lanes), f32(lanes)))
    return (
        f"const {wide} r = i - i[0]; const {words} w = __builtin_convertvector(r, {words}); "
        f"const {words} o = (w & -32) | __builtin_convertvector(r >> 32, {words}); "  # 0: at most two vectors behind
        f"const int d = w[15]; const float *q = p + i[0]; "
        f"if (!__builtin_ia32_cmpd512_mask(o, ({words}){{0}}, 4, -1) && "
        f"!__builtin_ia32_cmpd512_mask(w, ({words}){{0}} + d, 6, -1)) {{ "
        "const unsigned long long k = (2ull << d) - 1; "
        f"{floats} a = __builtin_ia32_loadups512_mask(q, ({floats}){{0}}, (unsigned short)k); "
        f"const {floats} c = __builtin_ia32_loadups512_mask(q + 16, ({floats}){{0}}, (unsigned short)(k >> 16)); "
        '__asm__("vpermt2ps %2, %1, %0" : "+v"(a) : "v"(w), "v"(c)); return a; } '
    )
