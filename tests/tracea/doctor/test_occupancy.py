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
    Practices Guide, "Calculating Occupancy")."""
    m = MULTIPROCESSORS[architecture]
    most = m.registers // (m.warps * 32) // 8 * 8
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


@pytest.mark.compiler("nvrtc")
def test_two_blocks_of_the_largest_tile_fit() -> None:
    program, _, _ = build(GemmCase(m=8192, k=64, n=8192, symbolic=""))
    [source] = [s for s in plan_for(program, SM_80).kernels if "128x128" in s.symbol]
    for architecture in ("sm_80", "sm_90"):
        cubin = nvrtc.load().compile(source.symbol, source.text, architecture)
        found = occupancy(architecture, threads=256, registers=cubin.registers, shared_bytes=cubin.shared_bytes)
        assert found.blocks == 2 and cubin.spilled_bytes == 0
