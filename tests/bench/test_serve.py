"""The open loop on a clock that moves only when a run or a wait says so."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.bench.test_interleaving import Making, steady, taking
from tests.bench.test_record import everyone
from xyntra_bench import serve as module
from xyntra_bench.arrivals import arrivals_ns, p99_ns, queued_ns
from xyntra_bench.plan import Budget
from xyntra_bench.record import conclude
from xyntra_bench.results import Bracket, Serving, Stopped, Verdict
from xyntra_bench.serve import WallClock, rate_ratio, serve, serve_all
from xyntra_bench.verdicts import judge

MS = 1_000_000
BUDGET = Budget(rounds=3, warmups=1, min_iterations=1, runs_per_iteration=1, min_time_s=0.0, max_time_s=600.0)


class Virtual:
    def __init__(self) -> None:
        self.now = 0

    def now_ns(self) -> int:
        return self.now

    def wait_until_ns(self, then: int) -> None:
        self.now = max(self.now, then)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "wait_until_idle", lambda: None)


def test_latency_counts_from_the_intended_start() -> None:
    clock = Virtual()
    service = iter([1 * MS] * 10 + [200 * MS] + [1 * MS] * 89)

    def run() -> None:
        clock.now += next(service)

    starts = np.arange(100) * 10 * MS
    latencies = serve(run, starts, 1, clock)
    expected = queued_ns(starts, [1 * MS] * 10 + [200 * MS] + [1 * MS] * 89, workers=1)
    assert latencies.tolist() == expected.tolist() and latencies[11] == 191 * MS


def test_several_workers_answer_every_query_once() -> None:
    together = threading.Barrier(2, timeout=60)
    lock, calls = threading.Lock(), [0]

    def run() -> None:
        with lock:
            calls[0] += 1
            first = calls[0] <= 2
        if first:
            together.wait()  # one after the other they would wait for ever

    latencies = serve(run, np.zeros(50, np.int64), 2, WallClock())
    assert calls == [50] and (latencies > 0).all()


class Serving10(Making):
    """Runs of so many milliseconds, on the virtual clock."""

    def __init__(self, clock: Virtual, ms: int) -> None:
        self._clock, self._ms = clock, ms

    def run(self, feeds: Any) -> None:
        self._clock.now += self._ms * MS


def served(*, bound_ns: int | None = None) -> tuple[Any, Any]:
    clock = Virtual()
    base, ours = taking("CPU", steady(10 * MS)), taking("twice", steady(5 * MS), against="CPU")
    base.factory, ours.factory = Serving10(clock, 10), Serving10(clock, 5)
    base.session, ours.session = base.factory.create()[0], ours.factory.create()[0]
    assert serve_all([base, ours], {}, BUDGET, bound_ns, clock) == (3, Stopped.ENOUGH)
    return base, ours


def test_the_rate_found_holds_the_bound_of_five_runs_of_the_cpu() -> None:
    base, ours = served()
    for runner, ms in ((base, 10), (ours, 5)):
        assert runner.serving.bound_ns == 50 * MS and len(runner.serving.brackets) == 3
        for seed, found in enumerate(runner.serving.brackets):
            queries = runner.serving.probes[0].queries
            p99 = {
                rate: p99_ns(queued_ns(arrivals_ns(rate, queries, seed), [ms * MS] * queries, 1))
                for rate in (found.held_per_s, found.failed_per_s)
            }
            assert p99[found.held_per_s] <= 50 * MS < p99[found.failed_per_s]
    m = conclude(ours, everyone(base, ours))
    assert m.serving == ours.serving and m.ratio is not None and 2 < m.ratio.middle < 3 and m.verdict is Verdict.FASTER
    assert m.latency is not None and m.latency.p99_ns is not None and m.latency.p99_ns <= 50.1 * MS


def test_a_bound_that_nothing_holds_is_said() -> None:
    base, ours = served(bound_ns=9 * MS)
    assert base.serving.rate_per_s is None and ours.serving.rate_per_s is not None
    m = conclude(ours, everyone(base, ours))
    assert m.ratio is None and m.verdict is Verdict.NO_DATA
    none = conclude(base, everyone(base, ours))
    assert "no rate" in none.warnings and none.latency is not None
    lowest = min(base.serving.probes, key=lambda probe: probe.rate_per_s)
    assert none.latency.n == len(base.serving.brackets) * lowest.queries, "the latencies of a rate in each round"


def test_a_short_model_has_a_bound_that_the_system_can_hold() -> None:
    clock = Virtual()
    base = taking("CPU", steady(MS // 100))
    base.factory = Serving10(clock, 0)
    base.session = base.factory.create()[0]
    serve_all([base], {}, BUDGET, None, clock)
    assert base.serving is not None and base.serving.bound_ns == 2 * MS


def serving(*brackets: tuple[float, float]) -> Serving:
    found = tuple(Bracket(held_per_s=held, failed_per_s=failed) for held, failed in brackets)
    return Serving(bound_ns=1, rate_per_s=1.0, brackets=found, probes=())


def test_the_ratio_of_rates_is_as_unsure_as_brackets_and_searches() -> None:
    steady_one = serving(*[(100.0, 105.0)] * 3)
    ratio = rate_ratio(steady_one, serving(*[(150.0, 157.5)] * 3))
    assert ratio is not None and (ratio.middle, ratio.rounds) == (1.5, 3)
    assert (ratio.low, ratio.high) == (round(150 / 105, 4), round(157.5 / 100, 4)) and judge(ratio) is Verdict.FASTER
    assert judge(rate_ratio(steady_one, serving(*[(102.0, 107.0)] * 3))) is Verdict.UNSURE
    wild = serving((60.0, 63.0), (110.0, 115.0), (140.0, 147.0))
    assert judge(rate_ratio(steady_one, wild)) is Verdict.UNSURE
    assert judge(rate_ratio(wild, serving((120.0, 126.0), (220.0, 230.0), (280.0, 294.0)))) is Verdict.FASTER, "in pairs"


def test_too_few_searches_or_one_without_a_rate_have_no_ratio() -> None:
    three = serving(*[(100.0, 105.0)] * 3)
    assert rate_ratio(serving((100, 105), (100, 105)), serving((50, 52), (50, 52))) is None
    assert rate_ratio(three, serving((0, 5), (50, 52), (50, 52))) is None
