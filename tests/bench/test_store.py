from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.reports.conftest import CEILINGS
from xyntra_bench.contenders import Contender
from xyntra_bench.environment import Environment, read_environment
from xyntra_bench.errors import BenchError
from xyntra_bench.measure import measure
from xyntra_bench.plan import Budget, Case, Plan, zoo_cases
from xyntra_bench.record import result_of
from xyntra_bench.results import CaseResult, Choice, Declined, Inside, KernelTime, LeftOut, Status
from xyntra_bench.store import SCHEMA_FILE, Store, Stored, dump, load

KERNEL = KernelTime(
    island="island0",
    label="gemm",
    variant="gemm.packed_b",
    symbols=("xy_gemm",),
    precision="fp32",
    op_types={"MatMul": 1},
    nodes=("fc",),
    calls=1,
    ns=10,
    flops=20,
    bytes=30,
    resident=None,
    choice=Choice(predicted_ns=8, config={"rows": 6}, tuned=False, runner_up="gemm.dots", runner_up_ns=9),
)
INSIDE = Inside(
    device="",
    runs=3,
    run_ns=15,
    kernels=(KERNEL, dataclasses.replace(KERNEL, precision="int8", choice=None)),
    declined=(Declined(op_type="Det", reason="unsupported", count=1, nodes=("det",)),),
)


@pytest.fixture(scope="module")
def environment() -> Environment:
    return read_environment("gcc 12.2.0")


def failed(case: Case) -> CaseResult:
    return result_of(case, Status.CRASHED, error="killed by SIGSEGV")


def test_a_measured_run_fits_the_schema_and_comes_back_equal(
    tmp_path: Path, plan: Plan, case: Case, fast: Budget, environment: Environment
) -> None:
    schema = json.loads(SCHEMA_FILE.read_text())
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    store = Store.start(tmp_path / "run.json", plan, environment, "bench run zoo")
    contenders = (Contender(provider="CPUExecutionProvider"), Contender(provider="NoSuchEP"))
    store.keep_ceilings((CEILINGS,))
    store.add(measure(case, contenders, fast, tmp_path, quick=True))
    first = store.run.cases[0]
    assert first.baseline is not None and first.baseline.inside is None
    store.add(dataclasses.replace(first, baseline=dataclasses.replace(first.baseline, inside=INSIDE)))
    store.add(failed(case))
    (quantised,) = zoo_cases(["gpt2-prefill-q4-tiny"], (1,), quick=True)
    store.add(measure(quantised, contenders, fast, tmp_path, quick=True))
    store.finish()
    lines = store.path.read_text().splitlines()
    assert any('"label": "gemm"' in line and '"bytes": 30' in line for line in lines), "a row of a table is a line"
    data = json.loads(store.path.read_text())
    validator.validate(data)
    assert ["choice" in kernel for kernel in data["cases"][1]["baseline"]["inside"]["kernels"]] == [True, False]
    assert load(store.path) == store.run
    for case_data, is_quantised in zip(data["cases"], (False, False, False, True), strict=True):
        stored = [m for m in (case_data["baseline"], *case_data["contenders"]) if m and m["latency"]]
        assert all(("float_error" in m) is is_quantised for m in stored)
        assert all(("float_ratio" in m["check"]) is is_quantised for m in stored if m["check"])

    def broken(change: Any) -> bool:
        other = copy.deepcopy(data)
        change(other)
        return not validator.is_valid(other)

    assert broken(lambda d: d.update(schema="xyntra-bench/9"))
    assert broken(lambda d: d.update(surprise=1))
    assert broken(lambda d: d["cases"][0].pop("baseline"))
    assert broken(lambda d: d["cases"][0]["contenders"][0].update(verdict="splendid"))
    assert broken(lambda d: d["cases"][0]["baseline"]["latency"].update(p50_ns=1.5))
    assert broken(lambda d: d["cases"][1]["baseline"]["inside"]["kernels"][0]["choice"].pop("tuned"))
    assert broken(lambda d: d["cases"][3]["baseline"]["float_error"].pop("rms"))
    assert broken(lambda d: d["cases"][3]["contenders"][0]["check"].update(float_ratio="near"))


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "reports" / "results").glob("*.json")), ids=lambda p: p.name)
def test_committed_results_stay_readable(path: Path) -> None:
    run = load(path)
    Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(json.loads(path.read_text()))
    assert dump(run) == path.read_text() and any(m.ratio for case in run.cases for m in case.contenders)


