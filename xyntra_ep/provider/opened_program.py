"""A program of core IR by itself: planned for the processor, compiled, opened."""

from __future__ import annotations

from xyntra_ep.provider import registration
from xyntra_ep.provider.opened_island import OpenedIsland
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import compile_islands, write_plan
from xyntra_ep.tracea.interface.trial_jobs import island_of
from xyntra_ep.tracea.runtime.hashing import hash128_of


def open_program(program: Program, name: str) -> OpenedIsland:
    """Of a program without constants. Raises UnsupportedError where no kernel can be had, CompileError where one is refused."""
    context = Context(hash128=hash128_of(registration.library()))
    result = compile_islands([island_of(program, name)], context)
    for failure in result.failures:
        raise failure.error
    [entry] = result.islands
    assert entry is not None
    return OpenedIsland(write_plan("", result, context), 0, entry, ())
