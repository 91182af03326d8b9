"""The policy: what a session is for (option `policy`) decides between kernels, threads, devices and evidence. One row for each.

    Policy(goal=Goal.MEMORY).slack          2.5: a kernel may take so many times as long as the fastest and hold less memory
    Policy(goal=Goal.MEMORY).reasons()      (("kernels", "the one that holds the least memory, ..."), ...)

Whoever chooses asks here: `decision.py` for kernels, `interface/context.py` for tuning results, `provider/planner.py` for claims,
`provider/placement.py` for devices. To let a goal decide something else, add a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from xyntra_ep.options import Goal, Options, Tune

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice(Generic[T]):
    value: T
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Generic[T]):
    """What is chosen, ``usual``ly and for other goals."""

    name: str
    usual: Choice[T]
    otherwise: Mapping[Goal, Choice[T]] = field(default_factory=dict)

    def of(self, goal: Goal) -> Choice[T]:
        return self.otherwise.get(goal, self.usual)


SLACK: Row[float] = Row(
    name="kernels",
    usual=Choice(1.0, "the fastest, by tuning results, else by estimates"),
    otherwise={
        Goal.MEMORY: Choice(
            2.5, "the one that holds the least memory, of those that take at most 2.5 times as long as the fastest"
        )
    },
)
ALONE: Row[tuple[bool, ...]] = Row(  # whether a session has the machine to itself; of several answers the first counts more
    name="threads",
    usual=Choice((True, False), "all cores or one: a claim must pay on both, and tuning results of all cores count first"),
    otherwise={
        Goal.LATENCY: Choice((True,), "all cores: a session has the machine to itself"),
        Goal.THROUGHPUT: Choice((False,), "one for each run: other runs have the other cores"),
    },
)
BESIDE: Row[bool] = Row(  # whether independent steps are carried out together, on the processor
    name="steps",
    usual=Choice(True, "independent ones side by side, so that no thread waits"),
    otherwise={
        Goal.THROUGHPUT: Choice(False, "one after the other: a run has one thread, and what was just written is in its cache"),
        Goal.MEMORY: Choice(False, "one after the other: what several make is not held at the same time"),
    },
)
DOUBT: Row[float] = Row(  # times what estimates must promise, more than their own doubt; infinite: never
    name="device",
    usual=Choice(1.0, "with backend=auto a GPU where it surely pays, by whole runs with the copies of their inputs and outputs"),
    otherwise={
        Goal.MEMORY: Choice(math.inf, "with backend=auto the processor: a GPU's driver and buffers need memory of their own"),
    },
)
TUNING: Row[bool] = Row(
    name="tuning",
    usual=Choice(True, "its results count, as the option tune says"),
    otherwise={Goal.MEMORY: Choice(False, "its results do not count: the fastest is not what is looked for")},
)
PRECISION: Row[None] = Row(
    name="precision",
    usual=Choice(None, "what the option precision allows: no goal lowers it"),
    otherwise={Goal.MEMORY: Choice(None, "what the option precision allows; int8w would hold a quarter of the weights")},
)
ROWS: tuple[Row[float] | Row[tuple[bool, ...]] | Row[bool] | Row[None], ...] = (SLACK, ALONE, BESIDE, DOUBT, TUNING, PRECISION)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """``asks_tuning``: whether the options let tuning results decide at all."""

    goal: Goal = Goal.BALANCED
    asks_tuning: bool = True

    @classmethod
    def of(cls, options: Options) -> Policy:
        return cls(goal=options.policy, asks_tuning=options.tune is not Tune.OFF and not options.deterministic)

    @property
    def slack(self) -> float:
        """So many times as long as the fastest a kernel may take that holds less memory."""
        return SLACK.of(self.goal).value

    def threads(self, cores: int) -> tuple[int, ...]:
        """On how many threads kernels are judged, what counts more first."""
        return tuple(dict.fromkeys(max(1, cores) if alone else 1 for alone in ALONE.of(self.goal).value))

    @property
    def side_by_side(self) -> bool:
        """Whether independent steps are carried out together."""
        return BESIDE.of(self.goal).value

    @property
    def device_doubt(self) -> float:
        """So many times what a device must gain beyond the doubt in its estimate; infinite: none is taken that nobody names."""
        return DOUBT.of(self.goal).value

    @property
    def tuned(self) -> bool:
        """Whether tuning results decide."""
        return self.asks_tuning and TUNING.of(self.goal).value

    def reasons(self) -> tuple[tuple[str, str], ...]:
        """What is chosen by which rule, for people."""
        told = {row.name: row.of(self.goal).why for row in ROWS}
        if not self.asks_tuning:
            told[TUNING.name] = "its results do not count: tune=off, or deterministic=1"
        return tuple(told.items())
