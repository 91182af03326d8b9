"""Measures the best that the machine reaches (its ceilings), in the same run whose results are compared with it.

A child process, `python -m xyntra_bench.ceilings THREADS RESULT`, does nothing else. The kernels are those of
`xyntra doctor --measure`: fused multiply-adds in registers, products of bfloat16 and of bytes by the fastest instructions, and
reading buffers that fit into one level of the memory hierarchy and not into the level above. A run measures them before and
after its cases and keeps the best, because a hypervisor may let two processors share a core for a while.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xyntra_bench.codec import decode, encode
from xyntra_bench.results import Ceilings

LIMIT_S = 120.0


def measure_ceilings(threads: Sequence[int], environment: dict[str, str]) -> tuple[tuple[Ceilings, ...], str]:
    """For each number of threads, and why there are fewer: without a C compiler there are none."""
    found: list[Ceilings] = []
    for count in threads:
        with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
            result = Path(folder) / "ceilings.json"
            command = [sys.executable, "-P", "-m", "xyntra_bench.ceilings", str(count), str(result)]
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False)
            except subprocess.TimeoutExpired:
                return tuple(found), f"ceilings: not measured within {LIMIT_S:.0f} s"
            if done.returncode != 0:
                last = (done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1]
                return tuple(found), f"ceilings: cannot be measured: {last}"
            found.append(decode(Ceilings, json.loads(result.read_text())))
    return tuple(found), ""


def best_of(known: Sequence[Ceilings], found: Sequence[Ceilings]) -> tuple[Ceilings, ...]:
    """For each number of threads the higher of every rate. The sizes of the caches are those of one machine."""
    best = {c.threads: c for c in known}
    for c in found:
        other = best.get(c.threads, c)
        higher: dict[str, Any] = {
            f.name: _higher(getattr(c, f.name), getattr(other, f.name)) for f in dataclasses.fields(Ceilings)
        }
        best[c.threads] = Ceilings(**higher)
    return tuple(best[threads] for threads in sorted(best))


def _higher(a: float | None, b: float | None) -> float | None:
    known = [rate for rate in (a, b) if rate is not None]
    return max(known) if known else None


def main(threads: int, result_file: Path) -> None:
    from xyntra_ep.diagnostics.machine import compile_with
    from xyntra_ep.tracea.doctor import ceilings
    from xyntra_ep.tracea.interface.context import Context

    context = Context()
    found = ceilings.measure(context.caps, compile_with(context), threads=threads)
    measured = Ceilings(
        threads=threads,
        fp32_gflops=round(found.fma_gflops, 2),
        bf16_gflops=round(found.bf16_gflops, 2),
        int8_gops=round(found.int8_gops, 2),
        l1_gbs=round(found.l1_gbs, 2),
        l2_gbs=round(found.l2_gbs, 2),
        l3_gbs=round(found.l3_gbs, 2),
        dram_gbs=round(found.dram_gbs, 2),
        l1_bytes=context.caps.l1d_bytes,
        l2_bytes=context.caps.l2_bytes,
        l3_bytes=context.caps.l3_bytes,
    )
    result_file.write_text(json.dumps(encode(measured)))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
