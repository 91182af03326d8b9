"""When the turns of a case end: not before the least, then as soon as every comparison has its verdict. Pure.

Looking at the interval after every round, and stopping when it suits, makes a verdict wrong more often than the interval
says. The least number of rounds keeps that small, and tests/bench/test_stop.py plants slowdowns in recorded noise to
show how small: two equal contenders are hardly ever told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.plan import Budget
from bench.results import Ratio, Stopped, Verdict
from bench.statistics import MIN_PAIRS, judge, paired_ratio

DECIDED = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME)

Rounds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two arms whose ratio is wanted."""

    reference: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    rounds: int
    turns: int
    seconds: float


def stop(spent: Spent, budget: Budget, undecided: Sequence[Comparison]) -> Stopped | None:
    """After a round: why it was the last, None when another should follow."""
    if spent.seconds >= budget.max_time_s and spent.turns >= MIN_PAIRS:
        return Stopped.TIME
    if spent.turns >= budget.max_turns:
        return Stopped.TURNS
    if spent.rounds < budget.rounds:
        return None
    if not undecided:
        return Stopped.SURE
    return None if budget.until_sure else Stopped.ENOUGH


def without_verdict(wanted: Sequence[Comparison], turns: Mapping[str, Rounds]) -> tuple[Comparison, ...]:
    """The comparisons that need more turns; `turns` holds each arm's, a list per round."""
    return tuple(pair for pair in wanted if judge(ratio_of_turns(turns[pair.reference], turns[pair.other])) not in DECIDED)


def ratio_of_turns(reference: Rounds, other: Rounds) -> Ratio | None:
    """Over the rounds in which both took part: an arm whose comparisons are decided sits out the rest."""
    shared = [(a, b) for a, b in zip(reference, other, strict=True) if a and b]
    return paired_ratio([a for a, _ in shared], [b for _, b in shared])
