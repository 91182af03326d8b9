"""Measured ceilings of this machine: the best that one core reaches, or several at a time. They are measured on request and kept
in the cache root.

The kernels are C; the caller compiles them (a Protocol, because the doctor does not import the runtime). `fma` keeps enough
independent chains in registers to fill every FMA unit, `products` does the same in bfloat16 and `byte_products` in bytes, `read`
sums a buffer that fits into one level of the memory hierarchy and not into the level above. Buffers begin at a page, because a
vector across two cache lines takes two loads and would make the first level look half as fast.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import mmap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.tracea.doctor.profile import Ceilings, Machine
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities, Isa
from xyntra_ep.trusted_file import load_trusted, read_trusted

FILE = "ceilings.json"
_CHAINS = 12  # latency 4 times 2 units, with room
_ROUNDS = 12
_ROUND_S = 0.05
_DRAM_FACTOR = 4
_PAGE = 4096
_LEAST_READ = 64 << 20  # bytes in a call: calling costs a microsecond, in which a core reads 200 KiB of L1


class Compile(Protocol):
    """Makes a shared object of C text; tests give a stub."""

    def __call__(self, symbol: str, text: str) -> Path: ...


def source(lanes: int) -> str:
    """C text exporting `xy_fma(i64 n) -> float` and `xy_read(const float *x, i64 n, i64 times) -> float`."""
    chains = range(_CHAINS)
    return f"""typedef long long i64;
typedef float v __attribute__((vector_size({lanes * 4}), aligned(4), may_alias));
#define EXPORT __attribute__((visibility("default")))
EXPORT float xy_fma(i64 n) {{
  v a = {{1.0f}}, b = {{0.5f}};
  {" ".join(f"v c{i} = {{{i}.0f}};" for i in chains)}
  for (i64 k = 0; k < n; k++) {{
    {" ".join(f"c{i} = a * c{i} + b;" for i in chains)}
  }}
  v s = {" + ".join(f"c{i}" for i in chains)};
  return s[0];
}}
EXPORT float xy_read(const float *x, i64 n, i64 times) {{
  {" ".join(f"v c{i} = {{0}};" for i in chains)}
  for (i64 t = 0; t < times; t++) {{
    for (i64 k = 0; k + {_CHAINS * lanes} <= n; k += {_CHAINS * lanes}) {{
      {" ".join(f"c{i} += *(const v *)(x + k + {i * lanes});" for i in chains)}
    }}
  }}
  v s = {" + ".join(f"c{i}" for i in chains)};
  return s[0];
}}
"""


def _tile_products(symbol: str, product: str) -> str:
    """Four of the instruction ``product`` an iteration that do not wait for each other, all in full tiles."""
    return f"""
EXPORT float {symbol}(i64 n) {{
  struct {{ unsigned char palette, start, reserved[14]; unsigned short row_bytes[16]; unsigned char rows[16]; }} t
      __attribute__((aligned(64))) = {{1}};
  for (int i = 0; i < 8; i++) t.rows[i] = 16, t.row_bytes[i] = 64;
  __asm__ volatile("ldtilecfg %0" :: "m"(t));
  for (i64 k = 0; k < n; k++)
    __asm__ volatile("{product} %tmm6, %tmm4, %tmm0; {product} %tmm7, %tmm4, %tmm1; "
                     "{product} %tmm6, %tmm5, %tmm2; {product} %tmm7, %tmm5, %tmm3");
  __asm__ volatile("tilerelease");
  return 0;
}}
"""


_TILE_FLOPS = 4 * 2 * 16 * 16 * 32
_TILE_BYTE_OPS = 2 * _TILE_FLOPS
_PAIR_FLOPS = _CHAINS * 2 * 2 * 16


def _pair_products() -> str:
    chains = range(_CHAINS)
    return f"""
