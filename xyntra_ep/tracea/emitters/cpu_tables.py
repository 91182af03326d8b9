"""Lookups in tables: by the instruction for bytes where there is one, else one load for each lane.

Processors have instructions that gather. AMD's take as long as the loads, and Intel's many times as long on those of its
processors that are protected against Downfall.
"""

from __future__ import annotations

from typing import Protocol

from xyntra_ep.tracea.semantic_ir.nodes import Type, i32


class Names(Protocol):
    """What of the target is needed here."""

    def type(self, kind: Type) -> str: ...


def byte_lookup_text(names: Names, full: str, kind: Type, vectors: int) -> str:
    """The definition of a lookup in the bytes of ``vectors`` vectors of 16 words (AVX512_VBMI)."""
    t = names.type(kind)

    def half(name: str, part: int) -> str:
        operands = f'"+v"({name}) : "v"(t{2 * part}), "v"(t{2 * part + 1})'
        return f'{t} {name} = i; __asm__("vpermi2b %2, %1, %0" : {operands});'

    body = f"{half('r', 0)} "
    if vectors > 2:
        chosen = '__asm__("vpmovb2m %3, %1\\n\\tvmovdqu8 %2, %0%{%1%}" : "+v"(r), "=&Yk"(k) : "v"(h), "v"(i));'
        body += f"{half('h', 1)} unsigned long long k; {chosen} "
    return f"{t} {full}({', '.join(f'{t} t{n}' for n in range(vectors))}, {t} i) {{ {body}return r & 255; }}"


def lookup_in_text(names: Names, full: str, kind: Type) -> str:
    """The definition of a lookup in a table in memory, an element at a time."""
    t, index, element = names.type(kind), names.type(i32(kind.lanes)), names.type(kind.with_lanes(1))
    found = "table[i]"
    if kind.lanes > 1:
        found = f"({t}){{{', '.join(f'table[i[{lane}]]' for lane in range(kind.lanes))}}}"
    return f"{t} {full}(const void *at, {index} i) {{ const {element} *table = at; return {found}; }}"
