"""How runs are asked for: one after the other, or several at a time on one session."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

# Runs of each stream in a row. The streams start and end together but for the time it takes to wake a thread, some
# 50 us, which must not count.
LEAST_BURST, MOST_BURST = 2, 100
BURST_NS = 20_000_000

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
        self._burst = 0  # known after the first sample

    def sample(self, run: Run) -> int:
        if not self._burst:
            run_ns = OneAtATime().sample(run)
            self._burst = max(LEAST_BURST, min(MOST_BURST, BURST_NS // max(run_ns, 1)))
        begin = time.perf_counter_ns()
        streams = [self._pool.submit(_repeat, run, self._burst) for _ in range(self._count)]
        for stream in streams:
            stream.result()
        return (time.perf_counter_ns() - begin) // (self._count * self._burst)


def _repeat(run: Run, count: int) -> None:
    for _ in range(count):
        run()


def load_of(streams: int) -> Load:
    return Streams(streams) if streams else OneAtATime()
