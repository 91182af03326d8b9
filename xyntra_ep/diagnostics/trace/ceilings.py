"""How much of what the machine can do a step reaches: the least time that it could take over the time that it took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xyntra_ep.tracea.interface.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuCeilings:
    """Of one core, by precision, and of the memory, which all share. ``is_measured``: by `xyntra doctor --measure` on this
    machine, not assumed."""

    gflops: dict[str, float]
    dram_gbs: float
    cores: int
    is_measured: bool

    @classmethod
    def here(cls, cache_dir: Path | None = None) -> CpuCeilings:
        context = Context(cache_dir=cache_dir)
        caps = context.caps
        fp32 = caps.fma_gflops
        measured = {"fp32": fp32, "bf16": caps.bf16_gflops or fp32, "int8": caps.int8_gops}
        gflops = {name: rate for name, rate in measured.items() if rate}
        return cls(gflops=gflops, dram_gbs=caps.dram_gbs, cores=caps.cores, is_measured=context.has_ceilings)

    def share(self, *, ns: int, flops: int, size_bytes: int, precision: str, threads: int) -> float | None:
        """None where the ceiling is not known. Above 1: what it reads was in a cache, which is faster than memory.

        >>> ceilings = CpuCeilings(gflops={"fp32": 100.0}, dram_gbs=20.0, cores=2, is_measured=True)
        >>> ceilings.share(ns=1000, flops=100_000, size_bytes=0, precision="fp32", threads=2)
        0.5
        >>> ceilings.share(ns=1000, flops=0, size_bytes=10_000, precision="fp32", threads=1)
        0.5
        """
        if precision not in self.gflops or ns <= 0 or not (flops or size_bytes):
            return None
        least_ns = max(flops / (self.gflops[precision] * max(1, min(threads, self.cores))), size_bytes / self.dram_gbs)
        return least_ns / ns
