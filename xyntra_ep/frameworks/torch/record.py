"""What became of compiled graphs: which call runs where, and why. `explain` gives it."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

GRAPHS_AT_MOST = 256  # that are remembered, the newest


class Direction(StrEnum):
    FORWARD = "forward"
    BACKWARD = "backward"
    INFERENCE = "inference"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """A call of a graph. ``island``: its number, None where PyTorch carries it out for ``reason``."""

    name: str
    target: str
    island: int | None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphRecord:
    direction: Direction
    calls: tuple[CallRecord, ...]
    kernels: tuple[tuple[str, ...], ...]  # of each island
    note: str = ""

    @property
    def claimed(self) -> int:
        return sum(call.island is not None for call in self.calls)

    def __str__(self) -> str:
        lines = [f"{self.direction}: {self.claimed} of {len(self.calls)} calls in {len(self.kernels)} islands"]
        lines += [f"  {self.note}"] if self.note else []
        for number, kernels in enumerate(self.kernels):
            lines.append(f"  island {number}: {sum(call.island == number for call in self.calls)} calls")
            lines += [f"    {kernel}" + (f" x{count}" if count > 1 else "") for kernel, count in Counter(kernels).items()]
        left = Counter((call.target, call.reason) for call in self.calls if call.island is None)
        lines += [f"  PyTorch: {target} x{count}: {reason}" for (target, reason), count in left.most_common()]
        return "\n".join(lines)


@dataclass(slots=True)
class Records:
    """Of the process, or of a model."""

    _found: deque[GraphRecord] = field(default_factory=lambda: deque(maxlen=GRAPHS_AT_MOST))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, record: GraphRecord) -> None:
        with self._lock:
            self._found.append(record)

    def clear(self) -> None:
        with self._lock:
            self._found.clear()

    def all(self) -> Sequence[GraphRecord]:
        with self._lock:
            return tuple(self._found)


RECORDS = Records()


def explain() -> str:
    """Of all graphs that this process has compiled since `reset`, which call ran where and why.

    A graph is planned when it first runs: call the model before.
    """
    found = RECORDS.all()
    return "\n\n".join(map(str, found)) if found else "no graph was compiled; the first run of a compiled model does that"


def reset() -> None:
    """Forget what was compiled."""
    RECORDS.clear()
