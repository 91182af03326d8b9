"""How many blocks of a compiled kernel a multiprocessor holds at a time, and what limits the number."""

from __future__ import annotations

from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import MULTIPROCESSORS, Occupancy


def occupancy(architecture: str, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """Of blocks of ``threads`` threads with ``registers`` each and ``shared_bytes`` together.

    >>> occupancy("sm_80", threads=256, registers=32, shared_bytes=0).fraction
    1.0
    >>> occupancy("sm_80", threads=256, registers=116, shared_bytes=32 << 10)
    Occupancy(blocks=2, warps=16, of_warps=64, limit='registers')
    """
    unit = MULTIPROCESSORS.get(architecture) or MULTIPROCESSORS[architecture.removesuffix("a")]
    return unit.occupancy(threads=threads, registers=registers, shared_bytes=shared_bytes)
