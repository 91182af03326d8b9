"""Two stored runs: ratios of ratios, what lost, what failed."""

from __future__ import annotations

import dataclasses
import io
import math
import re
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench.cli import app
from xyntra_bench.compare import compare_runs, ratio_of_ratios
from xyntra_bench.compare_table import show_comparison
from xyntra_bench.plan import QUICK
from xyntra_bench.results import Accuracy, CaseResult, Check, Measurement, Ratio, Run, Status, Verdict, Weights
from xyntra_bench.store import dump

CPU = Measurement(label="CPU", provider="CPU", options={}, status=Status.OK)


def ratio(middle: float, width: float = 0.004) -> Ratio:
    return Ratio(middle=middle, low=middle * (1 - width), high=middle * (1 + width), pairs=48, rounds=8)


def measured(speed_up: float | None, *, status: Status = Status.OK, check: Accuracy = Accuracy.OK) -> Measurement:
    return Measurement(
        label="A",
        provider="A",
        options={},
        status=status,
        error="boom\nlog" if status is not Status.OK else "",
        against="CPU",
        check=Check(state=check, max_err=1e-5, error=1e-6),
        ratio=None if speed_up is None else ratio(speed_up),
    )


def case(model: str, m: Measurement | None, status: Status = Status.OK) -> CaseResult:
    return CaseResult(
        model=model,
        family="",
        shape="b1",
        batch=1,
        seq=None,
        threads=1,
        model_sha256="",
        weights=Weights.RANDOM,
        status=status,
        error="" if status is Status.OK else "killed by SIGSEGV\nlog",
        baseline=CPU if m else None,
        contenders=(m,) if m else (),
    )


def run(*cases: CaseResult) -> Run:
    return Run(environment=ENVIRONMENT, budget=QUICK, finished="x", planned=len(cases), cases=cases)


OLD = run(
    case("same", measured(1.5)),
    case("worse", measured(1.5)),
    case("better", measured(1.0)),
    case("fails", measured(1.2)),
    case("crashes", measured(1.2)),
    case("gone", measured(1.1)),
    case("never", measured(None, status=Status.FAILED)),
)
NEW = run(
    case("same", measured(1.5)),
    case("worse", measured(1.2)),
    case("better", measured(1.3)),
    case("fails", measured(None, check=Accuracy.INACCURATE)),
    case("crashes", None, Status.CRASHED),
    case("never", measured(None, status=Status.FAILED)),
    case("fresh", measured(2.0)),
)


def test_every_case_has_its_change_or_says_why_not() -> None:
    comparison = compare_runs(OLD, NEW)
    verdicts = {change.case.split()[0]: (change.verdict, change.why, change.worse) for change in comparison.changes}
    assert verdicts == {
        "same": (Verdict.SAME, "", False),
        "worse": (Verdict.SLOWER, "", False),
        "better": (Verdict.FASTER, "", False),
        "fails": (Verdict.NO_DATA, "now inaccurate", True),
        "crashes": (Verdict.NO_DATA, "crashed: killed by SIGSEGV", True),
        "never": (Verdict.NO_DATA, "now failed: boom", False),
        "fresh": (Verdict.NO_DATA, "only in the new run", False),
        "gone": (Verdict.NO_DATA, "only in the old run", False),
    }
    assert comparison.mean == pytest.approx((1.0 * 0.8 * 1.3) ** (1 / 3), rel=1e-3), "over the cases that passed"
    assert [change.case for change in comparison.slower] == ["worse b1 t1"] and not comparison.good


def test_one_run_with_itself_has_not_changed() -> None:
    comparison = compare_runs(NEW, NEW)
    assert comparison.good and comparison.mean == 1.0 and comparison.notes == ()
    assert {change.verdict for change in comparison.passing} == {Verdict.SAME}


def test_a_crash_that_was_there_before_is_listed_and_no_step_back() -> None:
    crashed = run(case("dies", None, Status.CRASHED))
    comparison = compare_runs(crashed, crashed)
    assert [change.why for change in comparison.failing] == ["crashed: killed by SIGSEGV"] and comparison.good


def test_the_interval_is_as_wide_as_both() -> None:
    found = ratio_of_ratios(ratio(1.5, 0.03), ratio(1.2, 0.04))
    assert found.middle == 0.8
    assert math.log(found.high / found.middle) == pytest.approx(math.hypot(0.03, 0.04), rel=0.05)
    assert found.low < 0.8 * (1 - 0.04)


def test_what_differs_beside_the_revision_is_said() -> None:
    other = dataclasses.replace(ENVIRONMENT, cpu="Another", packages={"onnxruntime": "9"}, quota_cores=None)
    notes = compare_runs(OLD, dataclasses.replace(NEW, environment=other, quick=True, finished="", planned=9)).notes
    assert notes == (
        "two machines: Example CPU, then Another. measure both revisions on one",
        "onnxruntime 1.31.1, then 9",
        "other cores or another quota",
        "the new run is a quick one: small changes cannot be told",
        "the new run was interrupted: 7 of 9 cases",
    )


def test_the_table_keeps_losing_cases_and_lists_failures() -> None:
    console = Console(file=io.StringIO(), width=200)
    show_comparison(console, compare_runs(OLD, NEW))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the StringIO above
    assert re.split(r"  +", lines[2])[:2] == ["worse b1 t1", "A"] and lines[2].endswith("  slower")
    assert "1.013x in geometric mean of 3 that both runs measured" in lines
    assert "slower: worse b1 t1 A 0.800x" in lines and "! fails b1 t1 A: now inaccurate" in lines


def test_the_exit_status_says_whether_something_became_worse(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(dump(OLD))
    new.write_text(dump(NEW))
    assert CliRunner().invoke(app, ["compare", str(old), str(new)]).exit_code == 1
    assert CliRunner().invoke(app, ["compare", str(new), str(new)]).exit_code == 0


def test_as_a_document_what_changed_comes_first(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(dump(OLD))
    new.write_text(dump(NEW))
    shown = CliRunner().invoke(app, ["compare", "--markdown", str(old), str(new)])
    lines = shown.output.splitlines()
    assert shown.exit_code == 1 and lines[0].startswith("| case | provider | old | new |")
    assert lines[2] == "| worse b1 t1 | A | 1.500 | 1.200 | 0.800 [0.795, 0.804] | slower |"
    assert lines[3].startswith("| fails b1 t1 ") and lines.index("slower: worse b1 t1 A 0.800x") > lines.index("")


def test_another_backend_is_another_thing() -> None:
    """As `backend=auto` may take where there is a GPU."""
    auto = dataclasses.replace(measured(2.0), provider="XyntraEP", options={"backend": "auto"})
    taken = dataclasses.replace(auto, ratio=ratio(9.0), device="CUDA / Example / sm_90 / driver 12.8")
    [change] = compare_runs(run(case("m", auto)), run(case("m", taken))).changes
    assert change.ratio is None and change.why == "backend cpu before, now cuda" and not change.worse
    [change] = compare_runs(run(case("m", taken)), run(case("m", taken))).changes
    assert change.ratio is not None
