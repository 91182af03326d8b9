"""What a multiprocessor of an NVIDIA GPU has, and how many blocks of a kernel it holds at a time.

The formula is that of NVIDIA's CUDA Occupancy Calculator (CUDA_Occupancy_Calculator.xls, and `cuda_occupancy.h` of the toolkit):
registers are handed out to warps in units, shared memory to blocks in units on top of what the system reserves, and the smallest
of the limits by warps, blocks, registers and shared memory counts. The numbers of each architecture are from the CUDA C++
Programming Guide, "Technical Specifications per Compute Capability".
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
    """What one multiprocessor has. Registers are handed out to a warp ``register_unit`` at a time; ``schedulers`` share them
    out, so that only multiples of so many warps find their registers."""

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

    def occupancy(self, *, threads: int, registers: int, shared_bytes: int) -> Occupancy:
        """Of blocks of ``threads`` threads with ``registers`` each and ``shared_bytes`` together."""
        warps = -(-threads // WARP)
        limits = {
            "warps": self.warps // warps,
            "blocks": self.blocks,
            "registers": self._blocks_by_registers(warps, registers),
            "shared memory": self._blocks_by_shared(shared_bytes),
        }
        limit = min(limits, key=lambda name: limits[name])
        return Occupancy(blocks=limits[limit], warps=limits[limit] * warps, of_warps=self.warps, limit=limit)

    def _blocks_by_registers(self, warps: int, registers: int) -> int:
        if registers > self.thread_registers:
            return 0
        of_warp = _up(max(1, registers) * WARP, self.register_unit)
        # Each scheduler has its part of the registers, and warps take them from one part only.
        return self.registers // self.schedulers // of_warp * self.schedulers // warps

    def _blocks_by_shared(self, shared_bytes: int) -> int:
        if shared_bytes > self.block_shared_bytes:
            return 0
        return self.shared_bytes // _up(shared_bytes + self.reserved_bytes, self.shared_unit)


MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(warps=64, blocks=32, shared_bytes=164 << 10, block_shared_bytes=163 << 10),
    "sm_86": Multiprocessor(warps=48, blocks=16, shared_bytes=100 << 10, block_shared_bytes=99 << 10),
    "sm_89": Multiprocessor(warps=48, blocks=24, shared_bytes=100 << 10, block_shared_bytes=99 << 10),
    "sm_90": Multiprocessor(warps=64, blocks=32, shared_bytes=228 << 10, block_shared_bytes=227 << 10),
}


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
