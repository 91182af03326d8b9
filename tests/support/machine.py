"""Which instruction sets generated code can be run with here: kernels are checked on all of them.

It is the doctor's profile that says so, which XYNTRA_ISA narrows: a larger machine then behaves as a smaller one.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.emulated import EMULATORS
from xyntra_ep.tracea.doctor.profile import lacking, this_machine
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa

# Machines that multiply bfloat16: by pairs (as AMD's do), by tiles (as Intel's).
BF16_PAIRS = replace(AVX512, avx512_bf16=True, avx512_bf16_convert=True, bf16_gflops=200.0)
BF16_TILES = replace(AVX512, amx_bf16=True, avx512_bf16_convert=True, bf16_gflops=1600.0)
VNNI = replace(AVX512, vnni=True)
VBMI = replace(AVX512, avx512_vbmi=True)
AVX_VNNI = replace(AVX2, vnni=True)
INT8_TILES = replace(VNNI, amx_int8=True, int8_gops=3200.0)


def widest() -> Capabilities:
    """For tests of numbers that are for no instruction set in particular."""
    return {Isa.AVX512: AVX512, Isa.AVX2: AVX2, Isa.NEON: NEON, Isa.SCALAR: SCALAR}[this_machine().isa]


def need(caps: Capabilities) -> None:
    """Skip the test unless kernels made for ``caps`` can be run: by this machine and its operating system, or emulated."""
    if missing := lacking(this_machine(), caps):
        if (emulator := EMULATORS.get(caps.isa)) is None:
            pytest.skip(f"this machine does not have {missing}")
        if emulator.missing:
            pytest.skip(f"this machine does not have {missing}, nor {emulator.missing} to emulate it")


def runnable(*rows: Capabilities) -> list[Capabilities]:
    """Those of ``rows`` that run here; the test is skipped when none does."""
    found = [caps for caps in rows if not lacking(this_machine(), caps)]
    if not found:
        need(rows[-1])
    return found


def widest_vectors() -> Capabilities:
    """For tests of what is only there with vectors."""
    return runnable(AVX512, NEON, AVX2)[0]


WIDEST = widest()
