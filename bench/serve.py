"""Open loop, the part with sessions: queries begin at their intended times, however long earlier ones take.

In a closed loop the next run begins when the last has ended, so a slow run delays the queries that would have shown the waiting
that it causes (coordinated omission). Here latency counts from the intended start.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Protocol

import numpy as np

from xyntra_bench.arrivals import Times, arrivals_ns, bracket, capacity_per_s, next_rate, p99_ns, predicted_rate
from xyntra_bench.feeds import Feeds
from xyntra_bench.interleaving import Runner, renew, wait_until_idle
from xyntra_bench.loads import Run, Sample
from xyntra_bench.plan import MIN_N_P99, Budget
from xyntra_bench.results import Bracket, Probe, Ratio, Serving, Stopped
from xyntra_bench.statistics import student_t_975

SERVICE_RUNS = 20  # in a closed loop, for a first guess at the rate
BOUND_RUNS = 5  # the bound where none is given, in runs of the CPU provider
LEAST_BOUND_NS = 2_000_000  # below it the bound would be of the system's scheduler
PROBE_S, PROBE_SHARE = 5.0, 0.025  # about how long a rate is tried, and at most of the time there is
MOST_QUERIES = 2000
MIN_SEARCHES = 3


class Clock(Protocol):
    def now_ns(self) -> int: ...

    def wait_until_ns(self, then: int) -> None: ...


class WallClock:
    """Sleeps, and wakes up some 60 us late. Spinning would be punctual, with a core that the runs need."""

    def now_ns(self) -> int:
        return time.perf_counter_ns()

    def wait_until_ns(self, then: int) -> None:
        late = then - time.perf_counter_ns()
        if late > 0:
            time.sleep(late / 1e9)


def serve(run: Run, starts_ns: Times, workers: int, clock: Clock) -> Times:
    """Latency of each query from its intended start; `workers` threads take the queries in their order."""
    latencies = np.zeros(len(starts_ns), np.int64)
    queue = itertools.count()
    lock = threading.Lock()
    begin = clock.now_ns()

    def work() -> None:
        while True:
            with lock:
                i = next(queue)
            if i >= len(starts_ns):
                return
            start = begin + int(starts_ns[i])
            clock.wait_until_ns(start)
            run()
            latencies[i] = clock.now_ns() - start

    if workers == 1:
        work()
    else:
        with ThreadPoolExecutor(workers) as pool:
            for working in [pool.submit(work) for _ in range(workers)]:
                working.result()
    return latencies


def serve_all(
    runners: Sequence[Runner],
    feeds: Feeds,
    budget: Budget,
    bound_ns: int | None,
    clock: Clock,
    after_round: Callable[[], None] = lambda: None,
) -> tuple[int, Stopped]:
    """Rounds of one search for each runner, with new sessions, until there are enough or the time is used up. The arrivals of
    a round are the same for all."""
    begin, rounds, longest = time.monotonic(), 0, 0.0
    probe_s = min(PROBE_S, PROBE_SHARE * budget.max_time_s)
    while True:
        round_begin = time.monotonic()
        shift = rounds % len(runners)
        order = [*runners[shift:], *runners[:shift]]
        if rounds:
            renew(order)
        bound_ns = bound_ns or max(LEAST_BOUND_NS, BOUND_RUNS * int(np.median(_service_ns(runners[0], feeds))))
        for runner in order:
            wait_until_idle()
            _search(runner, feeds, bound_ns, probe_s=probe_s, seed=rounds, clock=clock)
        rounds += 1
        after_round()
        longest = max(longest, time.monotonic() - round_begin)
        if rounds >= budget.rounds:
            return rounds, Stopped.ENOUGH
        if time.monotonic() - begin + longest > budget.max_time_s:
            return rounds, Stopped.CUT


def _search(runner: Runner, feeds: Feeds, bound_ns: int, *, probe_s: float, seed: int, clock: Clock) -> None:
    """One round's: its probes, and the latencies at the highest rate that held."""
    assert runner.session is not None
    run, workers = partial(runner.session.run, feeds), max(runner.setup.streams, 1)
    service = _service_ns(runner, feeds)
    capacity = capacity_per_s(service, workers)
    queries = min(MOST_QUERIES, max(MIN_N_P99, math.ceil(probe_s * capacity / 2)))
    first = predicted_rate(service, workers, bound_ns, queries, seed)
    probes: list[Probe] = []
    best: list[Sample] = []
    while rate := next_rate(first, capacity, probes):
        cpu_begin = time.process_time_ns()
        latencies = serve(run, arrivals_ns(rate, queries, seed), workers, clock)
        cpu_ns = (time.process_time_ns() - cpu_begin) // queries
        p99 = p99_ns(latencies)
        probes.append(Probe(rate_per_s=round(rate, 3), queries=queries, p99_ns=p99, held=p99 <= bound_ns))
        if probes[-1].held or not any(probe.held for probe in probes):  # else the lowest rate that was tried
            best = [Sample(int(latency), cpu_ns) for latency in latencies]
    runner.samples += best
    held, failed = bracket(probes)
    found = Bracket(held_per_s=held, failed_per_s=None if math.isinf(failed) else failed)
    before = runner.serving or Serving(bound_ns=bound_ns, rate_per_s=None, brackets=(), probes=())
    brackets = (*before.brackets, found)
    runner.serving = Serving(
        bound_ns=bound_ns, rate_per_s=_typical(brackets), brackets=brackets, probes=(*before.probes, *probes)
    )


def _service_ns(runner: Runner, feeds: Feeds) -> list[int]:
    return [runner.run(feeds).ns for _ in range(SERVICE_RUNS)][1:]


def _typical(brackets: Sequence[Bracket]) -> float | None:
    """Geometric mean of the highest rates that held; None when a round had none."""
    if not all(found.held_per_s for found in brackets):
        return None
    return round(math.exp(float(np.mean([math.log(found.held_per_s) for found in brackets]))), 3)


def rate_ratio(reference: Serving, other: Serving) -> Ratio | None:
    """How many times the reference's rate the other holds; None of too few searches.

    A search ends between a rate that held and one that did not, and the p99 of a search hangs on its worst few queries, so
    that the next finds another rate. The interval has both: the brackets, and Student's t over the searches.
    """
    pairs = [
        (a.held_per_s, a.failed_per_s, b.held_per_s, b.failed_per_s)
        for a, b in zip(reference.brackets, other.brackets, strict=True)
        if a.held_per_s and a.failed_per_s and b.held_per_s and b.failed_per_s
    ]
    if len(pairs) < MIN_SEARCHES or len(pairs) < len(other.brackets):
        return None
    found = np.log(pairs)
    logs = (found[:, 2] + found[:, 3] - found[:, 0] - found[:, 1]) / 2
    scatter = student_t_975(len(pairs) - 1) * float(logs.std(ddof=1)) / math.sqrt(len(pairs))
    low, high = float((found[:, 2] - found[:, 1]).mean()), float((found[:, 3] - found[:, 0]).mean())
    return Ratio(
        middle=round(math.exp(float(logs.mean())), 4),
        low=round(math.exp(low - scatter), 4),
        high=round(math.exp(high + scatter), 4),
        pairs=len(pairs),
        rounds=len(pairs),
    )
