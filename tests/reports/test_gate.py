"""Floors: what holds, what does not, and what cannot be told, which holds nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xyntra_bench.cli import app
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Ratio, Run, Status
from xyntra_bench.store import dump
from xyntra_reports.gate import Floors, check_floors, gate_table

FLOORS = Floors(ratio=0.98, roof=0.3)


def with_contender(run: Run, change: Callable[[Measurement], Measurement]) -> Run:
    """The run's good case alone, with another contender."""
    case = run.cases[0]
    return dataclasses.replace(run, cases=(dataclasses.replace(case, contenders=(change(case.contenders[0]),)),))


def with_ratio(run: Run, middle: float, high: float) -> Run:
    ratio = Ratio(middle=middle, low=middle - 0.1, high=high, pairs=8, rounds=4)
    return with_contender(run, lambda m: dataclasses.replace(m, ratio=ratio))


def test_a_good_case_holds_both_floors(run: Run) -> None:
    (ratio, roof) = check_floors(with_contender(run, lambda m: m), "XyntraEP", FLOORS)
    assert ratio.held and ratio.measured.startswith("1.30x [") and ratio.floor == "0.98x"
    assert roof.held and roof.measured == "74%" and roof.floor == "30%"


@pytest.mark.parametrize(("middle", "high", "held"), [(0.9, 0.97, False), (0.9, 0.98, True), (0.9, 1.2, True), (1.0, 1.1, True)])
def test_only_a_whole_interval_below_the_floor_fails(run: Run, middle: float, high: float, held: bool) -> None:
    (row,) = check_floors(with_ratio(run, middle, high), "XyntraEP", Floors(ratio=0.98))
    assert row.held is held


def test_what_cannot_be_told_fails(run: Run) -> None:
    def crashed(m: Measurement) -> Measurement:
        return dataclasses.replace(m, status=Status.CRASHED, error="killed by SIGSEGV\nlog", latency=None, ratio=None)

    rows = {
        row.measured: row.held
        for changed in (
            with_contender(run, crashed),
            with_contender(run, lambda m: dataclasses.replace(m, ratio=None)),
            with_contender(run, lambda m: dataclasses.replace(m, inside=None)),
            dataclasses.replace(run, cases=run.cases[:1], ceilings=()),
            dataclasses.replace(run, cases=run.cases[1:3]),  # one that is wrong, and one that died
        )
        for row in check_floors(changed, "XyntraEP", FLOORS)
        if not row.measured[0].isdecimal()
    }
    said = ["crashed: killed by SIGSEGV", "no ratio: too few iterations", "no profile or no ceilings", "inaccurate"]
    assert list(rows) == said and not any(rows.values())


def test_a_model_far_from_its_roofs_fails(run: Run) -> None:
    rows = check_floors(run, "XyntraEP", Floors(ratio=0.98, roof=0.9))
    assert [(row.what, row.held) for row in rows if row.case == "wins b1 s128 t1"] == [
        ("speed-up [95 %]", True),
        ("% of roof", False),
    ]
    assert gate_table(rows).endswith(f"{sum(row.held for row in rows)} of {len(rows)} floors hold")


def test_others_and_cases_against_themselves_are_not_gated(run: Run) -> None:
    def only(scenario: Scenario) -> Run:
        found: tuple[CaseResult, ...] = tuple(case for case in run.cases if case.scenario is scenario)
        return dataclasses.replace(run, cases=found)

    assert check_floors(only(Scenario.SCALING), "XyntraEP", FLOORS) == ()
    (throughput,) = check_floors(only(Scenario.OFFLINE), "A", FLOORS)
    assert throughput.contender == "A x2" and throughput.held, "not that with one call, which is compared with nothing"
    assert check_floors(only(Scenario.SINGLE_STREAM), "OpenVINO", FLOORS)[0].case == "dies b1 s128 t2"


def test_the_command_exits_with_1_and_names_what_fails(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "run.json"
    file.write_text(dump(with_ratio(run, 0.9, 0.95)))
    refused = CliRunner().invoke(app, ["gate", str(file)])
    assert refused.exit_code == 1 and "FAILS: wins b1 s128 t1 XyntraEP: speed-up [95 %] 0.90x" in refused.output
    assert "0 of 1 floors hold" in refused.output
    assert CliRunner().invoke(app, ["gate", str(file), "--ratio", "0.9"]).exit_code == 0
    nothing = CliRunner().invoke(app, ["gate", str(file), "--provider", "OpenVINO"])
    assert isinstance(nothing.exception, BenchError) and "so nothing is gated" in str(nothing.exception)
