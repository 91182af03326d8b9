"""Which instruction sets generated code can be run with here: kernels are checked on all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from xyntra_ep.tracea.doctor.profile import profile
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa

# Machines that multiply bfloat16: by pairs (as AMD's do), by tiles (as Intel's).
BF16_PAIRS = replace(AVX512, avx512_bf16=True, avx512_bf16_convert=True, bf16_gflops=200.0)
BF16_TILES = replace(AVX512, amx_bf16=True, avx512_bf16_convert=True, bf16_gflops=1600.0)


@cache
def runnable() -> tuple[Capabilities, ...]:
    """The widest first; SCALAR runs everywhere.

    @pytest.mark.parametrize("caps", runnable(), ids=lambda c: c.isa)
    """
    widest = profile().isa
    rows = {
        Isa.AVX512: (AVX512, AVX2, SCALAR),
        Isa.AVX2: (AVX2, SCALAR),
        Isa.NEON: (NEON, SCALAR),
        Isa.SCALAR: (SCALAR,),
    }
    return rows[widest]


def need(caps: Capabilities) -> None:
    """Skip the test unless this machine, and the operating system, run kernels made for ``caps``."""
    machine = profile()
    if caps.isa not in {c.isa for c in runnable()}:
        pytest.skip(f"this machine does not have {caps.isa}")
    if (caps.avx512_bf16 or caps.avx512_bf16_convert) and "avx512_bf16" not in machine.features:
        pytest.skip("this machine does not have AVX512_BF16")
    if caps.amx_bf16 and not machine.tiles_granted:
        pytest.skip("this machine does not have matrix tiles, or does not grant them")
