"""Measured ceilings of this machine: what one core reaches at best. Measured on request, then kept in the
cache root.

The kernels are C, compiled by whoever may (a Protocol: the doctor does not know the runtime): `fma` keeps
enough independent chains in registers to fill every FMA unit; `read` sums a buffer that fits one level of the
memory and not the one above.
"""

from __future__ import annotations

import ctypes
import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import numpy as np

from xyntra_ep.tracea.doctor.profile import Ceilings, Machine
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities

FILE = "ceilings.json"
_CHAINS = 12  # latency 4 times 2 units, with room
_ROUNDS = 5
_ROUND_S = 0.05
_DRAM_FACTOR = 4


class Compile(Protocol):
    """Makes a shared object of C text; tests give a stub."""

    def __call__(self, symbol: str, text: str) -> Path: ...


def source(lanes: int) -> str:
    """C text exporting `xy_fma(i64 n) -> float` and `xy_read(const float *x, i64 n) -> float`."""
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
EXPORT float xy_read(const float *x, i64 n) {{
  {" ".join(f"v c{i} = {{0}};" for i in range(8))}
  for (i64 k = 0; k + {8 * lanes} <= n; k += {8 * lanes}) {{
    {" ".join(f"c{i} += *(const v *)(x + k + {i * lanes});" for i in range(8))}
  }}
  v s = {" + ".join(f"c{i}" for i in range(8))};
  return s[0];
}}
"""


def measure(caps: Capabilities, compile_c: Compile) -> Ceilings:
    """Run the kernels on one core for about a second."""
    library = ctypes.CDLL(str(compile_c("xy_ceilings", source(max(caps.lanes, 4)))))
    lanes = max(caps.lanes, 4)
    fma, read = library.xy_fma, library.xy_read
    fma.argtypes, fma.restype = [ctypes.c_int64], ctypes.c_float
    read.argtypes, read.restype = [ctypes.c_void_p, ctypes.c_int64], ctypes.c_float
    rounds = 1 << 20
    flops = 2.0 * _CHAINS * lanes * rounds
    sizes = (caps.l2_bytes // 2, caps.l3_bytes // 2, max(caps.l3_bytes * _DRAM_FACTOR, 256 << 20))
    data = np.ones(sizes[-1] // 4, dtype=np.float32)
    l2, l3, dram = (_best_rate(lambda n=n // 4: read(data.ctypes.data, n), n) for n in sizes)  # type: ignore[misc]  # a default binds the loop variable
    return Ceilings(fma_gflops=_best_rate(lambda: fma(rounds), flops), l2_gbs=l2, l3_gbs=l3, dram_gbs=dram)


def _best_rate(work: Callable[[], object], amount: float) -> float:
    """Units of 10^9 per second in the best of a few rounds: interruptions only ever slow a round down."""
    best_s = float("inf")
    work()
    for _ in range(_ROUNDS):
        repeats, begin, elapsed_s = 0, time.perf_counter(), 0.0
        while elapsed_s < _ROUND_S:
            work()
            repeats += 1
            elapsed_s = time.perf_counter() - begin
        best_s = min(best_s, elapsed_s / repeats)
    return amount / best_s / 1e9


def load(folder: Path, machine: Machine) -> Ceilings | None:
    """The stored ceilings of ``machine``, None when there are none that can be read."""
    try:
        stored = json.loads((folder / FILE).read_text(encoding="utf-8"))[machine.key]
        return Ceilings(**{f.name: float(stored[f.name]) for f in dataclasses.fields(Ceilings)})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def stored_with(folder: Path, machine: Machine, ceilings: Ceilings) -> bytes:
    """The new contents of <folder>/ceilings.json, other machines' rows kept (a home directory may be shared)."""
    try:
        rows = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        rows = {}
    rows = rows if isinstance(rows, dict) else {}
    rows[machine.key] = dataclasses.asdict(ceilings)
    return json.dumps(rows, indent=1, sort_keys=True).encode()
