"""What a run must hold before a table of it is published: each rule broken alone is named, with what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from tests.reports.conftest import ENVIRONMENT, case, generated
from xyntra_bench.plan import FULL, Scenario
from xyntra_bench.publish import UNQUIET, Rule, missed, refusal
from xyntra_bench.results import CaseResult, Measurement, Moment, Run, Status, Stopped, Warn

GOOD = case("good", 1)
RUN = Run(environment=ENVIRONMENT, budget=FULL, finished="x", planned=2, cases=(GOOD, case("second", 1)))
SINGLE = Scenario.SINGLE_STREAM


def with_case(**changes: object) -> Run:
    return dataclasses.replace(RUN, cases=(dataclasses.replace(GOOD, **changes), RUN.cases[1]))  # type: ignore[arg-type]


def with_contender(change: Callable[[Measurement], Measurement]) -> Run:
    return with_case(contenders=tuple(map(change, GOOD.contenders)))


def short(m: Measurement) -> Measurement:
    assert m.latency
    return dataclasses.replace(m, latency=dataclasses.replace(m.latency, n=99, p99_ns=None))


def of_fewer_iterations(m: Measurement) -> Measurement:
    assert m.ratio
    return dataclasses.replace(m, ratio=dataclasses.replace(m.ratio, pairs=m.ratio.pairs - 1))


def checked_once(m: Measurement) -> Measurement:
    assert m.check
    return dataclasses.replace(m, check=dataclasses.replace(m.check, moments=(Moment.FIRST,)))


def test_a_run_that_keeps_every_rule_misses_none() -> None:
    assert missed(RUN, SINGLE) == ()
    for stopped in (Stopped.SURE, Stopped.ENOUGH):
        assert missed(with_case(stopped=stopped, warnings=(Warn.QUICK,)), SINGLE) == ()


BROKEN: list[tuple[Run, Rule]] = [
    (dataclasses.replace(RUN, finished=""), Rule.FINISHED),
    (dataclasses.replace(RUN, kernels_isa="scalar"), Rule.WHOLE_ISA),
    *((with_case(stopped=stopped), Rule.REACHED_STOP) for stopped in (Stopped.CUT, Stopped.TIME, Stopped.ITERATIONS, None)),
    *((with_case(warnings=(warn,)), Rule.QUIET) for warn in UNQUIET),
    (with_case(stolen_cores=None), Rule.TELLS_QUIET),
    (with_case(foreign_cores=None), Rule.TELLS_QUIET),
    (with_contender(short), Rule.TELLS_P99),
    (with_contender(of_fewer_iterations), Rule.SAME_ITERATIONS),
    (with_contender(checked_once), Rule.CHECKED),
]


@pytest.mark.parametrize(("run", "rule"), BROKEN, ids=[f"{i}-{rule.name.lower()}" for i, (_, rule) in enumerate(BROKEN)])
def test_each_rule_is_named_with_its_place_and_what_to_do(run: Run, rule: Rule) -> None:
    (found,) = missed(run, SINGLE)
    assert found.rule is rule
    text = refusal([found])
    assert text.startswith(rule) and text.endswith(rule.remedy)
    if found.places:
        (place,) = found.places
        assert place.startswith("good b1 s128 t1") and "second" not in text and found.of in ("2 cases", "4 rows")


def test_every_rule_is_broken_above_and_has_a_remedy() -> None:
    assert {rule for _, rule in BROKEN} == set(Rule) and all(rule.remedy for rule in Rule)


def test_what_failed_says_so_in_its_row_and_refuses_nothing() -> None:
    (m,) = GOOD.contenders
    failed = dataclasses.replace(m, status=Status.FAILED, latency=None, check=None, ratio=None)
    cases = (dataclasses.replace(GOOD, contenders=(failed,)), case("dies", 1, Status.CRASHED))
    assert missed(dataclasses.replace(RUN, cases=cases), SINGLE) == ()


def test_only_the_scenario_of_a_table_counts() -> None:
    other = dataclasses.replace(GOOD, scenario=Scenario.SCALING, stopped=Stopped.CUT)
    run = dataclasses.replace(RUN, cases=(*RUN.cases, other))
    assert missed(run, SINGLE) == () and [one.rule for one in missed(run, Scenario.SCALING)] == [Rule.REACHED_STOP]


def test_of_a_loop_the_tokens_count() -> None:
    loops: CaseResult = generated()
    (ours, _) = loops.contenders
    assert ours.generation
    few = dataclasses.replace(ours.generation.later_token, p99_ns=None)
    ours = dataclasses.replace(ours, generation=dataclasses.replace(ours.generation, later_token=few))
    run = dataclasses.replace(RUN, cases=(dataclasses.replace(loops, contenders=(ours,)),))
    assert [one.rule for one in missed(run, Scenario.GENERATE)] == [Rule.TELLS_P99]
