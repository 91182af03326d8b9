"""The rule that ends a case, on slowdowns planted in noise that was recorded. Nothing is timed here."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from xyntra_bench.plan import FULL, MIN_N_P99, QUICK, Budget
from xyntra_bench.results import Ratio, Stopped, Verdict
from xyntra_bench.statistics import paired_ratio
from xyntra_bench.stop import Comparison, Spent, is_settled, stop, unsettled
from xyntra_bench.verdicts import judge

RECORDED = Path(__file__).parent / "recorded_noise.json"  # run times of two stored runs, on two machines
RUNS = 100
STRETCH = 4  # iterations in a row that are drawn together: what disturbs one iteration often disturbs the next


@dataclass(frozen=True)
class Noise:
    """Of two contenders that took turns: by how much each iteration's ratio was off, and what an iteration cost."""

    off: npt.NDArray[np.float64]  # logarithms
    iteration_s: float

    @classmethod
    def of(cls, base_ns: list[int], other_ns: list[int]) -> Noise:
        """They have two timed runs an iteration and one before them that was not timed."""
        a, b = (np.reshape(samples_ns, (-1, 2)).astype(np.float64) for samples_ns in (base_ns, other_ns))
        ratios = np.median(a, axis=1) / np.median(b, axis=1)
        twice = paired_ratio([ratios.tolist()] * 2, [[1.0] * len(ratios)] * 2)
        assert twice is not None
        return cls(off=np.log(ratios) - math.log(twice.middle), iteration_s=1.5 * float(a.sum() + b.sum()) / len(a) / 1e9 + 0.01)

    def round(self, iterations: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        begins = rng.integers(0, len(self.off), math.ceil(iterations / STRETCH))
        taken = (begins[:, None] + np.arange(STRETCH)).reshape(-1) % len(self.off)
        return np.asarray(self.off[taken[:iterations]])


@pytest.fixture(scope="module")
def noises() -> list[Noise]:
    """Every pair of CPU provider and contender in fp32 on one thread: two machines, six models."""
    return [Noise.of(row["cpu_provider_ns"], row["contender_ns"]) for row in json.loads(RECORDED.read_text())]


def simulate(
    noise: Noise, speed: float, budget: Budget, seed: int, *, sessions_differ: float = 0.0
) -> tuple[Verdict, Stopped, int]:
    """A case whose contender runs `speed` times as fast, until the rule ends it; the sessions of each round may differ
    by a part that is normal with the deviation given."""
    rng = np.random.default_rng(seed)
    least = max(budget.min_iterations, budget.min_time_s / noise.iteration_s, budget.min_runs / budget.runs_per_iteration)
    per_round = math.ceil(least / budget.rounds)
    pair = Comparison("base", "other")
    iterations: dict[str, list[list[float]]] = {"base": [], "other": []}
    while True:
        lies = rng.normal(0, sessions_differ)
        iterations["base"].append(np.exp(lies + noise.round(per_round, rng)).tolist())
        iterations["other"].append([1 / speed] * per_round)
        done = len(iterations["base"])
        left = unsettled([pair], iterations) if done >= budget.rounds else (pair,)
        count = done * per_round
        spent = Spent(rounds=done, iterations=count, runs=count * budget.runs_per_iteration, seconds=count * noise.iteration_s)
        if why := stop(spent, budget, left):
            return judge(paired_ratio(iterations["base"], iterations["other"])), why, spent.iterations


def test_the_recorded_noise_is_there(noises: list[Noise]) -> None:
    assert len(noises) >= 15 and all(len(noise.off) >= 12 for noise in noises)


def test_three_percent_slower_is_called_slower_at_the_n_the_rule_chooses(noises: list[Noise]) -> None:
    results = [simulate(noises[seed % len(noises)], 1 / 1.03, FULL, seed) for seed in range(RUNS)]
    verdicts = [verdict for verdict, _, _ in results]
    assert verdicts.count(Verdict.SLOWER) >= 90, verdicts
    assert Verdict.FASTER not in verdicts
    assert all(iterations <= FULL.max_iterations + FULL.min_iterations for _, _, iterations in results)
    assert len({iterations for _, _, iterations in results}) > 10, "noisier pairs get more iterations"


def test_equal_contenders_are_not_told_apart(noises: list[Noise]) -> None:
    verdicts = [simulate(noises[seed % len(noises)], 1.0, FULL, seed)[0] for seed in range(RUNS)]
    assert sum(verdict in (Verdict.SAME, Verdict.UNSURE) for verdict in verdicts) >= 95, verdicts
    assert verdicts.count(Verdict.SAME) >= 80, "and most are known to be the same"


def test_sessions_that_differ_do_not_tell_equal_contenders_apart(noises: list[Noise]) -> None:
    verdicts = [simulate(noises[s % len(noises)], 1.0, FULL, s, sessions_differ=0.015)[0] for s in range(RUNS)]
    assert sum(verdict in (Verdict.SAME, Verdict.UNSURE) for verdict in verdicts) >= 95, verdicts


def test_a_quick_run_may_be_unsure_but_not_wrong(noises: list[Noise]) -> None:
    verdicts = [simulate(noises[seed % len(noises)], 1.0, QUICK, seed)[0] for seed in range(RUNS)]
    assert sum(verdict in (Verdict.SAME, Verdict.UNSURE) for verdict in verdicts) >= 95, verdicts


@pytest.mark.parametrize("budget", [FULL, QUICK], ids=["full", "quick"])
def test_every_row_has_the_runs_that_a_p99_takes(noises: list[Noise], budget: Budget) -> None:
    for seed, noise in enumerate(noises):
        _, why, iterations = simulate(noise, 1.3, budget, seed)
        assert why in (Stopped.SURE, Stopped.ENOUGH) and iterations * budget.runs_per_iteration >= MIN_N_P99


def test_a_ratio_on_the_border_of_a_verdict_comes_to_an_end(noises: list[Noise]) -> None:
    """Neither faster nor the same for any number of iterations: its interval becomes narrow, and that is all there is to know."""
    calm = min(noises, key=lambda noise: float(noise.off.std()))
    endless = replace(FULL, max_time_s=1e9, max_iterations=100_000)
    ends = [simulate(calm, 1.02, endless, seed) for seed in range(6)]
    assert {why for _, why, _ in ends} == {Stopped.SURE} and Verdict.UNSURE in {verdict for verdict, _, _ in ends}


PAIR = Comparison("a", "b")
BUDGET = replace(FULL, rounds=3, min_iterations=20, min_runs=40, max_time_s=100.0, max_iterations=50)
CUT = replace(BUDGET, may_cut=True)
QUICKLY = replace(BUDGET, until_sure=False)


def spent(rounds: int, iterations: int, seconds: float, runs: int | None = None) -> Spent:
    return Spent(rounds=rounds, iterations=iterations, runs=2 * iterations if runs is None else runs, seconds=seconds)


@pytest.mark.parametrize(
    ("spent", "left", "budget", "why"),
    [
        (spent(2, 20, 5.0), (), BUDGET, None),
        (spent(3, 30, 5.0), (), BUDGET, Stopped.SURE),
        (spent(3, 30, 5.0), (PAIR,), BUDGET, None),
        (spent(3, 30, 5.0), (PAIR,), QUICKLY, Stopped.ENOUGH),
        (spent(3, 30, 5.0, runs=39), (), BUDGET, None),
        (spent(3, 30, 5.0, runs=39), (PAIR,), QUICKLY, None),
        (spent(9, 40, 100.0), (PAIR,), BUDGET, Stopped.TIME),
        (spent(9, 40, 100.0), (), BUDGET, Stopped.SURE),
        (spent(2, 12, 900.0), (PAIR,), BUDGET, None),
        (spent(3, 30, 900.0, runs=39), (PAIR,), BUDGET, None),
        (spent(1, 8, 100.0), (PAIR,), CUT, Stopped.CUT),
        (spent(1, 7, 100.0), (PAIR,), CUT, None),
        (spent(3, 30, 100.0, runs=39), (), CUT, Stopped.CUT),
        (spent(9, 40, 100.0), (PAIR,), CUT, Stopped.TIME),
        (spent(9, 50, 9.0), (PAIR,), BUDGET, Stopped.ITERATIONS),
        (spent(2, 50, 9.0), (PAIR,), BUDGET, Stopped.CUT),
    ],
)
def test_the_rule(spent: Spent, left: tuple[Comparison, ...], budget: Budget, why: Stopped | None) -> None:
    assert stop(spent, budget, left) is why


@pytest.mark.parametrize(
    ("low", "high", "settled"), [(1.1, 1.5, True), (0.9, 1.5, False), (1.016, 1.024, True), (1.01, 1.03, False)]
)
def test_what_is_settled(low: float, high: float, settled: bool) -> None:
    assert is_settled(Ratio(middle=(low + high) / 2, low=low, high=high, pairs=50, rounds=8)) is settled
    assert not is_settled(None)
