from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.machine import AVX_VNNI, BF16_PAIRS, BF16_TILES, INT8_TILES, VNNI, need
from xyntra_ep.tracea.doctor import profile as module
from xyntra_ep.tracea.doctor.ceilings import load, measure, source, stored_with
from xyntra_ep.tracea.doctor.profile import Ceilings, capabilities, lacking, limited, profile, this_machine, usable_cores
from xyntra_ep.tracea.runtime.cache_root import open_root
from xyntra_ep.tracea.runtime.compilers import find_compiler, target_flags
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_files import CompiledKernel
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa, Prefetching

ZEN = "fpu sse2 avx avx2 fma f16c avx512f avx512bw avx512dq avx512vl avx512_bf16 avx512_vnni"


def machine_at(root: Path, flags: str, vendor: str = "AuthenticAMD", tiles_granted: bool = True) -> module.Machine:
    first = f"processor\t: 0\nvendor_id\t: {vendor}\nmodel name\t: Test CPU: 9000\nflags\t\t: {flags}\n"
    write(root / "proc/cpuinfo", f"{first}\nprocessor\t: 1\nflags\t: none\n")
    for index, (level, kind, size) in enumerate(
        [(1, "Data", "48K"), (1, "Instruction", "32K"), (2, "Unified", "2048K"), (3, "Unified", "24M")]
    ):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        write(folder / "level", f"{level}\n")
        write(folder / "type", f"{kind}\n")
        write(folder / "size", f"{size}\n")
    return profile(root, lambda: tiles_granted)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(autouse=True)
