"""What a run on a device costs beside its kernels, and how far these are from their estimates: measured (`measuring.py`), or
assumed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

Times = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCosts:
    """``run_ns``: a run with next to nothing to compute and to move, from its call to its return. ``there_ns``, ``back_ns``: of
    copies to the device and to the host, by their bytes, what they take beyond that; sizes ascend. ``kernels``: times of their
    estimates that kernels take. ``gflops``: of a large product in fp32, 0 where that is not known."""

    run_ns: float
    there_ns: Times
    back_ns: Times
    kernels: float
    gflops: float
    is_measured: bool

    def total_ns(self, inputs: Iterable[int], outputs: Iterable[int], kernels_ns: float) -> float:
        """A run with tensors of so many bytes and kernels that are estimated to take so long."""
        moved = sum(_copy_ns(self.there_ns, size) for size in inputs) + sum(_copy_ns(self.back_ns, size) for size in outputs)
        return self.run_ns + moved + self.kernels * kernels_ns

    def __str__(self) -> str:
        run_us, there, back, kernels = map(_digits, (self.run_ns / 1e3, _gbs(self.there_ns), _gbs(self.back_ns), self.kernels))
        return (
            f"a run there takes {run_us} us beside its kernels, copies {there} GB/s there and {back} GB/s back, kernels {kernels}"
            f" times their estimates ({'measured' if self.is_measured else 'assumed'})"
        )


_BUS_GBS = 12.0  # through pinned memory: PCIe 3.0 x16
_LARGE_BYTES = 1 << 25
_ASSUMED_NS = ((_LARGE_BYTES, _LARGE_BYTES / _BUS_GBS),)
ASSUMED = DeviceCosts(
    run_ns=30e3, there_ns=_ASSUMED_NS, back_ns=_ASSUMED_NS, kernels=1.0, gflops=0.0, is_measured=False
)  # until trials have been made on the device


def _copy_ns(times: Times, size: int) -> float:
    """Between two sizes, and below the first one, as a line has it; above the last one at its rate."""
    largest, longest = times[-1]
    if size > largest:
        return longest * size / largest
    return float(np.interp(size, [0, *(n for n, _ in times)], [0.0, *(ns for _, ns in times)]))


def _gbs(times: Times) -> float:
    """Of the largest copy."""
    largest, longest = times[-1]
    return largest / longest


def _digits(x: float) -> str:
    """Three of them, or all before the point."""
    return f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def stored(costs: DeviceCosts) -> dict[str, Any]:
    """As JSON has it."""
    return dataclasses.asdict(costs)


def read(row: Any) -> DeviceCosts | None:
    """What `stored` has written; None for anything else."""
    try:
        there_ns, back_ns = (tuple((int(size), float(ns)) for size, ns in row[name]) for name in ("there_ns", "back_ns"))
        run_ns, kernels, gflops = (float(row[name]) for name in ("run_ns", "kernels", "gflops"))
    except (KeyError, TypeError, ValueError):
        return None
    positive = [run_ns, kernels, *(x for pair in there_ns + back_ns for x in pair)]
    if not there_ns or not back_ns or not all(0 < x < math.inf for x in positive):
        return None
    return DeviceCosts(run_ns=run_ns, there_ns=there_ns, back_ns=back_ns, kernels=kernels, gflops=gflops, is_measured=True)
