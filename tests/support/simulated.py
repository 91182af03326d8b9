"""Kernels for instructions that the processor does not have, carried out with others in their place.

Matrix tiles (AMX) become functions in C (simulated_tiles.c) that do what Intel's manual says of the instruction, and stop where
it would raise an exception. AVX_VNNI's products become those of AVX-512 on vectors of the same width, which are another encoding
of the same. The rest of a kernel is compiled as it is, so the processor must have that.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from xyntra_ep.tracea.doctor.profile import Machine, lacking
from xyntra_ep.tracea.runtime.kernel_source import Definition, KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa

_VEX = "%{vex%} "
_TILES = Path(__file__).with_name("simulated_tiles.c").read_text(encoding="utf-8")
_MEMORY = r' :: "r"\((?P<at>.*)\), "r"\((?P<step>.*)\) : "memory"\);'
_CALLS = (
    (r'__asm__ volatile\("ldtilecfg %0" :: "m"\(t\)\);', r"xy_tile_configure(&t);"),
    (r'__asm__ volatile\("tilerelease" ::\);', r"xy_tile_release();"),
    (r'__asm__ volatile\("tilezero %%tmm(\d)" ::\);', r"xy_tile_zero(\1);"),
    (r'__asm__ volatile\("tileloadd \(%0,%1,1\), %%tmm(?P<tile>\d)"' + _MEMORY, r"xy_tile_load(\g<tile>, \g<at>, \g<step>);"),
    (r'__asm__ volatile\("tilestored %%tmm(?P<tile>\d), \(%0,%1,1\)"' + _MEMORY, r"xy_tile_store(\g<tile>, \g<at>, \g<step>);"),
    # In AT&T's notation: b, a, c.
    (r'__asm__ volatile\("(tdp\w+) %%tmm(\d), %%tmm(\d), %%tmm(\d)" ::\);', r"xy_\1(\4, \3, \2);"),
)


def lacking_even_so(machine: Machine, caps: Capabilities) -> str:
    """As `lacking`, of what is needed when what can be simulated is."""
    rest = replace(caps, amx_bf16=False, amx_int8=False)
    if caps.isa is Isa.AVX2 and caps.vnni and "avx512_vnni" in machine.features and machine.isa is Isa.AVX512:
        rest = replace(rest, vnni=False)
    return lacking(machine, rest)


def simulated(source: KernelSource) -> KernelSource:
    """The same kernel without those instructions."""
    definitions = tuple(replace(d, text=_replaced(d.text), body=_replaced(d.body)) for d in source.definitions)
    if any("xy_tile" in d.text for d in definitions):
        definitions = (Definition(text=_TILES, name="xy_simulated_tiles", is_type=True), *definitions)
    return replace(source, definitions=definitions)


def _replaced(text: str) -> str:
    for pattern, call in _CALLS:
        text = re.sub(pattern, call, text)
    assert "%%tmm" not in text, "a tile instruction that is not known here"
    return text.replace(_VEX, "")
