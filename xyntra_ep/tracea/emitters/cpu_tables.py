"""Lookups in tables of constants: by the instruction for bytes where there is one, else one load for each lane.

Processors have instructions that gather. AMD's take as long as the loads, and Intel's many times as long on those of its
processors that are protected against Downfall.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.nodes import Elem, Type, i32

_HALF = 128  # bytes that the instruction finds one in


class Names(Protocol):
    """What of the target is needed here."""

    def type(self, kind: Type) -> str: ...
    def storage(self, dtype: DType) -> str: ...


def table_text(names: Names, name: str, literals: Sequence[str], dtype: DType) -> str:
    """The definition of a table."""
    entries = ", ".join(literals)
    return f"static const {names.storage(dtype)} {name}[{len(literals)}] __attribute__((aligned(64))) = {{{entries}}};"


def lookup_text(names: Names, full: str, kind: Type, table: str) -> str:
    """The definition of a lookup, an element at a time."""
    t, index = names.type(kind), names.type(i32(kind.lanes))
    found = f"{table}[i]"
    if kind.lanes > 1:
        found = f"({t}){{{', '.join(f'{table}[i[{lane}]]' for lane in range(kind.lanes))}}}"
    return f"{t} {full}({index} i) {{ return {found}; }}"


def as_bytes(values: Sequence[float], elem: Elem) -> tuple[int, list[float]] | None:
    """(an integer, what to add it to) for entries that are integers near each other, filled up to what an instruction takes."""
    if elem is not Elem.I32 or max(values) - min(values) > 255:
        return None
    low = int(min(values)) if min(values) < 0 or max(values) > 255 else 0
    return low, [value - low for value in values] + [0.0] * (-len(values) % _HALF)


def byte_lookup_text(names: Names, full: str, kind: Type, table: str, size: int, low: int) -> str:
    """The definition of a lookup in ``size`` bytes for vectors of 16 (AVX512_VBMI)."""
    t = names.type(kind)

    def half(name: str, part: int) -> str:
        operands = f'"+v"({name}) : "v"(t[{2 * part}]), "v"(t[{2 * part + 1}])'
        return f'{t} {name} = i; __asm__("vpermi2b %2, %1, %0" : {operands});'

    body = f"const {t} *t = (const {t} *){table}; {half('r', 0)} "
    if size > _HALF:
        chosen = '__asm__("vpmovb2m %3, %1\\n\\tvmovdqu8 %2, %0%{%1%}" : "+v"(r), "=&Yk"(k) : "v"(h), "v"(i));'
        body += f"{half('h', 1)} unsigned long long k; {chosen} "
    return f"{t} {full}({t} i) {{ {body}return (r & 255){f' + {low}' if low else ''}; }}"
