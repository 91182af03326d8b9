"""Which instruction sets generated code can be run with here: kernels are checked on all of them."""

from __future__ import annotations

from functools import cache

from xyntra_ep.tracea.doctor.profile import profile
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa


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
