"""How runs are asked for: one after the other, or several at a time on one session."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

BURST = 4  # runs of each stream in a row: the streams start and end together but for a fraction of one run

Run = Callable[[], object]


class Load(Protocol):
    def sample(self, run: Run) -> int:
        """Nanoseconds per run."""


class OneAtATime:
    def sample(self, run: Run) -> int:
        begin = time.perf_counter_ns()
        run()
        return time.perf_counter_ns() - begin


class Streams:
    """`count` threads call `run` at a time; the time of all divided by the runs of all, the reverse of throughput."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count)

    def sample(self, run: Run) -> int:
        begin = time.perf_counter_ns()
        streams = [self._pool.submit(_burst, run) for _ in range(self._count)]
        for stream in streams:
            stream.result()
        return (time.perf_counter_ns() - begin) // (self._count * BURST)


def _burst(run: Run) -> None:
    for _ in range(BURST):
        run()


def load_of(streams: int) -> Load:
    return Streams(streams) if streams else OneAtATime()
