"""Decides when the iterations of a case end: not before the minimum, then as soon as every comparison is settled. Pure.

Looking at the interval after every round, and stopping when it suits, makes a verdict wrong more often than the interval
says. The least number of rounds keeps that small, and tests/bench/test_stop.py plants slowdowns in recorded noise to
show how small: two equal contenders are hardly ever told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xyntra_bench.plan import Budget
from xyntra_bench.results import Ratio, Stopped, Verdict
from xyntra_bench.statistics import MIN_PAIRS, paired_ratio
from xyntra_bench.verdicts import MIN_EFFECT, judge

DECIDED = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME)

Rounds = Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two setups whose ratio is wanted."""

    reference: str
    other: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """`runs` are those timed of the session that has the fewest."""

    rounds: int
    iterations: int
    runs: int
    seconds: float


def stop(spent: Spent, budget: Budget, unsettled: Sequence[Comparison]) -> Stopped | None:
    """After a round: why it was the last, None when another should follow."""
    if spent.rounds < budget.rounds or spent.iterations < budget.min_iterations or spent.runs < budget.min_runs:
        late = budget.may_cut and spent.seconds >= budget.max_time_s and spent.iterations >= MIN_PAIRS
        return Stopped.CUT if late or spent.iterations >= budget.max_iterations else None
    if not unsettled:
        return Stopped.SURE
    if not budget.until_sure:
        return Stopped.ENOUGH
    if spent.seconds >= budget.max_time_s:
        return Stopped.TIME
    return Stopped.ITERATIONS if spent.iterations >= budget.max_iterations else None


def unsettled(wanted: Sequence[Comparison], iterations: Mapping[str, Rounds]) -> tuple[Comparison, ...]:
    """The comparisons that need more iterations; `iterations` holds each setup's, a list per round."""
    return tuple(pair for pair in wanted if not is_settled(paired_ratio(iterations[pair.reference], iterations[pair.other])))


def is_settled(ratio: Ratio | None) -> bool:
    """Whether it has its verdict, or an interval half as wide as the effect that a verdict is about. A ratio that close to the
    border of a verdict would need iterations without end, and `unsure` with so narrow an interval says all there is to say."""
    return ratio is not None and (judge(ratio) in DECIDED or ratio.high / ratio.low <= 1 + MIN_EFFECT / 2)