EXPORT float xy_products(i64 n) {{
  v a = {{0}}, {", ".join(f"c{i} = {{{i}.0f}}" for i in chains)};
  for (i64 k = 0; k < n; k++) {{
    {" ".join(f'__asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(c{i}) : "v"(a));' for i in chains)}
  }}
  v s = {" + ".join(f"c{i}" for i in chains)};
  return s[0];
}}
"""


def _byte_products(caps: Capabilities) -> str:
    """Unsigned by signed bytes into sums of 32 bits: by tiles, by one instruction, or by the three that every x86 with vectors
    has."""
    if caps.amx_int8:
        return _tile_products("xy_byte_products", "tdpbusd")
    chains, r = range(_CHAINS), "v" if caps.isa is Isa.AVX512 else "x"
    instructions = "vpmaddubsw %2, %2, %1; vpmaddwd %3, %1, %1; vpaddd %1, %0, %0"
    if caps.vnni:
        instructions = f"{'' if caps.isa is Isa.AVX512 else '%{vex%} '}vpdpbusd %2, %2, %0"
    row = [f'__asm__ volatile("{instructions}" : "+{r}"(c{i}), "=&{r}"(t) : "{r}"(a), "{r}"(ones));' for i in chains]
    return f"""
EXPORT float xy_byte_products(i64 n) {{
  v a = {{0}}, ones = {{0}}, t, {", ".join(f"c{i} = {{{i}.0f}}" for i in chains)};
  for (i64 k = 0; k < n; k++) {{
    {" ".join(row)}
  }}
  v s = {" + ".join(f"c{i}" for i in chains)};
  return s[0];
}}
"""


def multiplies_bytes(caps: Capabilities) -> bool:
    """Whether a machine has instructions for products of bytes that are measured."""
    return caps.isa in (Isa.AVX2, Isa.AVX512)


class Probe:
    """The kernels, loaded. A call returns the work that it did."""

    def __init__(self, caps: Capabilities, compile_c: Compile) -> None:
        self._lanes = max(caps.lanes, 4)
        text = source(self._lanes)
        if caps.has_bf16:
            text += _tile_products("xy_products", "tdpbf16ps") if caps.amx_bf16 else _pair_products()
        if multiplies_bytes(caps):
            text += _byte_products(caps)
        library = load_trusted(compile_c("xy_ceilings", text))
        self._fma, self._read = library.xy_fma, library.xy_read
        self._fma.argtypes, self._fma.restype = [ctypes.c_int64], ctypes.c_float
        self._read.argtypes, self._read.restype = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64], ctypes.c_float

        if caps.has_bf16:
            self._products = library.xy_products
            self._products.argtypes, self._products.restype = [ctypes.c_int64], ctypes.c_float
        self._product_flops = _TILE_FLOPS if caps.amx_bf16 else _PAIR_FLOPS
        if multiplies_bytes(caps):
            self._byte_products = library.xy_byte_products
            self._byte_ops = _TILE_BYTE_OPS if caps.amx_int8 else 2 * 4 * self._lanes * _CHAINS
            self._byte_products.argtypes, self._byte_products.restype = [ctypes.c_int64], ctypes.c_float

    def fma(self, rounds: int) -> float:
        """Floating-point operations."""
        self._fma(rounds)
        return 2.0 * _CHAINS * self._lanes * rounds

    def products(self, turns: int) -> float:
        """Floating-point operations in bfloat16; only where the machine multiplies in it."""
        self._products(turns)
        return float(turns * self._product_flops)

    def byte_products(self, turns: int) -> float:
        """Operations on bytes; only where ``multiplies_bytes``."""
        self._byte_products(turns)
        return float(turns * self._byte_ops)

    def read(self, data: NDArray[np.float32], times: int = 1) -> float:
        """Bytes."""
        self._read(data.ctypes.data, data.size, times)
        return float(data.nbytes * times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprints:
    """Bytes that each thread reads again and again, so that they lie in one level of the memory and not in the one above."""

    l1: int
    l2: int
    l3: int
    dram: int


def footprints(caps: Capabilities, threads: int = 1) -> Footprints:
    """Half a level, which leaves room for what else is in it, and of L3 and DRAM each thread's own part. Where that would fit the
    level above (L3 of a small machine, by many threads), all that there is of it. Whole vectors of every chain: what is counted
    is what is read."""
    step = _CHAINS * max(caps.lanes, 4) * 4
    shared = max(caps.l3_bytes * _DRAM_FACTOR, 256 << 20)

    def whole(size: int) -> int:
        return max(size // step, 1) * step

    l3 = caps.l3_bytes // 2 // threads
    return Footprints(
        l1=whole(caps.l1d_bytes // 2),
        l2=whole(caps.l2_bytes // 2),
        l3=whole(l3 if l3 > caps.l2_bytes else caps.l3_bytes // threads),
        dram=whole(shared // threads),
    )


def parts(each_bytes: int, threads: int) -> list[NDArray[np.float32]]:
    """For each thread a buffer of ones that begins with a page, as no allocator of numpy promises."""
    stride = -(-each_bytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, stride * threads)
    if hasattr(mmap, "MADV_HUGEPAGE"):  # as numpy asks for: else looking up pages would be measured too
        with suppress(OSError):
            memory.madvise(mmap.MADV_HUGEPAGE)
    data = np.frombuffer(memory, dtype=np.float32)
    data.fill(1.0)
    return [data[i * stride // 4 :][: each_bytes // 4] for i in range(threads)]


def measure(caps: Capabilities, compile_c: Compile, *, threads: int = 1) -> Ceilings:
    """Run the kernels for some seconds; on several cores at the same time, each with a part of its own of L3 and DRAM."""
    probe, sizes = Probe(caps, compile_c), footprints(caps, threads)

    def read(each: int) -> float:
        times = max(1, _LEAST_READ // each)
        return _best_rate([partial(probe.read, part, times) for part in parts(each, threads)])

    return Ceilings(
        fma_gflops=_best_rate([partial(probe.fma, 1 << 20)] * threads),
        bf16_gflops=_best_rate([partial(probe.products, 1 << 16)] * threads) if caps.has_bf16 else 0.0,
        int8_gops=_best_rate([partial(probe.byte_products, 1 << 17)] * threads) if multiplies_bytes(caps) else 0.0,
        l1_gbs=read(sizes.l1),
        l2_gbs=read(sizes.l2),
        l3_gbs=read(sizes.l3),
        dram_gbs=read(sizes.dram),
    )


def _best_rate(works: Sequence[Callable[[], float]]) -> float:
    """Units of 10^9 per second in the best of a few rounds: interruptions only ever slow a round down. Each work has a
    thread, and the time is that of the processor it ran on, so that waiting for one does not count."""
    if len(works) == 1:
        return max(_rate(works[0]) for _ in range(_ROUNDS))
    from concurrent.futures import (
        ThreadPoolExecutor,
    )  # which cannot be imported when Python ends, as the rest of this is for a trace

    start = Barrier(len(works))

    def together(work: Callable[[], float]) -> float:
        start.wait()
        return _rate(work)

    with ThreadPoolExecutor(len(works)) as pool:
        return max(sum(pool.map(together, works)) for _ in range(_ROUNDS))


def _rate(work: Callable[[], float]) -> float:
    amount, begin, elapsed_s = 0.0, time.thread_time(), 0.0
    while elapsed_s < _ROUND_S:
        amount += work()
        elapsed_s = time.thread_time() - begin
    return amount / elapsed_s / 1e9


def load(folder: Path, machine: Machine) -> Ceilings | None:
    """The stored ceilings of ``machine``, None when there are none that can be read."""
    try:
        stored = json.loads(read_trusted(folder / FILE))[machine.key]
        known = {f.name: float(stored[f.name]) for f in dataclasses.fields(Ceilings) if f.name in stored}
        return Ceilings(**known)  # an older release may have stored less
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored_with(folder: Path, machine: Machine, ceilings: Ceilings) -> bytes:
    """The new contents of <folder>/ceilings.json, other machines' rows kept (a home directory may be shared)."""
    try:
        rows = json.loads(read_trusted(folder / FILE))
    except (OSError, ValueError):
        rows = {}
    rows = rows if isinstance(rows, dict) else {}
    rows[machine.key] = dataclasses.asdict(ceilings)
    return json.dumps(rows, indent=1, sort_keys=True).encode()
