"""How runs are requested: one after the other, several at a time on one session, or each with the results of the last."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from xyntra_bench.sessions import Feeds, Session

# Runs of each stream in a row. The streams start and end together but for the time it takes to wake a thread, some
# 50 us, which must not count.
LEAST_BURST, MOST_BURST = 2, 100
BURST_NS = 20_000_000

TOKENS, LOGITS, PAST, PRESENT = "input_ids", "logits", "past_", "present_"  # what a model that generates calls them

Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Sample:
    """What one run took: on the clock, and of the processors by all threads of the process. It may be the share of one among
    `runs`. Of a loop, `steps_ns` has the run with the prompt and then each run with a new token."""

    ns: int
    cpu_ns: int
    steps_ns: tuple[int, ...] = ()
    runs: int = 1

    @property
    def spent_ns(self) -> int:
        return self.ns * self.runs


class Load(Protocol):
    def sample(self, session: Session, feeds: Feeds) -> Sample:
        """Of one run, the share of one among several, or a loop."""


class OneAtATime:
    def sample(self, session: Session, feeds: Feeds) -> Sample:
        return _timed(partial(session.run, feeds))


class Streams:
    """`count` threads call `run` at a time; the time of all divided by the runs of all, the reverse of throughput."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = ThreadPoolExecutor(count)
        self._burst = 0  # known after the first sample

    def sample(self, session: Session, feeds: Feeds) -> Sample:
        run = partial(session.run, feeds)
        if not self._burst:
            run_ns = _timed(run).ns
            self._burst = max(LEAST_BURST, min(MOST_BURST, BURST_NS // max(run_ns, 1)))
        all_of_them = _timed(lambda: self._all_streams(run))
        runs = self._count * self._burst
        return Sample(all_of_them.ns // runs, all_of_them.cpu_ns // runs, runs=runs)

    def _all_streams(self, run: Run) -> None:
        streams = [self._pool.submit(_repeat, run, self._burst) for _ in range(self._count)]
        for stream in streams:
            stream.result()


class Loop:
    """A prompt, then `tokens` in all, each the likeliest after those before it; the present of a run is the next one's
    past. Choosing the token and handing arrays over counts, as it does for whoever generates."""

    def __init__(self, names: Sequence[str], tokens: int) -> None:
        self.tokens = tokens
        self._names = list(names)

    def sample(self, session: Session, feeds: Feeds) -> Sample:
        steps: list[int] = []

        def generate() -> None:
            fed = feeds
            for _ in range(self.tokens):
                begin = time.perf_counter_ns()
                made = dict(zip(self._names, session.outputs(fed, self._names), strict=True))
                fed = fed_back(made, made[LOGITS][:, -1].argmax(-1)[:, None])
                steps.append(time.perf_counter_ns() - begin)

        whole = _timed(generate)
        return Sample(whole.ns, whole.cpu_ns, tuple(steps))


def fed_back(made: Mapping[str, npt.NDArray[Any]], tokens: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[Any]]:
    """The inputs of the next run: tokens, [batch, 1], and as past what the last run made."""
    past = {PAST + name.removeprefix(PRESENT): value for name, value in made.items() if name.startswith(PRESENT)}
    return {TOKENS: tokens, **past}


def forced_logits(
    session: Session, feeds: Feeds, first: Mapping[str, npt.NDArray[Any]], count: int
) -> dict[str, npt.NDArray[Any]]:
    """Logits of further runs after the first, which all contenders feed with the same tokens: their own choices may differ
    by a rounding, and then nothing could be compared."""
    names, made = list(first), dict(first)
    vocabulary, batch = made[LOGITS].shape[-1], feeds[TOKENS].shape[0]
    found = {}
    for i in range(count):
        token = np.full((batch, 1), (i * 7919 + 13) % vocabulary, np.int64)
        made = dict(zip(names, session.outputs(fed_back(made, token), names), strict=True))
        found[f"{LOGITS} after {i + 1} tokens"] = made[LOGITS]
    return found


def _timed(run: Run) -> Sample:
    cpu_begin = time.process_time_ns()
    begin = time.perf_counter_ns()
    run()
    ns = time.perf_counter_ns() - begin
    return Sample(ns, time.process_time_ns() - cpu_begin)


def _repeat(run: Run, count: int) -> None:
    for _ in range(count):
        run()
