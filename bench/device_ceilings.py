"""Measures the best that a device reaches, in the same run whose results are compared with it.

It is a child process: `python -m xyntra_bench.device_ceilings BACKEND RESULT`. The kernels are XyntraEP's own
(`xyntra_ep/tracea/doctor/device_ceilings.py`). If PyTorch is installed, its products (cuBLAS) are timed as well, and a roof is
the higher of both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from xyntra_bench.codec import decode, encode
from xyntra_bench.results import DeviceCeilings

LIMIT_S = 300.0
SIDE = 8192  # of the library's matrices
COPIED_BYTES = 512 << 20
TORCH_BACKEND = "cuda"  # whose devices PyTorch's products are timed on
RUNS = 10


def measure_device_ceilings(backend: str, environment: dict[str, str]) -> tuple[tuple[DeviceCeilings, ...], str]:
    """Of the device that sessions with `backend` use, and why there are none. A processor behind a device's driver has none of
    its own: it is there to try kernels, not to be fast."""
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
        result = Path(folder) / "ceilings.json"
        command = [sys.executable, "-P", "-m", "xyntra_bench.device_ceilings", backend, str(result)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False)
        except subprocess.TimeoutExpired:
            return (), f"ceilings of {backend}: not measured within {LIMIT_S:.0f} s"
        if done.returncode != 0:
            last = (done.stderr.splitlines() or [f"exit status {done.returncode}"])[-1]
            return (), f"ceilings of {backend}: cannot be measured: {last}"
        return tuple(decode(DeviceCeilings, row) for row in json.loads(result.read_text())), ""


def main(backend: str, result_file: Path) -> None:
    from xyntra_ep.diagnostics.device_ceilings import measure_device
    from xyntra_ep.tracea.backends import BACKENDS

    target = BACKENDS[backend].target()
    found: list[DeviceCeilings] = []
    if target is not None and not target.gpu.is_cpu:
        cache = target.cache_bytes
        own = measure_device(target, memory_bytes=target.memory_bytes, cache_bytes=cache)
        library, rates = library_rates() if target.backend == TORCH_BACKEND else ("", {})
        found.append(
            DeviceCeilings(
                device=target.identity,
                copy_gbs=round(own.copy_gbs, 1),
                cache_gbs=round(own.cache_gbs, 1),
                cache_bytes=cache,
                fp32_gflops=round(own.fp32_gflops, 1),
                fp16_gflops=round(own.fp16_gflops, 1),
                bf16_gflops=round(own.bf16_gflops, 1),
                tf32_gflops=round(own.tf32_gflops, 1),
                library=library,
                library_fp32_gflops=rates.get("float32", 0.0),
                library_fp16_gflops=rates.get("float16", 0.0),
                library_bf16_gflops=rates.get("bfloat16", 0.0),
                library_tf32_gflops=rates.get("tf32", 0.0),
                library_copy_gbs=rates.get("copy", 0.0),
            )
        )
    result_file.write_text(json.dumps(encode(found)))


def library_rates() -> tuple[str, dict[str, float]]:
    """PyTorch's name and version, and 10^9 operations a second of its products of normal numbers by type; empty without it."""
    try:
        import torch
    except ImportError:
        return "", {}
    if not torch.cuda.is_available():
        return "", {}
    rates = {}
    for name in ("float32", "float16", "bfloat16", "tf32"):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        dtype = torch.float32 if name == "tf32" else getattr(torch, name)
        a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=dtype) for _ in range(2))
        ns = least_ns(torch, partial(torch.matmul, a, b, out=torch.empty_like(a)))
        rates[name] = round(2 * SIDE**3 / ns, 1)
    source = torch.zeros(COPIED_BYTES // 4, device="cuda")
    target = torch.empty_like(source)
    rates["copy"] = round(2 * COPIED_BYTES / least_ns(torch, lambda: target.copy_(source)), 1)
    return f"torch {torch.__version__}", rates


def least_ns(torch: Any, work: Callable[[], object]) -> float:
    """Nanoseconds by the device's clock, the best of a few, after some to warm up."""
    for _ in range(3):
        work()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(RUNS + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    best_ms: float = min(a.elapsed_time(b) for a, b in pairwise(marks))
    return best_ms * 1e6


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
