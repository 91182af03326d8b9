"""One look at a process that traces: what `xyntra top` shows, and prints as JSON."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from xyntra_ep.diagnostics.trace.activity import Activity, activity
from xyntra_ep.diagnostics.trace.ceilings import CpuCeilings
from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ring import Batch, Ring

_WINDOW_S = 5.0  # that figures are of: p99 wants many runs
_PAGE_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``resident_bytes``: of the whole process; ``weights_bytes`` and ``blocks_bytes``: of that what is ours, packed weights and
    other memory on the host."""

    pid: int
    activity: Activity
    resident_bytes: int
    weights_bytes: int
    blocks_bytes: int
    measured_ceilings: bool

    def as_json(self) -> Mapping[str, Any]:
        a = self.activity
        return {
            "pid": self.pid,
            "seconds": round(a.seconds, 3),
            "runs": a.runs,
            "runs_a_second": round(a.runs_a_second, 2),
            "failed_runs": a.failed,
            "p50_ns": a.p50_ns,
            "p99_ns": a.p99_ns,
            "threads": a.threads,
            "sessions": a.sessions,
            "memory": {
                "resident_bytes": self.resident_bytes,
                "weights_bytes": self.weights_bytes,
                "blocks_bytes": self.blocks_bytes,
            },
            "ceilings": "measured" if self.measured_ceilings else "assumed",
            "lost_records": a.lost,
            "kernels": [asdict(kernel) for kernel in a.kernels],
        }


class Watch:
    """Looks at a ring again and again; figures are of the last seconds. ``keep``: of the newest batches, for who records."""

    def __init__(self, ring: Ring, *, keep: int = 0) -> None:
        self.ring = ring
        self.kept: deque[Batch] = deque()
        self._keep = keep
        self._ceilings = CpuCeilings.here()
        self._next = ring.now
        self._seen: deque[tuple[float, Batch]] = deque()
        self._since = time.monotonic()
        self._texts = -1
        self._names = Names(plain={}, islands={}, files=())

    @property
    def names(self) -> Names:
        """They are read again where there are more."""
        if self._texts != (used := self.ring.texts_used):
            self._names, self._texts = Names.of(self.ring.texts()), used
        return self._names

    def take(self) -> None:
        """What has come since, before it is overwritten."""
        batch = self.ring.read(self._next)
        self._next = batch.next
        now = time.monotonic()
        self._seen.append((now, batch))
        while len(self._seen) > 1 and now - self._seen[0][0] > _WINDOW_S:
            self._since = self._seen.popleft()[0]
        if self._keep:
            self.kept.append(batch)
            while len(self.kept) > 1 and sum(len(b.words) for b in self.kept) > self._keep:
                self.kept.popleft()

    def look(self) -> Snapshot:
        """Of the last seconds."""
        self.take()
        now = time.monotonic()
        weights, blocks = self.ring.memory_bytes
        return Snapshot(
            pid=self.ring.pid,
            activity=activity([b for _, b in self._seen], self.names, seconds=now - self._since, ceilings=self._ceilings),
            resident_bytes=_resident(self.ring.pid),
            weights_bytes=weights,
            blocks_bytes=blocks,
            measured_ceilings=self._ceilings.is_measured,
        )


def _resident(pid: int) -> int:
    """0 where the process has ended."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
