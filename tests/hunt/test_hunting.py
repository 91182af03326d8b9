"""The whole hunter, with faults planted in the child: each is found, sorted and made one node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.hunt.case import Class
from tests.hunt.cli import Plan, fast_compiler, hunt, main
from tests.hunt.report import Distinct, Report, write

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
AROUND = ("Tanh", "Add", "Transpose", "Concat")


def _hunt(tmp_path: Path, fault: str, **more: Any) -> Report:
    """Of a few models around Tanh, until all findings are reduced."""
    environment = {"XYNTRA_CACHE_DIR": str(tmp_path / "cache"), **fast_compiler(tmp_path)}
    preload = f"tests.hunt.processes.planted:{fault}" if fault else ""
    settings = {"cases": 8, "only": AROUND, **more}
    return hunt(Plan(seed=7, minutes=30, reduce_minutes=30, environment=environment, preload=preload, **settings))


def _only_tanh(report: Report, kind: Class) -> Distinct:
    """The finding, which must be one node."""
    assert not report.mistakes
    found = [d for key, d in report.distinct.items() if key[0] is kind]
    assert found, report.table()
    for d in found:
        assert [n.op_type for n in d.case.proto().graph.node] == ["Tanh"], report.lines()
    assert report.beyond()
    return found[0]


def test_wrong_number(tmp_path: Path) -> None:
    report = _hunt(tmp_path, "wrong_tanh")
    found = _only_tanh(report, Class.WRONG)
    assert len(found.case.runs) == 1 and all(a.size == 1 for a in found.case.runs[0].feeds.values())
    write(tmp_path / "found", found)
    healthy = subprocess.run([sys.executable, str(tmp_path / "found" / "run.py")], capture_output=True, text=True)
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr  # no fault is planted there


def test_crash(tmp_path: Path) -> None:
    report = _hunt(tmp_path, "crashing_tanh", cases=3, only=("Tanh", "Add"), reduce_checks=25)
    assert "SIGSEGV" in _only_tanh(report, Class.CRASH).finding.text


def test_a_fault_of_ours_that_costs_a_claim(tmp_path: Path) -> None:
    """The results are right, for ONNX Runtime computes them."""
    assert "KeyError" in _only_tanh(_hunt(tmp_path, "raising_tanh"), Class.FAULT).finding.text


def test_a_plan_that_native_code_refuses(tmp_path: Path) -> None:
    report = _hunt(tmp_path, "invalid_plan", cases=2)
    assert report.by_class[Class.FAULT] and report.beyond()


def test_hang(tmp_path: Path) -> None:
    """Of models with nothing but Tanh: whatever else takes long on a busy machine is not mistaken for it."""
    report = _hunt(tmp_path, "hanging_tanh", cases=1, only=("Tanh",), reduce_checks=3, patience_s=8.0)
    _only_tanh(report, Class.HANG)


def test_a_child_that_cannot_start_is_said_at_once(tmp_path: Path) -> None:
    """And not counted as what ONNX Runtime refuses."""
    with pytest.raises(RuntimeError, match="no_such_fault"):
        _hunt(tmp_path, "no_such_fault")


def test_no_fault_no_finding(tmp_path: Path) -> None:
    report = _hunt(tmp_path, "")
    assert report.counts["runs"] > 30
    assert not [line for line in report.beyond() if "wrong number" in line or "crash" in line]


def test_a_recipe_that_does_not_exist_is_no_hunt_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "Add,MatMulNBits"])
    assert "no recipe is called MatMulNBits. there is ['com.microsoft.MatMulNBits']" in capsys.readouterr().err
