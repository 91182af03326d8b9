"""The rule that ends a case, on slowdowns planted in noise that was recorded. Nothing is timed here."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from bench.plan import FULL, QUICK, Budget, Scenario
from bench.results import Measurement, Stopped, Verdict
from bench.statistics import MIN_PAIRS, judge, paired_ratio
from bench.stop import Comparison, Spent, ratio_of_turns, stop, without_verdict
from bench.store import load

RESULTS = Path(__file__).parents[2] / "reports" / "results"
RECORDED = [RESULTS / f"zoo-{made}.json" for made in ("20261120T132107Z", "20261121T211655Z")]  # whatever is stored later
PLAIN = ("XyntraEP", "OpenVINO")
RUNS = 100
STRETCH = 4  # turns in a row that are drawn together: what disturbs one turn often disturbs the next


@dataclass(frozen=True)
class Noise:
    """Of two contenders that took turns: by how much each turn's ratio was off, and what a turn cost."""

    off: npt.NDArray[np.float64]  # logarithms
    turn_s: float

    @classmethod
    def of(cls, base: Measurement, other: Measurement) -> Noise:
        """The stored runs have two timed runs a turn and one before them that was not timed."""
        a, b = (np.reshape(m.samples_ns, (-1, 2)).astype(np.float64) for m in (base, other))
        ratios = np.median(a, axis=1) / np.median(b, axis=1)
        twice = paired_ratio([ratios.tolist()] * 2, [[1.0] * len(ratios)] * 2)
        assert twice is not None
        return cls(off=np.log(ratios) - math.log(twice.middle), turn_s=1.5 * float(a.sum() + b.sum()) / len(a) / 1e9 + 0.01)

    def round(self, turns: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
        begins = rng.integers(0, len(self.off), math.ceil(turns / STRETCH))
        taken = (begins[:, None] + np.arange(STRETCH)).reshape(-1) % len(self.off)
        return np.asarray(self.off[taken[:turns]])


@pytest.fixture(scope="module")
def noises() -> list[Noise]:
    """Every pair of CPU provider and contender in fp32 on one thread: two machines, six models."""
    found = []
    for path in RECORDED:
        for case in load(path).cases:
            if case.threads == 1 and case.scenario is Scenario.SINGLE_STREAM and case.baseline:
                found += [Noise.of(case.baseline, m) for m in case.contenders if m.label in PLAIN]
    return found


def simulate(
    noise: Noise, speed: float, budget: Budget, seed: int, *, sessions_differ: float = 0.0
) -> tuple[Verdict, Stopped, int]:
    """A case whose contender runs `speed` times as fast, until the rule ends it; the sessions of each round may differ
    by a part that is normal with the deviation given."""
    rng = np.random.default_rng(seed)
    least = max(budget.min_turns, budget.min_time_s / noise.turn_s)
    per_round = math.ceil(min(least, max(MIN_PAIRS, budget.max_time_s / noise.turn_s)) / budget.rounds)
    pair = Comparison("base", "other")
    turns: dict[str, list[list[float]]] = {"base": [], "other": []}
    while True:
        lies = rng.normal(0, sessions_differ)
        turns["base"].append(np.exp(lies + noise.round(per_round, rng)).tolist())
        turns["other"].append([1 / speed] * per_round)
        done = len(turns["base"])
        undecided = without_verdict([pair], turns) if done >= budget.rounds else (pair,)
        spent = Spent(rounds=done, turns=done * per_round, seconds=done * per_round * noise.turn_s)
        if why := stop(spent, budget, undecided):
            return judge(ratio_of_turns(turns["base"], turns["other"])), why, spent.turns


def test_the_recorded_noise_is_there(noises: list[Noise]) -> None:
    assert len(noises) >= 15 and all(len(noise.off) >= 12 for noise in noises)


def test_three_percent_slower_is_called_slower_at_the_n_the_rule_chooses(noises: list[Noise]) -> None:
    results = [simulate(noises[seed % len(noises)], 1 / 1.03, FULL, seed) for seed in range(RUNS)]
    verdicts = [verdict for verdict, _, _ in results]
    assert verdicts.count(Verdict.SLOWER) >= 90, verdicts
    assert Verdict.FASTER not in verdicts
    assert all(turns <= FULL.max_turns + FULL.min_turns for _, _, turns in results)
    assert len({turns for _, _, turns in results}) > 10, "noisier pairs get more turns"


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


PAIR = Comparison("a", "b")
BUDGET = replace(FULL, rounds=3, max_time_s=100.0, max_turns=50)


@pytest.mark.parametrize(
    ("spent", "undecided", "until_sure", "why"),
    [
        (Spent(rounds=2, turns=20, seconds=5.0), (), True, None),
        (Spent(rounds=3, turns=30, seconds=5.0), (), True, Stopped.SURE),
        (Spent(rounds=3, turns=30, seconds=5.0), (PAIR,), True, None),
        (Spent(rounds=3, turns=30, seconds=5.0), (PAIR,), False, Stopped.ENOUGH),
        (Spent(rounds=9, turns=40, seconds=100.0), (PAIR,), True, Stopped.TIME),
        (Spent(rounds=1, turns=8, seconds=100.0), (PAIR,), True, Stopped.TIME),
        (Spent(rounds=1, turns=7, seconds=100.0), (PAIR,), True, None),
        (Spent(rounds=9, turns=50, seconds=9.0), (PAIR,), True, Stopped.TURNS),
    ],
)
def test_the_rule(spent: Spent, undecided: tuple[Comparison, ...], until_sure: bool, why: Stopped | None) -> None:
    assert stop(spent, replace(BUDGET, until_sure=until_sure), undecided) is why


def test_only_rounds_that_both_took_part_in_are_compared() -> None:
    base = [[4.0] * 5, [4.0] * 5, [4.0] * 5]
    ratio = ratio_of_turns(base, [[2.0] * 5, [2.0] * 5, []])
    assert ratio is not None and (ratio.rounds, ratio.pairs, ratio.middle) == (2, 10, 2.0)
