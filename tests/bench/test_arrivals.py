"""The open loop's schedule, queue and search, all by numbers: no clock."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xyntra_bench.arrivals import (
    CLOSE,
    MOST_PROBES,
    STEP,
    arrivals_ns,
    bracket,
    capacity_per_s,
    next_rate,
    p99_ns,
    predicted_rate,
    queued_ns,
)
from xyntra_bench.results import Probe

MS = 1_000_000


def probe(rate: float, *, held: bool) -> Probe:
    return Probe(rate_per_s=rate, queries=100, p99_ns=1, held=held)


def test_arrivals_are_poisson_seeded_and_only_stretched_by_the_rate() -> None:
    starts = arrivals_ns(100.0, 20_000, seed=7)
    gaps = np.diff(starts)
    assert starts[-1] == pytest.approx(20_000 * 10 * MS, rel=0.03)
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.03), "as long as their deviation"
    assert np.array_equal(starts, arrivals_ns(100.0, 20_000, seed=7))
    assert not np.array_equal(starts, arrivals_ns(100.0, 20_000, seed=8))
    assert np.abs(starts - 2 * arrivals_ns(200.0, 20_000, seed=7)).max() <= 2


def test_a_slow_run_is_felt_by_those_behind_it() -> None:
    """One run of a second among short ones, a query every 10 ms: a closed loop would have seen one bad latency."""
    starts = np.arange(200) * 10 * MS
    service = [1 * MS] * 200
    service[50] = 1000 * MS
    latencies = queued_ns(starts, service, workers=1)
    assert latencies[49] == 1 * MS and latencies[50] == 1000 * MS and latencies[51] == 991 * MS
    assert (latencies > 100 * MS).sum() > 90


def test_workers_share_the_queue() -> None:
    starts = np.zeros(4, np.int64)
    assert queued_ns(starts, [10] * 4, workers=1).tolist() == [10, 20, 30, 40]
    assert queued_ns(starts, [10] * 4, workers=2).tolist() == [10, 10, 20, 20]
    assert capacity_per_s([10 * MS] * 3, workers=2) == 200


def test_the_prediction_holds_the_bound_and_a_little_more_does_not() -> None:
    service = [10 * MS] * 20
    rate = predicted_rate(service, 1, 50 * MS, 1000, seed=3)
    at = {factor: p99_ns(queued_ns(arrivals_ns(rate * factor, 1000, 3), [10 * MS] * 1000, 1)) for factor in (1, 1.06)}
    assert at[1] <= 50 * MS < at[1.06]


@pytest.mark.parametrize(("truth", "first"), [(100.0, 100.0), (100.0, 30.0), (100.0, 400.0), (3.0, 90.0)])
def test_the_search_ends_with_the_truth_between_what_held_and_what_failed(truth: float, first: float) -> None:
    probes: list[Probe] = []
    while rate := next_rate(first, capacity=120.0, probes=probes):
        probes.append(probe(rate, held=rate <= truth))
    held, failed = bracket(probes)
    assert held <= truth < failed <= held * CLOSE and len(probes) <= MOST_PROBES


def test_where_nothing_holds_the_search_gives_up() -> None:
    probes: list[Probe] = []
    while rate := next_rate(90.0, capacity=100.0, probes=probes):
        probes.append(probe(rate, held=False))
    assert bracket(probes)[0] == 0 and len(probes) < MOST_PROBES


def test_a_lucky_hold_above_a_failure_does_not_count() -> None:
    assert bracket([probe(50, held=True), probe(60, held=False), probe(70, held=True)]) == (50, 60)
    assert bracket([probe(50, held=True)]) == (50, math.inf) and bracket([]) == (0, math.inf)
    assert next_rate(50.0, 100.0, [probe(50, held=True)]) == 50 * STEP
