"""Open loop, the pure part: when queries should begin, how long they wait in a queue, and which rate to try next."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from xyntra_bench.results import Probe

STEP = 1.25  # between rates, until one held and one did not
CLOSE = 1.05  # how near to each other these two are in the end
MOST_PROBES = 12
LEAST_LOAD = 0.02  # of what the workers could do at most: a bound that fails there fails everywhere

Times = npt.NDArray[np.int64]


def arrivals_ns(rate_per_s: float, count: int, seed: int) -> Times:
    """A Poisson process: the gaps are exponential. The same seed has the same gaps at every rate, only stretched."""
    gaps = np.random.default_rng(seed).exponential(1.0, count)
    return (np.cumsum(gaps) * (1e9 / rate_per_s)).astype(np.int64)


def queued_ns(starts_ns: Times, service_ns: Sequence[int], workers: int) -> Times:
    """Latency of each query from its intended start, when the next free worker takes the one that has waited longest.

    >>> queued_ns(np.array([0, 1, 2]), [10, 10, 10], workers=1).tolist()
    [10, 19, 28]
    """
    free = [0] * workers
    latencies = []
    for start, service in zip(starts_ns.tolist(), service_ns, strict=True):
        end = max(heapq.heappop(free), start) + service
        heapq.heappush(free, end)
        latencies.append(end - start)
    return np.array(latencies, np.int64)


def capacity_per_s(service_ns: Sequence[int], workers: int) -> float:
    return workers * 1e9 / float(np.mean(service_ns))


def predicted_rate(service_ns: Sequence[int], workers: int, bound_ns: int, queries: int, seed: int) -> float:
    """Where to begin the search: the highest rate that holds the bound in a simulated queue with these service times."""
    drawn = np.random.default_rng(seed).choice(np.asarray(service_ns), queries).tolist()
    top = capacity_per_s(service_ns, workers)
    low, high = LEAST_LOAD * top, top
    while high / low > CLOSE:
        rate = math.sqrt(low * high)
        held = p99_ns(queued_ns(arrivals_ns(rate, queries, seed), drawn, workers)) <= bound_ns
        low, high = (rate, high) if held else (low, rate)
    return low


def p99_ns(latencies_ns: Times) -> int:
    return int(np.percentile(latencies_ns, 99, method="higher"))


def bracket(probes: Sequence[Probe]) -> tuple[float, float]:
    """The highest rate that held below the lowest that did not: (0, ...) when none held, (..., inf) when all did."""
    failed = min((probe.rate_per_s for probe in probes if not probe.held), default=math.inf)
    held = max((probe.rate_per_s for probe in probes if probe.held and probe.rate_per_s < failed), default=0.0)
    return held, failed


def next_rate(first: float, capacity: float, probes: Sequence[Probe]) -> float | None:
    """The rate to try after these, None when the bracket is narrow enough or there is nothing below to try."""
    held, failed = bracket(probes)
    if not probes:
        return first
    if len(probes) >= MOST_PROBES or failed <= LEAST_LOAD * capacity or failed <= held * CLOSE:
        return None
    if held == 0:
        return failed / STEP ** len(probes)  # further each time
    return held * STEP if math.isinf(failed) else math.sqrt(held * failed)
