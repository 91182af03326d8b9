"""The capabilities of this machine's CPU, from the operating system. Nothing is measured here; see ceilings.py."""

from __future__ import annotations

import dataclasses
import os
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from xyntra_ep import knobs
from xyntra_ep.tracea.doctor import matrix_tiles
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Isa, Prefetching

_ARM = ("aarch64", "arm64")
_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma", "f16c"})
_AMX = "amx_tile"  # which amx_bf16 and amx_int8 come with
_AVX2 = frozenset({"avx2", "fma", "f16c"})
_VNNI = {Isa.AVX512: "avx512_vnni", Isa.AVX2: "avx_vnni"}
_LEAST = {Isa.AVX512: _AVX512, Isa.AVX2: _AVX2, Isa.SCALAR: frozenset[str]()}  # features, of x86
_ROWS = {Isa.AVX512: AVX512, Isa.AVX2: AVX2, Isa.NEON: NEON, Isa.SCALAR: SCALAR}
_BF16_TILES, _BF16_PAIRS = 16.0, 2.0  # rate of bfloat16 products over fp32 ones, by instruction
_INT8_TILES = 32.0  # of products of bytes
# One core, where nothing was measured: (fp32 GFLOP/s, DRAM GB/s) at 3 GHz with two FMA units (AVX-512: one
# and a half, because client parts fuse two 256-bit units), and what one core of a server draws from DRAM.
_HALVES_CEILINGS = (110.0, 20.0)
_DEFAULT_CEILINGS = {
    Isa.AVX512: (150.0, 20.0),
    Isa.AVX2: (96.0, 20.0),
    Isa.NEON: (48.0, 20.0),
    Isa.SCALAR: (6.0, 10.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What one core reaches (or several at the same time, their sum): fp32 GFLOP/s by fused multiply-add, and read
    bandwidth in GB/s (10^9 bytes) per level.

    ``bf16_gflops``: products of bfloat16 by the fastest instruction; 0 where that is no faster than fp32. ``int8_gops``: products
    of bytes, summed up in 32 bits, by the fastest instructions; 0 where there are none. ``int8_gops``, ``l1_gbs``: 0 when an
    earlier release measured.
    """

    fma_gflops: float
    l2_gbs: float
    l3_gbs: float
    dram_gbs: float
    bf16_gflops: float = 0.0
    int8_gops: float = 0.0
    l1_gbs: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The CPU and what the process may use of it."""

    model: str
    vendor: str
    features: frozenset[str]
    architecture: str
    cores: int
    l1d_bytes: int
    l2_bytes: int
    l3_bytes: int
    tiles_granted: bool = False  # the operating system lets processes use matrix tiles

    @property
    def key(self) -> str:
        """Names machines that tuning results and ceilings are valid for."""
        return f"{self.architecture}|{self.model}|{self.isa}"

    @property
    def isa(self) -> Isa:
        """The widest instruction set that kernels are generated for."""
        if self.architecture in _ARM:
            return Isa.SCALAR if self.features and "asimd" not in self.features else Isa.NEON
        if self.features >= _AVX512:
            return Isa.AVX512
        return Isa.AVX2 if self.features >= _AVX2 else Isa.SCALAR


def profile(root: Path = Path("/"), tiles_granted: Callable[[], bool] = matrix_tiles.granted) -> Machine:
    """This machine. For tests, ``root``: where /proc and /sys are, and another answer of the operating system."""
    info = _cpuinfo(root / "proc/cpuinfo")
    caches = _caches(root / "sys/devices/system/cpu/cpu0/cache")
    features = frozenset((info.get("flags") or info.get("Features") or "").split())
    return Machine(
        model=info.get("model name") or info.get("CPU part") or platform.processor() or "unknown",
        vendor=info.get("vendor_id") or info.get("CPU implementer") or "unknown",
        features=features,
        architecture=platform.machine(),
        cores=usable_cores(root),
        l1d_bytes=caches.get((1, "Data"), SCALAR.l1d_bytes),
        l2_bytes=caches.get((2, "Unified"), SCALAR.l2_bytes),
        l3_bytes=caches.get((3, "Unified"), SCALAR.l3_bytes),
        tiles_granted=_AMX in features and tiles_granted(),
    )


def limited(machine: Machine, widest: Isa) -> Machine:
    """``machine`` as if it had no instruction set beyond ``widest`` (AVX512: without AMX; AVX2: without AVX_VNNI, too,
    as Zen 3 is)."""
    beyond = {
        Isa.AVX512: ("amx_",),
        Isa.AVX2: ("amx_", "avx512", "avx_vnni"),
        Isa.SCALAR: ("amx_", "avx", "fma", "f16c", "asimd"),
    }[widest]
    kept = frozenset(feature for feature in machine.features if not feature.startswith(beyond))
    return dataclasses.replace(machine, features=kept, tiles_granted=machine.tiles_granted and _AMX in kept)


def this_machine() -> Machine:
    """This machine, no wider than XYNTRA_ISA: what everything goes by that plans, measures or runs generated code."""
    widest, machine = knobs.current().isa, profile()
    return machine if widest is None else limited(machine, Isa(widest))


def lacking(machine: Machine, caps: Capabilities) -> str:
    """What code made for ``caps`` needs and ``machine`` does not have; empty when it can be run there.

    >>> lacking(limited(profile(), Isa.SCALAR), AVX2), lacking(profile(), SCALAR)
    ('avx2', '')
    """
    features = machine.features
    if machine.architecture in _ARM:
        return "" if caps.isa in (machine.isa, Isa.SCALAR) else str(caps.isa)
    if caps.isa not in _LEAST or not features >= _LEAST[caps.isa]:
        return str(caps.isa)
    if (caps.avx512_bf16 or caps.avx512_bf16_convert) and "avx512_bf16" not in features:
        return "AVX512_BF16"
    if caps.vnni and (wanted := _VNNI[caps.isa]) not in features:
        return wanted.upper()
    if caps.avx512_vbmi and "avx512vbmi" not in features:
        return "AVX512_VBMI"
    if caps.amx_bf16 and not features >= {_AMX, "amx_bf16"}:
        return "matrix tiles (AMX)"
    if caps.amx_int8 and not features >= {_AMX, "amx_int8"}:
        return "matrix tiles of bytes (AMX)"
    tiles = caps.amx_bf16 or caps.amx_int8
    return "the operating system's leave to use matrix tiles" if tiles and not machine.tiles_granted else ""


def needed_features(caps: Capabilities) -> tuple[str, ...]:
    """What code made for ``caps`` needs, in the words of /proc/cpuinfo.

    >>> needed_features(AVX2)
    ('avx2', 'f16c', 'fma')
    """
    if caps.isa is Isa.NEON:
        return ("asimd",)
    needed = set(_LEAST[caps.isa])
    needed |= {"avx512_bf16"} if caps.avx512_bf16 or caps.avx512_bf16_convert else set()
    needed |= {_VNNI[caps.isa]} if caps.vnni else set()
    needed |= {"avx512vbmi"} if caps.avx512_vbmi else set()
    needed |= {_AMX, "amx_bf16"} if caps.amx_bf16 else set()
    needed |= {_AMX, "amx_int8"} if caps.amx_int8 else set()
    return tuple(sorted(needed))


def capabilities(machine: Machine, ceilings: Ceilings | None = None) -> Capabilities:
    """``machine`` as kernels see it; without measured ``ceilings`` the defaults of its instruction set are taken."""
    row = _ROWS[machine.isa]
    wide = machine.isa is Isa.AVX512
    halves = wide and machine.vendor == "AuthenticAMD" and "avx512_vp2intersect" not in machine.features  # Zen 5 has it
    fma_gflops, dram_gbs = _HALVES_CEILINGS if halves else _DEFAULT_CEILINGS[machine.isa]
    converts = wide and "avx512_bf16" in machine.features
    pairs = converts and machine.vendor == "AuthenticAMD"
    tiles = wide and _AMX in machine.features and machine.tiles_granted
    bf16_tiles, int8_tiles = (tiles and feature in machine.features for feature in ("amx_bf16", "amx_int8"))
    fma = ceilings.fma_gflops if ceilings is not None else fma_gflops
    bf16 = _BF16_TILES * fma if bf16_tiles else _BF16_PAIRS * fma if pairs else 0.0
    if bf16 and ceilings is not None and ceilings.bf16_gflops:
        bf16 = ceilings.bf16_gflops
    int8 = _INT8_TILES * fma if int8_tiles else 0.0
    if int8 and ceilings is not None and ceilings.int8_gops > bf16:  # else an earlier release measured, without tiles
        int8 = ceilings.int8_gops
    return Capabilities(
        isa=machine.isa,
        lanes=row.lanes,
        vector_registers=row.vector_registers,
        halves=halves,
        avx512_bf16=pairs,
        avx512_bf16_convert=converts,
        amx_bf16=bf16_tiles,
        amx_int8=int8_tiles,
        vnni=_VNNI.get(machine.isa) in machine.features,
        avx512_vbmi=wide and "avx512vbmi" in machine.features,
        l1d_bytes=machine.l1d_bytes,
        l2_bytes=machine.l2_bytes,
        l3_bytes=machine.l3_bytes,
        fma_gflops=fma,
        bf16_gflops=bf16,
        int8_gops=int8,
        dram_gbs=ceilings.dram_gbs if ceilings is not None else dram_gbs,
        prefetching=_prefetching(machine),
        cores=machine.cores,
    )


def _prefetching(machine: Machine) -> Prefetching:
    """Measured on Emerald Rapids, on Zen 4 (1 MiB of L2), and on Zen 3 (512 KiB). There GPT-2's decode takes 33.9 ms with near
    ones, without any 29.1; and convolutions that ask in each iteration of a loop over k, for most lines again and again, make
    ResNet-50 6 % slower than no prefetches do, where bursts make it 2 % faster."""
    if machine.vendor == "GenuineIntel":
        return Prefetching.FAR
    return Prefetching.BURST if machine.vendor == "AuthenticAMD" and machine.l2_bytes < 1 << 20 else Prefetching.NEAR


def usable_cores(root: Path = Path("/")) -> int:
    """Cores this process may run on: its affinity mask, and the cgroup's quota rounded up; at least 1."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        cores = os.cpu_count() or 1
    quota = _cgroup_quota(root / "sys/fs/cgroup")
    return max(1, min(cores, -int(-quota // 1)) if quota is not None else cores)


def _cgroup_quota(folder: Path) -> float | None:
    """Cores' worth of time that the control group grants, None when it sets no limit."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()[:2]
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        pass  # version 1, or none
    try:
        quota_us = int((folder / "cpu/cpu.cfs_quota_us").read_text())
        period_us = int((folder / "cpu/cpu.cfs_period_us").read_text())
        return quota_us / period_us if quota_us > 0 and period_us > 0 else None
    except (OSError, ValueError):
        return None


def _cpuinfo(path: Path) -> Mapping[str, str]:
    """The fields of the first processor."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            first = file.read(16384).split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _caches(folder: Path) -> dict[tuple[int, str], int]:
    """Bytes by (level, type)."""
    found: dict[tuple[int, str], int] = {}
    for entry in sorted(folder.glob("index*")):
        try:
            level = int((entry / "level").read_text())
            kind = (entry / "type").read_text().strip()
            number, unit = re.fullmatch(r"(\d+)([KMG]?)", (entry / "size").read_text().strip()).groups()  # type: ignore[union-attr]  # no match: AttributeError
        except (OSError, ValueError, AttributeError):
            continue
        found[(level, kind)] = int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]
    return found
