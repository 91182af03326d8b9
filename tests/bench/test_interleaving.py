"""Who takes part in which round, with loads whose times are written down beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.bench.test_record import runner
from xyntra_bench import interleaving
from xyntra_bench.interleaving import Runner, run_interleaved
from xyntra_bench.loads import Sample
from xyntra_bench.plan import Budget
from xyntra_bench.results import Accuracy, Check, Stopped
from xyntra_bench.statistics import MIN_PAIRS

BUDGET = Budget(rounds=4, warmups=1, min_iterations=16, runs_per_iteration=2, min_time_s=0.0, max_time_s=600.0, max_iterations=80)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interleaving, "wait_until_idle", lambda: None)


class Written:
    """A load that runs nothing and says what it was told."""

    def __init__(self, samples: Iterator[Sample]) -> None:
        self._samples = samples

    def sample(self, session: Any, feeds: Any) -> Sample:
        return next(self._samples)


class Making:
    notes = ()

    def create(self, *, watched: bool = False) -> tuple[Any, int]:
        return self, 1

    def run(self, feeds: Any) -> None: ...


def taking(label: str, times_ns: Iterator[int], **others: Any) -> Runner:
    made = runner(label, 1, **others)
    made.factory, made.load, made.samples, made.round_ns = Making(), Written(Sample(ns, ns) for ns in times_ns), [], []
    made.session = made.factory.create()[0]
    return made


def steady(ns: int) -> Iterator[int]:
    while True:
        yield ns


def wild(ns: int) -> Iterator[int]:
    rng = np.random.default_rng(1)
    while True:
        yield int(ns * rng.choice([0.5, 1, 1.5]))


def rounds(r: Runner) -> int:
    return sum(bool(iterations) for iterations in r.round_ns)


def test_a_share_of_many_runs_counts_as_all_of_them() -> None:
    """A burst of concurrent runs fills an iteration, however short the share of one is."""
    burst = taking("CPU", steady(1000))
    burst.load = Written(iter([Sample(1000, 1000, runs=10_000)] * 1000))
    run_interleaved([burst], {}, BUDGET)
    assert len(burst.samples) == 16 * BUDGET.runs_per_iteration
    single = taking("CPU", steady(1000))
    run_interleaved([single], {}, BUDGET)
    assert len(single.samples) == 16 * interleaving.MAX_BLOCK_RUNS


def test_who_is_decided_goes_on_with_the_rest() -> None:
    """Run times beside each other are of the same iterations."""
    base, clear, unclear = (
        taking("CPU", steady(6_000_000)),
        taking("twice", steady(3_000_000), against="CPU"),
        taking("about", wild(5_900_000), against="CPU"),
    )
    count, why = run_interleaved([base, clear, unclear], {}, BUDGET)
    assert why is Stopped.ITERATIONS and count == BUDGET.max_iterations
    assert rounds(clear) == rounds(unclear) == rounds(base) == 20
    assert {sum(map(len, r.round_ns)) for r in (base, clear, unclear)} == {count}


def test_slow_runs_are_made_until_a_p99_can_be_told() -> None:
    """However little time there was meant to be; the time cuts short only where somebody asked for that."""
    base, ours = taking("CPU", steady(6_000_000)), taking("twice", steady(3_000_000), against="CPU")
    asked = replace(BUDGET, min_runs=100, max_time_s=0.0)
    count, why = run_interleaved([base, ours], {}, asked)
    assert why is Stopped.SURE and base.runs >= 100 and ours.runs >= 100 and count == 52
    base, ours = taking("CPU", steady(6_000_000)), taking("twice", steady(3_000_000), against="CPU")
    assert run_interleaved([base, ours], {}, replace(asked, may_cut=True)) == (MIN_PAIRS, Stopped.CUT)
    assert base.runs < 100


def test_of_a_loop_tokens_count() -> None:
    loop = taking("CPU", steady(1))
    loop.load = Written(iter([Sample(30, 30, steps_ns=(10,) * 11)] * 1000))
    run_interleaved([loop], {}, replace(BUDGET, runs_per_iteration=1, min_runs=1000))
    assert loop.runs == 10 * len(loop.samples) >= 1000


def test_the_machine_is_looked_at_after_each_round() -> None:
    samples: list[int] = []
    base, ours = taking("CPU", steady(6_000_000)), taking("twice", steady(3_000_000), against="CPU")
    run_interleaved([base, ours], {}, BUDGET, lambda: samples.append(len(base.samples)))
    assert len(samples) == BUDGET.rounds and samples == sorted(set(samples))


def test_the_turns_end_when_all_are_decided() -> None:
    base, ours = taking("CPU", steady(6_000_000)), taking("twice", steady(3_000_000), against="CPU")
    assert run_interleaved([base, ours], {}, BUDGET) == (16, Stopped.SURE)


def test_a_quick_budget_asks_for_no_more_than_the_least() -> None:
    base, ours = taking("CPU", steady(6_000_000)), taking("about", wild(5_900_000), against="CPU")
    assert run_interleaved([base, ours], {}, replace(BUDGET, until_sure=False)) == (16, Stopped.ENOUGH)


def test_time_that_is_up_leaves_the_turns_that_a_verdict_takes() -> None:
    base, ours = taking("CPU", steady(6_000_000)), taking("about", wild(5_900_000), against="CPU")
    assert run_interleaved([base, ours], {}, replace(BUDGET, max_time_s=0.0, may_cut=True)) == (MIN_PAIRS, Stopped.CUT)
    base, ours = taking("CPU", steady(6_000_000)), taking("about", wild(5_900_000), against="CPU")
    assert run_interleaved([base, ours], {}, replace(BUDGET, max_time_s=0.0)) == (BUDGET.min_iterations, Stopped.TIME)


def test_a_wrong_result_is_not_waited_for() -> None:
    base, ours = taking("CPU", steady(6_000_000)), taking("about", wild(5_900_000), against="CPU")
    ours.check = Check(state=Accuracy.INACCURATE, max_err=1e-5, error=1.0)
    assert run_interleaved([base, ours], {}, BUDGET) == (16, Stopped.SURE)
