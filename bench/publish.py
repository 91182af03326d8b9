"""The rules that a run must keep before its tables are published. Pure: `bench run` names broken rules, `bench report` refuses.

A run made before there were rules (`rules` is 0) is not refused: its table names the rules that it breaks, until a run on such a
machine replaces it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from xyntra_bench.plan import MIN_N_P99, Scenario, Target
from xyntra_bench.results import CaseResult, Measurement, Moment, Run, Status, Stopped, Warn

UNQUIET = (Warn.LOADED, Warn.STOLEN, Warn.THROTTLED, Warn.CLOCK)
WITHOUT_PERCENTILES = (Target.ARCHITECTURES,)  # tables of medians and ratios alone, which take fewer runs
PLACES = 3  # that a refusal names


class Rule(StrEnum):
    """The value says how a run misses it, `remedy` what to do."""

    FINISHED = "the run was interrupted"
    WHOLE_ISA = "kernels were not made for the processor's widest instructions"
    REACHED_STOP = "ended before its stopping rule"
    TELLS_P99 = f"fewer than {MIN_N_P99} runs, so no p99"
    QUIET = "the machine was not quiet"
    TELLS_QUIET = "it is not recorded whether the machine was quiet"
    CHECKED = "outputs were not compared at the first and at the last run"
    SAME_ITERATIONS = "run times of different iterations beside each other"

    @property
    def remedy(self) -> str:
        return REMEDIES[self]


REMEDIES = {
    Rule.FINISHED: "go on with --resume",
    Rule.WHOLE_ISA: "measure without XYNTRA_ISA",
    Rule.REACHED_STOP: "measure without --max-time, or with more of it",
    Rule.TELLS_P99: "measure without --max-time",
    Rule.QUIET: "stop other programs, and measure again",
    Rule.TELLS_QUIET: "measure on Linux with this version",
    Rule.CHECKED: "measure with this version",
    Rule.SAME_ITERATIONS: "measure with this version",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """A rule, and where: cases, or rows of them, of how many; of the run as a whole none."""

    rule: Rule
    places: tuple[str, ...] = ()
    of: str = ""

    def __str__(self) -> str:
        if not self.places:
            return self.rule
        shown = ", ".join(self.places[:PLACES]) + (" ..." if len(self.places) > PLACES else "")
        return f"{self.rule} in {len(self.places)} of {self.of} ({shown})"


def missed(run: Run, scenario: Scenario) -> tuple[Missed, ...]:
    """What the cases of a scenario miss. Cases and contenders that failed miss nothing: their rows say that they failed."""
    cases = [case for case in run.cases if case.scenario is scenario and case.status is Status.OK]
    found = [Missed(rule=rule) for rule in _of_run(run)]
    by_case = {case.label: set(_of_case(case)) for case in cases}
    by_row = {f"{case.label} {m.label}": set(_of_row(case, m)) for case in cases for m in case.measurements if m.latency}
    for rule in Rule:
        if rule is Rule.TELLS_P99 and run.target in WITHOUT_PERCENTILES:
            continue
        for what, places in (("cases", by_case), ("rows", by_row)):
            if missing := tuple(where for where, rules in places.items() if rule in rules):
                found.append(Missed(rule=rule, places=missing, of=f"{len(places)} {what}"))
    return tuple(found)


def refusal(found: Sequence[Missed]) -> str:
    """In a line: what is missed, and what to do."""
    remedies = dict.fromkeys(one.rule.remedy for one in found)
    return f"{'; '.join(map(str, found))}. {'; '.join(remedies)}"


def _of_run(run: Run) -> Iterator[Rule]:
    if not run.finished:
        yield Rule.FINISHED
    if run.kernels_isa not in ("", run.environment.isa):
        yield Rule.WHOLE_ISA


def _of_case(case: CaseResult) -> Iterator[Rule]:
    if case.stopped not in (Stopped.SURE, Stopped.ENOUGH):
        yield Rule.REACHED_STOP
    if any(warn in case.warnings for warn in UNQUIET):
        yield Rule.QUIET
    if case.foreign_cores is None or case.stolen_cores is None:
        yield Rule.TELLS_QUIET


def _of_row(case: CaseResult, m: Measurement) -> Iterator[Rule]:
    told = m.generation.later_token if m.generation else m.latency
    if told is None or told.p99_ns is None:
        yield Rule.TELLS_P99
    if m.check and not {Moment.FIRST, Moment.LAST} <= set(m.check.moments):
        yield Rule.CHECKED
    ratios = [ratio for ratio in (m.ratio, *m.peers.values()) if ratio]
    if case.scenario is not Scenario.SERVER and any(ratio.pairs != case.iterations for ratio in ratios):
        yield Rule.SAME_ITERATIONS
