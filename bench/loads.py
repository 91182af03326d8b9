"""How runs are asked for: one after the other, or several at a time on one session."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

# Runs of each stream in a row. The streams start and end together but for the time it takes to wake a thread, some
# 50 us, which must not count.
LEAST_BURST, MOST_BURST = 2, 100
BURST_NS = 20_000_000

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run took: on the clock, and of the processors by all threads of the process."""

    ns: int
    cpu_ns: int


class Load(Protocol):
    def sample(self, run: Run) -> Sample:
        """Of one run, or the share of one among several."""


class OneAtATime:
    def sample(self, run: Run) -> Sample:
        return _timed(run)


class Streams:
    """`count` threads call `run` at a time; the time of all divided by the runs of all, the reverse of throughput."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count)
        self._burst = 0  # known after the first sample

    def sample(self, run: Run) -> Sample:
        if not self._burst:
            run_ns = _timed(run).ns
            self._burst = max(LEAST_BURST, min(MOST_BURST, BURST_NS // max(run_ns, 1)))
        all_of_them = _timed(lambda: self._all_streams(run))
        runs = self._count * self._burst
        return Sample(all_of_them.ns // runs, all_of_them.cpu_ns // runs)

    def _all_streams(self, run: Run) -> None:
        streams = [self._pool.submit(_repeat, run, self._burst) for _ in range(self._count)]
        for stream in streams:
            stream.result()


def _timed(run: Run) -> Sample:
    cpu_begin = time.process_time_ns()
    begin = time.perf_counter_ns()
    run()
    ns = time.perf_counter_ns() - begin
    return Sample(ns, time.process_time_ns() - cpu_begin)


def _repeat(run: Run, count: int) -> None:
    for _ in range(count):
        run()


def load_of(streams: int) -> Load:
    return Streams(streams) if streams else OneAtATime()
