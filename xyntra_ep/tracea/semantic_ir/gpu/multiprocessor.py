"""What a multiprocessor of a GPU has, and how many blocks of a kernel it holds at a time.

The formula is that of NVIDIA's CUDA Occupancy Calculator (CUDA_Occupancy_Calculator.xls, and `cuda_occupancy.h` of the toolkit):
registers are handed out to warps in units, shared memory to blocks in units on top of what the system reserves, and the smallest
of the limits by warps, blocks, registers and shared memory counts. The numbers of each architecture are from the CUDA C++
Programming Guide, "Technical Specifications per Compute Capability".

AMD's GPUs fit the same formula. A multiprocessor is a compute unit there, or a pair of them (a WGP) from RDNA on; its schedulers
are four SIMDs, each with its own vector registers, which are handed out to waves in units; shared memory is LDS, of which nothing
is reserved. Blocks of several waves need a barrier each, of which there are few. The numbers are those of the ISA documents
("AMD Instinct MI200", "MI300", "RDNA3 Instruction Set Architecture") and of LLVM's "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

WARP = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """``blocks`` at a time on one multiprocessor, which are ``warps`` of ``of_warps``; ``limit``: warps, blocks, registers or
    shared memory, whichever is short first."""

    blocks: int
    warps: int
    of_warps: int
    limit: str

    @property
    def fraction(self) -> float:
        return self.warps / self.of_warps


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """What one multiprocessor has. Registers are handed out to a warp of ``lanes`` threads ``register_unit`` at a time;
    ``schedulers`` share them out, so that only multiples of so many warps find their registers. ``barriers``: blocks of more than
    one warp that it holds at most, where these are fewer."""

    warps: int
    blocks: int
    shared_bytes: int
    block_shared_bytes: int  # of one block at most, when it asks for it
    registers: int = 65536
    thread_registers: int = 255
    register_unit: int = 256
    schedulers: int = 4
    shared_unit: int = 128
    reserved_bytes: int = 1024  # of each block's shared memory, for the system
    lanes: int = WARP
    barriers: int | None = None

    def occupancy(self, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
        """Of blocks of ``threads`` threads with ``registers`` each and ``shared_bytes`` together."""
        warps = -(-threads // self.lanes)
        limits = {
            "warps": self.warps // warps,
            "blocks": self.blocks if self.barriers is None or warps == 1 else self.barriers,
            "registers": self._blocks_by_registers(warps, registers),
            "shared memory": self._blocks_by_shared(shared_bytes),
        }
        limit = min(limits, key=lambda name: limits[name])
        return Occupancy(blocks=limits[limit], warps=limits[limit] * warps, of_warps=self.warps, limit=limit)

    def _blocks_by_registers(self, warps: int, registers: int) -> int:
        if registers > self.thread_registers:
            return 0
        of_warp = _up(max(1, registers) * self.lanes, self.register_unit)
        # Each scheduler has its part of the registers, and warps take them from one part only.
        return self.registers // self.schedulers // of_warp * self.schedulers // warps

    def _blocks_by_shared(self, shared_bytes: int) -> int:
        if shared_bytes > self.block_shared_bytes:
            return 0
        return self.shared_bytes // _up(max(1, shared_bytes + self.reserved_bytes), self.shared_unit)


# A thread's registers are those of both kinds, vector and accumulator, of one file.
_CDNA = Multiprocessor(
    warps=32,
    blocks=32,
    barriers=16,
    shared_bytes=64 << 10,
    block_shared_bytes=64 << 10,
    registers=4 * 512 * 64,
    thread_registers=512,
    register_unit=8 * 64,
    shared_unit=512,
    reserved_bytes=0,
    lanes=64,
)
MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 << 10, block_shared_bytes=163 << 10),
    "sm_86": Multiprocessor(warps=48, blocks=16, shared_bytes=100 << 10, block_shared_bytes=99 << 10),
    "sm_89": Multiprocessor(warps=48, blocks=24, shared_bytes=100 << 10, block_shared_bytes=99 << 10),
    "sm_90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10, block_shared_bytes=227 << 10),
    "gfx90a": _CDNA,
    "gfx942": _CDNA,
    "gfx1100": Multiprocessor(
        warps=64,
        blocks=64,
        barriers=32,
        shared_bytes=128 << 10,
        block_shared_bytes=64 << 10,
        registers=4 * 1536 * 32,
        thread_registers=256,
        register_unit=24 * 32,
        shared_unit=1024,
        reserved_bytes=0,
    ),
}


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
