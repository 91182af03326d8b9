"""Occupancy against published examples, and of kernels as NVRTC reports them."""

from __future__ import annotations

import pytest

from tests.support.gpu.run import plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import MULTIPROCESSORS


@pytest.mark.parametrize("architecture", list(MULTIPROCESSORS))
def test_all_registers_of_full_warps(architecture: str) -> None:
    """65536 registers for 2048 threads are 32 each, for 1536 42, which is rounded down to a unit of 8: 40 (CUDA C++ Best
    Practices Guide, "Calculating Occupancy"). Of CDNA's 512 for each lane of a SIMD eight waves have 64 each, of RDNA 3's 1536
    sixteen have 96."""
    m = MULTIPROCESSORS[architecture]
    unit = m.register_unit // m.lanes
    most = m.registers // (m.warps * m.lanes) // unit * unit
    assert occupancy(architecture, threads=256, registers=most, shared_bytes=0).fraction == 1.0
    assert occupancy(architecture, threads=256, registers=most + 1, shared_bytes=0).fraction < 1.0


def test_published_examples() -> None:
    # CUDA C++ Best Practices Guide, of compute capability 7.0, which has 64 warps and 65536 registers like 8.0: "a kernel with
    # 128-thread blocks using 37 registers per thread results in an occupancy of 75% with 12 active 128-thread blocks per
    # multi-processor, whereas a kernel with 320-thread blocks using the same 37 registers per thread results in an occupancy of
    # 63% because only four 320-thread blocks can reside on a multiprocessor".
    first = occupancy("sm_80", threads=128, registers=37, shared_bytes=0)
    assert (first.blocks, first.fraction, first.limit) == (12, 0.75, "registers")
    second = occupancy("sm_80", threads=320, registers=37, shared_bytes=0)
    assert (second.blocks, round(second.fraction, 3), second.limit) == (4, 0.625, "registers")
    # CUDA C++ Programming Guide, compute capability 8.6: 48 warps, 16 blocks: blocks of one warp reach a third.
    assert occupancy("sm_86", threads=32, registers=16, shared_bytes=0).limit == "blocks"
    assert occupancy("sm_86", threads=32, registers=16, shared_bytes=0).fraction == pytest.approx(1 / 3)
    assert occupancy("sm_89", threads=32, registers=16, shared_bytes=0).fraction == 0.5


def test_shared_memory() -> None:
    # 1 KiB of each block is the system's: 164 KiB hold three blocks of 48 KiB, one of 163 KiB, none of more.
    for architecture, size, blocks in (
        ("sm_80", 48 << 10, 3),
        ("sm_80", 163 << 10, 1),
        ("sm_80", (163 << 10) + 1, 0),
        ("sm_86", 48 << 10, 2),
        ("sm_90a", 227 << 10, 1),
        ("sm_90", 75 << 10, 3),
    ):
        found = occupancy(architecture, threads=128, registers=32, shared_bytes=size)
        assert (found.blocks, found.limit) == (blocks, "shared memory"), (architecture, size)
    assert occupancy("sm_80", threads=128, registers=256, shared_bytes=0).blocks == 0


# Waves on a SIMD by vector registers: AMD lab notes, "Register pressure in AMD CDNA2 GPUs", table 1 (gfx90a), and "Occupancy
# explained" on GPUOpen: a SIMD of a Radeon RX 7900 has 1536 registers of each lane, handed out 24 at a time, and 16 waves.
@pytest.mark.parametrize(
    ("architecture", "registers", "waves"),
    [
        ("gfx90a", 64, 8), ("gfx90a", 65, 7), ("gfx90a", 72, 7), ("gfx90a", 80, 6), ("gfx90a", 96, 5), ("gfx90a", 128, 4),
        ("gfx90a", 168, 3), ("gfx90a", 256, 2), ("gfx90a", 512, 1), ("gfx942", 128, 4),
        ("gfx1100", 96, 16), ("gfx1100", 97, 12), ("gfx1100", 120, 12), ("gfx1100", 144, 10), ("gfx1100", 192, 8),
        ("gfx1100", 256, 5),
    ],
)  # fmt: skip
def test_waves_of_amd(architecture: str, registers: int, waves: int) -> None:
    lanes = MULTIPROCESSORS[architecture].lanes
    found = occupancy(architecture, threads=4 * lanes, registers=registers, shared_bytes=0)  # a wave on each SIMD
    assert found.blocks == waves and found.warps == 4 * waves


def test_lds_and_barriers_of_amd() -> None:
    """64 KiB of a compute unit in units of 512 bytes; 128 KiB of a pair of them, of which a block has half at most. A barrier for
    each block of several waves: 16 of a compute unit, 32 of a pair."""
    for architecture, size, blocks in (("gfx90a", 16 << 10, 4), ("gfx942", (16 << 10) + 1, 3), ("gfx1100", 64 << 10, 2)):
        found = occupancy(architecture, threads=128, registers=32, shared_bytes=size)
        assert (found.blocks, found.limit) == (blocks, "shared memory")
    assert occupancy("gfx90a", threads=64, registers=64, shared_bytes=(64 << 10) + 1).blocks == 0
    assert occupancy("gfx90a", threads=128, registers=32, shared_bytes=0).blocks == 16
    assert occupancy("gfx90a", threads=64, registers=32, shared_bytes=0).blocks == 32
    assert occupancy("gfx1100", threads=64, registers=32, shared_bytes=0).blocks == 32


@pytest.mark.compiler("nvrtc")
def test_two_blocks_of_the_largest_tile_fit() -> None:
    program, _, _ = build(GemmCase(m=8192, k=64, n=8192, symbolic=""))
    [source] = [s for s in plan_for(program, SM_80).kernels if "128x128" in s.symbol]
    for architecture in ("sm_80", "sm_90"):
        cubin = nvrtc.load().compile(source.symbol, source.text, architecture)
        found = occupancy(architecture, threads=256, registers=cubin.registers, shared_bytes=cubin.shared_bytes)
        assert found.blocks == 2 and cubin.spilled_bytes == 0
