"""Which bytes the ceilings of the memory are measured on. Never how fast."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.machine import AVX_VNNI, INT8_TILES, VNNI, need
from xyntra_ep.diagnostics.machine import compile_with
from xyntra_ep.tracea.doctor import ceilings
from xyntra_ep.tracea.doctor.ceilings import Probe, footprints, measure, multiplies_bytes, parts
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

KIB, MIB = 1 << 10, 1 << 20
MACHINES = [
    dataclasses.replace(row, l1d_bytes=l1 * KIB, l2_bytes=l2 * KIB, l3_bytes=l3 * MIB)
    for row in (AVX512, AVX2, NEON, SCALAR)
    for l1, l2, l3 in ((32, 256, 8), (48, 1024, 32), (48, 2048, 260), (64, 512, 4))
]
LINE, PAGE = 64, 4096
MULTIPLYING = {"tiles": INT8_TILES, "vnni": VNNI, "avx-vnni": AVX_VNNI, "avx512": AVX512, "avx2": AVX2, "scalar": SCALAR}


@pytest.mark.parametrize("caps", MACHINES, ids=lambda c: f"{c.isa}-{c.l1d_bytes >> 10}-{c.l2_bytes >> 10}-{c.l3_bytes >> 20}")
@pytest.mark.parametrize("threads", [1, 2])
def test_each_buffer_fits_its_level_and_not_the_one_above(caps: Capabilities, threads: int) -> None:
    sizes = footprints(caps, threads)
    assert caps.l1d_bytes / 4 <= sizes.l1 <= caps.l1d_bytes / 2
    assert caps.l1d_bytes < sizes.l2 <= caps.l2_bytes / 2
    assert caps.l2_bytes < sizes.l3 and threads * sizes.l3 <= caps.l3_bytes
    assert threads * sizes.dram >= 3.9 * caps.l3_bytes
    step = ceilings._CHAINS * max(caps.lanes, 4) * 4
    for size in (sizes.l1, sizes.l2, sizes.l3, sizes.dram):
        assert size % step == 0 and size % LINE == 0, "the kernel reads whole vectors of every chain, and that is counted"


def test_a_level_that_is_not_there_is_not_divided_by() -> None:
    sizes = footprints(dataclasses.replace(AVX2, l3_bytes=0), threads=4)
    assert min(sizes.l1, sizes.l2, sizes.l3, sizes.dram) > 0


@pytest.mark.parametrize("each_bytes", [768, 24 * KIB, 512 * KIB + 768])
def test_buffers_begin_with_a_page_and_share_none(each_bytes: int) -> None:
    found = parts(each_bytes, 3)
    assert [part.nbytes for part in found] == [each_bytes] * 3 and all((part == 1).all() for part in found)
    assert all(part.ctypes.data % PAGE == 0 for part in found)
    ends = [part.ctypes.data + part.nbytes for part in found]
    assert all(end <= part.ctypes.data for end, part in zip(ends, found[1:], strict=False))


def test_what_is_measured_are_those_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    class Noting:
        def __init__(self, caps: Capabilities, compile_c: ceilings.Compile) -> None: ...

        def read(self, data: NDArray[np.float32], times: int = 1) -> float:
            seen.append((data.ctypes.data, data.nbytes))
            return float(data.nbytes * times)

        def fma(self, rounds: int) -> float:
            return 1.0

        def byte_products(self, turns: int) -> float:
            return 1.0

    def compile_nothing(symbol: str, text: str) -> Path:
        raise AssertionError("the probe is a stub")

    monkeypatch.setattr(ceilings, "Probe", Noting)
    monkeypatch.setattr(ceilings, "_best_rate", lambda works: sum(work() for work in works))
    measure(AVX2, compile_nothing, threads=2)
    sizes = footprints(AVX2, 2)
    assert [nbytes for _, nbytes in seen] == [size for size in dataclasses.astuple(sizes) for _ in range(2)]
    assert all(address % PAGE == 0 for address, _ in seen)


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", [pytest.param(c, id=name) for name, c in MULTIPLYING.items()])
def test_every_loop_runs_and_says_what_it_did(caps: Capabilities) -> None:
    need(caps)
    probe = Probe(caps, compile_with(Context(caps=caps)))
    assert probe.fma(10) == 2 * 10 * ceilings._CHAINS * max(caps.lanes, 4)
    if multiplies_bytes(caps):
        of_products = 10 * 4 * 2 * 16 * 16 * 64 if caps.amx_int8 else 4 * probe.fma(10)
        assert probe.byte_products(10) == of_products
    else:
        assert caps is SCALAR
