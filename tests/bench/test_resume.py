"""Which cases are left, and what forbids to go on."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench.contenders import Contender
from xyntra_bench.plan import QUICK, Plan, Target, zoo_cases
from xyntra_bench.record import result_of
from xyntra_bench.results import CaseResult, Run, Status
from xyntra_bench.resume import differences, left_of

CASES = zoo_cases(["resnet50-tiny", "bert-base-tiny"], (1, 2), quick=True)
CPU = Contender(provider="CPUExecutionProvider")
PLAN = Plan(target=Target.ZOO, cases=CASES, contenders=(CPU,), budget=QUICK, quick=True)
COMMAND = "bench run zoo --quick --json r.json"


def result(i: int, status: Status = Status.OK) -> CaseResult:
    return result_of(CASES[i], status, model_sha256="a")


RUN = Run(environment=ENVIRONMENT, budget=QUICK, quick=True, command=COMMAND, planned=4, cases=(result(0), result(2)))


def test_what_is_there_is_not_measured_again_be_it_a_crash() -> None:
    assert left_of(RUN, PLAN) == (CASES[1], CASES[3])
    crashed = dataclasses.replace(RUN, cases=(*RUN.cases, result(1, Status.CRASHED)))
    assert left_of(crashed, PLAN) == (CASES[3],)
    assert left_of(dataclasses.replace(RUN, cases=()), PLAN) == CASES


def test_the_same_plan_goes_on_whatever_the_load() -> None:
    busy = dataclasses.replace(ENVIRONMENT, load_1m=7.0, clock_mhz=1000.0)
    assert differences(RUN, PLAN, busy, f"{COMMAND} --resume", {"resnet50-tiny": "a"}) == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"git_revision": "fff"}, "revision: 0123456789ab, now fff"),
        ({"git_dirty": True}, "local changes: False, now True"),
        ({"packages": {"onnxruntime": "9", "openvino": "1"}}, "onnxruntime: 1.31.1, now 9"),
        ({"packages": {"onnxruntime": "1.31.1", "openvino": "1"}}, "openvino: none, now 1"),
        ({"cpu": "Another"}, "cpu: Example CPU, now Another"),
        ({"quota_cores": None}, "quota_cores: 1.5, now None"),
    ],
)
def test_another_environment_is_refused(change: dict[str, Any], said: str) -> None:
    assert said in differences(RUN, PLAN, dataclasses.replace(ENVIRONMENT, **change), COMMAND, {})


def test_other_options_budgets_cases_and_files_are_refused() -> None:
    (said,) = differences(RUN, PLAN, ENVIRONMENT, "bench run zoo --json r.json -e XyntraEP", {})
    assert said == f"options: it was `{COMMAND}`, now it is `bench run zoo --json r.json -e XyntraEP`"
    longer = dataclasses.replace(PLAN, budget=dataclasses.replace(QUICK, rounds=9))
    assert differences(RUN, longer, ENVIRONMENT, COMMAND, {}) == (f"budget rounds: {QUICK.rounds}, now 9",)
    fewer = dataclasses.replace(PLAN, cases=CASES[:2])
    assert differences(RUN, fewer, ENVIRONMENT, COMMAND, {}) == (f"cases: {CASES[2].label} is there and was not asked for",)
    assert differences(RUN, PLAN, ENVIRONMENT, COMMAND, {"resnet50-tiny": "b"}) == (
        "resnet50-tiny: another file than the one measured",
    )
