"""What a stretch of a trace comes to: runs a second, how long they took, and the kernels that took most of the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.diagnostics.trace.ceilings import CpuCeilings
from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ring import FAILED, Batch, Kind, Words

Floats = NDArray[np.float64]
_LOW = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hot:
    """A kernel: of the time that islands took its share, and what it reached. ``of_ceiling``: None where none is known."""

    label: str
    island: str
    variant: str
    nodes: tuple[str, ...]
    op_types: tuple[str, ...]
    calls: int
    ns: int
    share: float
    gflops: float
    gbs: float
    of_ceiling: float | None
    threads: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """``runs`` that ended in ``seconds``; times of whole runs are None where there was none. ``threads``: that took part in
    steps. ``lost``: records that nobody saw."""

    seconds: float
    runs: int
    failed: int
    p50_ns: int | None
    p99_ns: int | None
    threads: int
    sessions: int
    kernels: tuple[Hot, ...]
    lost: int

    @property
    def runs_a_second(self) -> float:
        return self.runs / self.seconds if self.seconds > 0 else 0.0


def activity(batches: Sequence[Batch], names: Names, *, seconds: float, ceilings: CpuCeilings | None, most: int = 10) -> Activity:
    """``most``: how many kernels are told, the hottest first."""
    runs = _of(batches, Kind.RUN)
    took = _ns(runs)
    shares = _of(batches, Kind.SHARE)
    steps = np.concatenate([_of(batches, Kind.STEP), _of(batches, Kind.DEVICE_STEP)])
    callers = _of(batches, Kind.STEP)
    return Activity(
        seconds=seconds,
        runs=len(runs),
        failed=int(((runs[:, 1] >> np.uint64(8)) & np.uint64(FAILED)).sum()),
        p50_ns=int(np.percentile(took, 50)) if len(took) else None,
        p99_ns=int(np.percentile(took, 99)) if len(took) else None,
        threads=len(np.unique(np.concatenate([callers[:, 2], shares[:, 2]]) >> np.uint64(32))),
        sessions=len(np.unique(runs[:, 7] & _LOW)),
        kernels=_hottest(steps, names, ceilings, most),
        lost=sum(batch.lost for batch in batches),
    )


def _of(batches: Sequence[Batch], kind: Kind) -> Words:
    return np.concatenate([np.empty((0, 8), np.uint64), *(batch.of(kind) for batch in batches)])


def _ns(words: Words) -> NDArray[np.int64]:
    return np.maximum(words[:, 4].astype(np.int64) - words[:, 3].astype(np.int64), 0)


def _hottest(steps: Words, names: Names, ceilings: CpuCeilings | None, most: int) -> tuple[Hot, ...]:
    if not len(steps):
        return ()
    took = _ns(steps).astype(np.float64)
    # What tells a step: kind, alternative and number, without how many threads it had; and its island.
    whats, what = np.unique(steps[:, 1] & np.uint64(0xFFFFFFFFFFFF00FF), return_inverse=True)
    _, island_of = np.unique(steps[:, 2] & _LOW, return_inverse=True)
    keys, first, which = np.unique(island_of * len(whats) + what, return_index=True, return_inverse=True)

    def summed(values: Floats) -> Floats:
        return np.bincount(which, weights=values, minlength=len(keys)).astype(np.float64)

    ns, calls = summed(took), np.bincount(which, minlength=len(keys))
    flops, sizes = summed(steps[:, 5].astype(np.float64)), summed(steps[:, 6].astype(np.float64))
    by_thread = summed(took * np.maximum((steps[:, 1] >> np.uint64(8)) & np.uint64(0xFF), 1).astype(np.float64))
    found = []
    for at in np.argsort(-ns)[:most].tolist():
        record = int(steps[first[at], 1])
        island = names.island(int(steps[first[at], 2] & _LOW))
        step = island.step(record >> 16 & 0xFFFF, record >> 32)
        spent, threads = int(ns[at]), float(by_thread[at] / ns[at]) if ns[at] else 1.0
        on_cpu = record & 0xFF == Kind.STEP
        reached = (
            ceilings.share(
                ns=spent, flops=int(flops[at]), size_bytes=int(sizes[at]), precision=step.precision, threads=round(threads)
            )
            if ceilings is not None and on_cpu
            else None
        )
        found.append(
            Hot(
                label=step.label,
                island=island.name,
                variant=step.variant,
                nodes=step.nodes,
                op_types=step.op_types,
                calls=int(calls[at]),
                ns=spent,
                share=float(ns[at] / max(ns.sum(), 1.0)),
                gflops=float(flops[at] / max(ns[at], 1.0)),
                gbs=float(sizes[at] / max(ns[at], 1.0)),
                of_ceiling=reached,
                threads=threads,
            )
        )
    return tuple(found)
