"""Which rows a run chooses that was given a time. Nothing is timed here but that something is."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench import execute
from xyntra_bench.codec import encode
from xyntra_bench.contenders import parse_contenders
from xyntra_bench.estimate import COMPILE_S, ESTIMATE, Estimate, fitting, row_s
from xyntra_bench.plan import QUICK, Case, Plan, Scenario, Target, zoo_cases
from xyntra_bench.record import result_of
from xyntra_bench.results import CaseResult, LeftOut, Status
from xyntra_bench.resume import left_of
from xyntra_bench.run import in_child
from xyntra_bench.store import Store, load

CASES = zoo_cases([], (1, 2), quick=True)
PLAN = Plan(target=Target.ZOO, cases=CASES, contenders=parse_contenders(["XyntraEP"]), budget=QUICK, quick=True)
# Milliseconds of a run and seconds of a creation, as they were seen on two cores with AVX-512.
SEEN = {
    "bert-base": (131, 0.9),
    "gpt2-decode": (11, 1.8),
    "gpt2-prefill": (168, 1.7),
    "mobilenetv2": (4, 0.1),
    "resnet50": (36, 0.25),
    "vit-tiny16": (16, 0.2),
    # With AVX512_VNNI, and other programs beside: more than they need.
    "bert-base-dq8": (167, 0.9),
    "gpt2-decode-q4": (32, 3.0),
    "gpt2-prefill-q4": (448, 2.9),
    "mobilenetv2-qdq": (8, 0.4),
    "resnet50-qdq": (59, 0.4),
    "vit-tiny16-qdq": (22, 0.4),
}


def costs_s(slower: float) -> dict[str, float]:
    """Of all rows on a machine so many times slower, whose second core helps little."""
    found = {}
    for case in CASES:
        run_ms, create_s = SEEN[case.model]
        run_s = slower * run_ms / 1e3 / (1.5 if case.threads > 1 else 1)
        found[case.label] = row_s(Estimate(create_s=create_s * slower**0.5, run_s=run_s), case, PLAN)
    return found


def test_ten_minutes_hold_every_float_model_and_most_others_on_an_avx512_machine_and_on_one_three_times_slower() -> None:
    for slower in (1.0, 3.0):
        costs = costs_s(slower)
        chosen = fitting(CASES, costs, 560.0)  # what building and estimating leaves of ten minutes
        assert sum(costs[case.label] for case in chosen) <= 560.0
        models = {case.model for case in chosen if case.threads == 1}
        assert len(models) >= (10 if slower == 1 else 7), models
        assert "bert-base" in models


def test_each_model_has_a_row_before_one_has_two_and_none_is_dropped_unsaid() -> None:
    costs = {case.label: 10.0 * (1 + i) for i, case in enumerate(CASES)}
    chosen = fitting(CASES, costs, 1e9)
    assert [case.threads for case in chosen] == sorted(case.threads for case in CASES)
    kinds = [bool(case.float_model) for case in chosen if case.threads == 1]
    assert kinds == [False] * 6 + [True] * 6, "float models before those that were made from them"
    assert {case.label for case in chosen} == {case.label for case in CASES}
    few = fitting(CASES, costs, 100.0)
    assert all(case.threads == 1 for case in few) and sum(costs[case.label] for case in few) <= 100.0
    (one,) = fitting(CASES, costs, 0.0)
    assert costs[one.label] == min(costs[case.label] for case in CASES if case.threads == 1), "one is always measured"


def test_more_contenders_and_more_runs_cost_more() -> None:
    found, case = Estimate(create_s=1.0, run_s=0.1), CASES[0]
    alone = row_s(found, case, dataclasses.replace(PLAN, contenders=parse_contenders(["CPUExecutionProvider"])))
    ours = row_s(found, case, PLAN)
    assert ours - alone >= COMPILE_S
    assert row_s(found, case, dataclasses.replace(PLAN, budget=dataclasses.replace(QUICK, min_runs=200))) > ours + 20
    loop = dataclasses.replace(case, scenario=Scenario.GENERATE, new_tokens=8)
    assert row_s(found, loop, PLAN) > ours


def test_an_estimate_is_made_in_a_process_of_its_own(case: Case, tmp_path: Path) -> None:
    made = in_child(ESTIMATE, encode(case), tmp_path, 60.0)
    assert made["create_s"] > 0 and made["run_s"] > 0


def plan_of(case: Case) -> Plan:
    second = dataclasses.replace(case, threads=2)
    return Plan(target=Target.ZOO, cases=(case, second), contenders=PLAN.contenders, budget=QUICK, quick=True, within_s=60.0)


def test_what_does_not_fit_is_said_and_stored(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = plan_of(case)
    store = Store.start(tmp_path / "r.json", plan, ENVIRONMENT, "")
    costs = {plan.cases[0].label: 30.0, plan.cases[1].label: 45.0}
    assert execute._chosen(plan, store, plan.cases, costs, 60.0) == plan.cases[:1]
    out = plan.cases[1].label
    assert store.run.left_out == (LeftOut(case=out, seconds=45.0),) and store.run.planned == 1
    told = capsys.readouterr().err
    assert f"left out for time: {out} (about 45 s)" in told and "--within" in told and "1 of 2 rows" in told
    assert left_of(store.run, plan) == plan.cases[:1], "a run that is resumed does not take it up again"


def test_a_row_that_turns_out_dear_costs_a_later_one_and_not_the_time(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock is moved: the first row takes far longer than was estimated."""
    plan, now = plan_of(case), [0.0]

    def slow(case: Case, plan: Plan) -> CaseResult:
        now[0] += 70.0
        return result_of(case, Status.OK)

    monkeypatch.setattr("xyntra_bench.execute.time.monotonic", lambda: now[0])
    monkeypatch.setattr(execute, "run_case", slow)
    monkeypatch.setattr(execute, "_prepare", lambda plan, store, tick: None)
    monkeypatch.setattr(execute, "_costs_s", lambda plan, cases, tick: {case.label: 20.0 for case in cases})
    monkeypatch.setattr(execute, "_measure_ceilings", lambda plan, store, tick: None)
    execute.execute(plan, tmp_path / "r.json", resume=False)
    run = load(tmp_path / "r.json")
    assert [found.label for found in run.cases] == [plan.cases[0].label]
    assert [out.case for out in run.left_out] == [plan.cases[1].label] and run.planned == 1 and run.finished