def _x86(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def test_a_full_description(tmp_path: Path) -> None:
    machine = machine_at(tmp_path, ZEN)
    assert machine.model == "Test CPU: 9000"
    assert (machine.l1d_bytes, machine.l2_bytes, machine.l3_bytes) == (48 << 10, 2 << 20, 24 << 20)
    caps = capabilities(machine)
    assert (caps.isa, caps.lanes, caps.avx512_bf16, caps.vnni) == (Isa.AVX512, 16, True, True)


@pytest.mark.parametrize(
    ("flags", "isa"),
    [
        (ZEN, Isa.AVX512),
        ("sse2 avx avx2 fma f16c avx512f avx512dq", Isa.AVX2),  # Knights Landing lacks bw and vl
        ("sse2 avx avx2 fma f16c", Isa.AVX2),
        ("sse2 avx f16c", Isa.SCALAR),
        ("", Isa.SCALAR),
    ],
)  # fmt: skip
def test_the_widest_set_that_is_complete(flags: str, isa: Isa, tmp_path: Path) -> None:
    assert machine_at(tmp_path, flags).isa is isa


def test_bf16_only_with_avx512(tmp_path: Path) -> None:
    caps = capabilities(machine_at(tmp_path, "avx2 fma f16c avx512_bf16 amx_tile amx_bf16"))
    assert not (caps.avx512_bf16 or caps.amx_bf16 or caps.has_bf16 or caps.bf16_gflops)


def test_pairs_of_bf16_only_where_they_are_fast(tmp_path: Path) -> None:
    amd = capabilities(machine_at(tmp_path / "amd", ZEN))
    assert (amd.has_bf16, amd.amx_bf16, amd.bf16_gflops) == (True, False, 2 * amd.fma_gflops)
    intel = capabilities(machine_at(tmp_path / "intel", ZEN, "GenuineIntel"))
    assert not intel.avx512_bf16 and not intel.has_bf16


def test_units_of_half_a_vector(tmp_path: Path) -> None:
    """Zen 4 has AVX-512 on units of 256 bits, and half the peak."""
    zen4 = capabilities(machine_at(tmp_path / "4", ZEN))
    zen5 = capabilities(machine_at(tmp_path / "5", f"{ZEN} avx512_vp2intersect"))
    intel = capabilities(machine_at(tmp_path / "intel", ZEN, "GenuineIntel"))
    assert [caps.unit_bits for caps in (zen4, zen5, intel)] == [256, 512, 512]
    assert zen4.lanes == zen5.lanes == 16 and zen4.fma_gflops < zen5.fma_gflops == intel.fma_gflops
    assert capabilities(machine_at(tmp_path / "3", "avx2 fma f16c")).unit_bits == 256


def test_how_memory_is_read_fastest(tmp_path: Path) -> None:
    amd, intel = machine_at(tmp_path / "amd", ZEN), machine_at(tmp_path / "intel", ZEN, "GenuineIntel")
    assert capabilities(intel).prefetching is Prefetching.FAR
    assert capabilities(amd).prefetching is Prefetching.NEAR
    assert capabilities(replace(amd, l2_bytes=512 << 10)).prefetching is Prefetching.BURST
    assert capabilities(replace(intel, l2_bytes=512 << 10)).prefetching is Prefetching.FAR


def test_a_machine_can_be_limited(tmp_path: Path) -> None:
    machine = machine_at(tmp_path, f"{ZEN} amx_tile amx_bf16")
    assert limited(machine, Isa.AVX512).isa is Isa.AVX512 and not capabilities(limited(machine, Isa.AVX512)).amx_bf16
    assert limited(machine, Isa.AVX2).isa is Isa.AVX2 and not capabilities(limited(machine, Isa.AVX2)).has_bf16
    assert limited(machine, Isa.SCALAR).isa is Isa.SCALAR
    tiled = machine_at(tmp_path / "tiles", f"{ZEN} amx_tile amx_bf16")
    laptop = machine_at(tmp_path / "laptop", "avx2 fma f16c avx_vnni")
    assert capabilities(laptop).vnni and not capabilities(limited(laptop, Isa.AVX2)).vnni
    assert tiled.tiles_granted and not limited(tiled, Isa.AVX512).tiles_granted


@pytest.mark.parametrize(
    ("flags", "runs", "lacks"),
    [
        (f"{ZEN} amx_tile amx_bf16", (AVX512, BF16_PAIRS, BF16_TILES, AVX2, SCALAR), {NEON: "neon"}),
        (ZEN, (AVX512, BF16_PAIRS, AVX2, SCALAR), {BF16_TILES: "matrix tiles (AMX)"}),
        (
            ZEN.replace("avx512_bf16 avx512_vnni", ""),
            (AVX512, AVX2, SCALAR),
            {BF16_PAIRS: "AVX512_BF16", VNNI: "AVX512_VNNI"},
        ),
        ("avx2 fma f16c avx512_bf16", (AVX2, SCALAR), {AVX512: "avx512", BF16_PAIRS: "avx512", AVX_VNNI: "AVX_VNNI"}),
        ("avx2 fma f16c avx_vnni", (AVX2, AVX_VNNI), {VNNI: "avx512"}),
        (f"{ZEN} amx_tile amx_bf16 amx_int8", (BF16_TILES, INT8_TILES), {AVX_VNNI: "AVX_VNNI"}),
        (f"{ZEN} amx_tile amx_bf16", (BF16_TILES,), {INT8_TILES: "matrix tiles of bytes (AMX)"}),
        ("sse4_2 avx", (SCALAR,), {AVX2: "avx2", AVX512: "avx512"}),
    ],
)
def test_what_a_machine_lacks_for_code_is_named(
    flags: str, runs: tuple[Capabilities, ...], lacks: dict[Capabilities, str], tmp_path: Path
) -> None:
    machine = machine_at(tmp_path, flags)
    assert [lacking(machine, caps) for caps in runs] == [""] * len(runs)
    assert {caps: lacking(machine, caps) for caps in lacks} == lacks


def test_tiles_need_the_operating_systems_leave(tmp_path: Path) -> None:
    machine = machine_at(tmp_path, f"{ZEN} amx_tile amx_bf16", tiles_granted=False)
    assert lacking(machine, BF16_TILES) == "the operating system's leave to use matrix tiles"


def test_what_arm_runs(tmp_path: Path) -> None:
    machine = replace(machine_at(tmp_path, "fp asimd fphp"), architecture="aarch64")
    assert machine.isa is Isa.NEON and limited(machine, Isa.SCALAR).isa is Isa.SCALAR
    assert [lacking(machine, caps) for caps in (NEON, SCALAR, AVX2)] == ["", "", "avx2"]
    assert lacking(limited(machine, Isa.SCALAR), NEON) == "neon"


def test_this_machine_is_no_wider_than_the_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XYNTRA_ISA", "scalar")
    assert this_machine() == limited(profile(), Isa.SCALAR)
    monkeypatch.delenv("XYNTRA_ISA")
    assert this_machine() == profile()


def test_tiles_of_bf16(tmp_path: Path) -> None:
    caps = capabilities(machine_at(tmp_path, f"{ZEN} amx_tile amx_bf16", "GenuineIntel"))
    assert (caps.amx_bf16, caps.avx512_bf16, caps.avx512_bf16_convert, caps.has_bf16) == (True, False, True, True)
    assert caps.bf16_gflops == 16 * caps.fma_gflops


def test_tiles_of_bytes(tmp_path: Path) -> None:
    machine = machine_at(tmp_path, f"{ZEN} amx_tile amx_bf16 amx_int8", "GenuineIntel")
    caps = capabilities(machine)
    assert caps.amx_int8 and caps.int8_gops == 2 * caps.bf16_gflops
    measured = Ceilings(fma_gflops=100.0, l2_gbs=1, l3_gbs=1, dram_gbs=1, bf16_gflops=1500.0, int8_gops=2900.0)
    assert capabilities(machine, measured).int8_gops == 2900.0
    assert capabilities(machine, replace(measured, int8_gops=400.0)).int8_gops == 3200.0  # measured without tiles
    for lacking_one in (f"{ZEN} amx_tile amx_bf16", f"{ZEN} amx_int8"):
        without = capabilities(machine_at(tmp_path, lacking_one, "GenuineIntel"))
        assert (without.amx_int8, without.int8_gops) == (False, 0.0)
    refused = machine_at(tmp_path, f"{ZEN} amx_tile amx_int8", "GenuineIntel", tiles_granted=False)
    assert not capabilities(refused).amx_int8
    assert lacking(refused, INT8_TILES) == "the operating system's leave to use matrix tiles"


def test_tiles_that_are_not_granted_do_not_count(tmp_path: Path) -> None:
    machine = machine_at(tmp_path, f"{ZEN} amx_tile amx_bf16", "GenuineIntel", tiles_granted=False)
    caps = capabilities(machine)
    assert (caps.amx_bf16, caps.has_bf16, caps.avx512_bf16_convert) == (False, False, True)
    assert machine_at(tmp_path, ZEN).tiles_granted is False


def test_arm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    caps = capabilities(machine_at(tmp_path, ""))
    assert (caps.isa, caps.lanes, caps.vector_registers) == (Isa.NEON, 4, 32)


def test_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    machine = profile(tmp_path)
    assert (machine.isa, machine.l2_bytes) == (Isa.SCALAR, SCALAR.l2_bytes)
    assert machine.cores >= 1


def test_cache_descriptions_that_cannot_be_read(tmp_path: Path) -> None:
    machine_at(tmp_path, ZEN)
    write(tmp_path / "sys/devices/system/cpu/cpu0/cache/index2/size", "huge\n")
    assert profile(tmp_path).l2_bytes == SCALAR.l2_bytes


@pytest.mark.parametrize(
    ("path", "text", "cores"),
    [
        ("cpu.max", "max 100000\n", 8),
        ("cpu.max", "200000 100000\n", 2),
        ("cpu.max", "150000 100000\n", 2),
        ("cpu.max", "10000 100000\n", 1),
        ("cpu.max", "nonsense\n", 8),
        ("cpu.max", "1600000 100000\n", 8),
    ],
)
def test_cores_are_affinity_and_quota(path: str, text: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    assert usable_cores(tmp_path) == 8
    write(tmp_path / "sys/fs/cgroup" / path, text)
    assert usable_cores(tmp_path) == cores


def test_the_quota_of_version_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000")
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000")
    assert usable_cores(tmp_path) == 3
    write(tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1")
    assert usable_cores(tmp_path) == 8


def test_ceilings_are_kept_by_machine(tmp_path: Path) -> None:
    machine = machine_at(tmp_path / "a", ZEN)
    other = machine_at(tmp_path / "b", "avx2 fma f16c")
    assert load(tmp_path, machine) is None
    for m, value in ((machine, 1.0), (other, 2.0)):
        found = Ceilings(fma_gflops=value, l2_gbs=3, l3_gbs=4, dram_gbs=5)
        (tmp_path / "ceilings.json").write_bytes(stored_with(tmp_path, m, found))
    known = load(tmp_path, machine)
    assert known is not None and known.fma_gflops == 1.0
    assert capabilities(machine, known).fma_gflops == 1.0 and capabilities(machine, known).dram_gbs == 5
    assert capabilities(machine, known).bf16_gflops == 2.0  # what was stored before it was measured: by its usual rate
    assert capabilities(machine, replace(known, bf16_gflops=7.0)).bf16_gflops == 7.0
    assert capabilities(other, replace(known, bf16_gflops=7.0)).bf16_gflops == 0.0
    rows = json.loads((tmp_path / "ceilings.json").read_text())
    del rows[machine.key]["bf16_gflops"]
    (tmp_path / "ceilings.json").write_text(json.dumps(rows))
    assert load(tmp_path, machine) == known
    (tmp_path / "ceilings.json").write_text("{broken")
    assert load(tmp_path, machine) is None
    assert stored_with(tmp_path, machine, known)


@pytest.mark.compiler("cc")
def test_measuring_gives_plausible_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xyntra_ep.tracea.doctor.ceilings._ROUND_S", 0.002)
    root = open_root(tmp_path / "root")

    def compile_c(symbol: str, text: str) -> Path:
        [kernel] = KernelCache(root, find_compiler(root), ()).compile_many([KernelSource.of_text(symbol, text)])
        assert isinstance(kernel, CompiledKernel), kernel.log
        return kernel.path

    found = measure(SCALAR, compile_c)  # 4 lanes by the compiler's own means: runs on every machine
    assert 0.1 < found.fma_gflops < 1e4
    assert 0.1 < found.dram_gbs < 1e4 and 0.1 < found.l2_gbs < 1e5
    assert 0.1 < found.l1_gbs < 1e5 and 0.1 < found.l3_gbs < 1e5
    both = measure(SCALAR, compile_c, threads=2)  # at the same time; nothing is said about how much more that is
    assert both.fma_gflops > 0 and both.l1_gbs > 0 and both.dram_gbs > 0
    assert "vector_size(32)" in source(AVX2.lanes) and found.bf16_gflops == 0


@pytest.mark.compiler("cc")
@pytest.mark.parametrize("caps", [BF16_PAIRS, BF16_TILES], ids=["pairs", "tiles"])
def test_measuring_products_of_bfloat16(caps: Capabilities, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need(caps)
    monkeypatch.setattr("xyntra_ep.tracea.doctor.ceilings._ROUND_S", 0.002)
    root = open_root(tmp_path / "root")

    def compile_c(symbol: str, text: str) -> Path:
        cache = KernelCache(root, find_compiler(root), target_flags(caps.isa))
        [kernel] = cache.compile_many([KernelSource.of_text(symbol, text)])
        assert isinstance(kernel, CompiledKernel), kernel.log
        return kernel.path

    assert 1 < measure(caps, compile_c).bf16_gflops < 1e5