def test_what_is_left_out_is_stored_and_no_longer_planned(tmp_path: Path, plan: Plan, environment: Environment) -> None:
    store = Store.start(tmp_path / "run.json", dataclasses.replace(plan, within_s=60.0), environment, "")
    store.leave_out([LeftOut(case=plan.cases[0].label, seconds=90.0)])
    run = load(store.path)
    assert (run.planned, run.within_s) == (0, 60.0) and run.left_out == (LeftOut(case=plan.cases[0].label, seconds=90.0),)
    Draft202012Validator(json.loads(SCHEMA_FILE.read_text())).validate(json.loads(store.path.read_text()))


def test_each_case_is_on_disk_at_once(tmp_path: Path, plan: Plan, case: Case, environment: Environment) -> None:
    store = Store.start(tmp_path / "deep" / "run.json", plan, environment, "")
    assert load(store.path).cases == () and load(store.path).planned == 1
    store.add(failed(case))
    kept = load(store.path)
    assert len(kept.cases) == 1 and kept.finished == "", "an interrupted run says that it is one"
    store.finish()
    assert load(store.path).finished
    assert [path.name for path in store.path.parent.iterdir()] == ["run.json"]


def test_the_newest_run_is_the_one_that_started_last(tmp_path: Path, plan: Plan, environment: Environment) -> None:
    dates = {"a": ("2026-01-01", "2026-05-01"), "b": ("2026-03-01", "2026-03-02"), "c": ("2026-02-01", "")}
    for name, (started, finished) in dates.items():
        store = Store.start(tmp_path / f"{name}.json", plan, environment, "")
        data = json.loads(store.path.read_text()) | {"started": started, "finished": finished}
        store.path.write_text(json.dumps(data))
    stored = Stored.at(tmp_path)
    assert [path.name for path in stored.runs] == ["a.json", "c.json", "b.json"] and stored.newest()[0].name == "b.json"
    assert stored.newest(lambda run: not run.finished)[0].name == "c.json"
    named = Stored.at(tmp_path / "a.json")
    assert named.by_name and named.newest(lambda run: False)[0].name == "a.json", "what was asked for by name"


def test_unreadable_files_are_explained(tmp_path: Path, plan: Plan, environment: Environment) -> None:
    path = Store.start(tmp_path / "run.json", plan, environment, "").path
    good = path.read_text()
    with pytest.raises(BenchError, match="no such file"):
        load(tmp_path / "absent.json")
    with pytest.raises(BenchError, match=r"no stored results. `bench run zoo"):
        (tmp_path / "empty").mkdir()
        Stored.at(tmp_path / "empty").newest()
    for text, message in (
        ("{", "not JSON"),
        ("[]", "schema None"),
        (good.replace("xyntra-bench/7", "xyntra-bench/9"), "measure again"),
        (good.replace('"planned": 1', '"planned": "1"'), "planned: str instead of int"),
        (good.replace('"planned": 1', '"plenty": 1'), "fields differ: .'planned', 'plenty'."),
    ):
        path.write_text(text)
        with pytest.raises(BenchError, match=message):
            load(path)


def test_the_environment_names_no_user_host_or_path(environment: Environment) -> None:
    text = repr(environment)
    assert str(Path.home()) not in text and str(Path.cwd()) not in text
    assert environment.cpu and environment.packages["onnxruntime"] and environment.cores_usable >= 1
