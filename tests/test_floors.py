"""The floors under the count of tests, in runs of their own: whoever skips, loses or does not notice tests is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import floors

TESTS = """
import pytest

@pytest.mark.parametrize("n", range(6))
def test_unit(n, record_property):
    record_property("counted things", (n, 6, 10))
    if n >= PASSING:
        pytest.skip("for the test")
"""
FAULTS = "def test_fault(): pass\n"
CONFTEST = "from tests.support import floors\npytest_addoption, pytest_configure = floors.add_option, floors.register\n"
FLOORS = """
[unit]
tests = 6
passed = 0.5

[faults]
folder = "faults/"
tests = 1
passed = 1.0

[counted]
things = 60
"""


def run(folder: Path, workers: int, *more: str, floors: str = FLOORS, passing: int = 6) -> tuple[int, str]:
    """Its status and what it says."""
    (folder / "faults").mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_unit.py").write_text(TESTS.replace("PASSING", str(passing)))
    (folder / "faults" / "test_faults.py").write_text(FAULTS)
    (folder / "floors.toml").write_text(floors)
    argv = [sys.executable, "-m", "pytest", "-q", "-n", str(workers), "--floors", "floors.toml", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take a second to be loaded
    done = subprocess.run([*argv, "-p", "xdist", *more], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_a_run_of_everything_is_green(tmp_path: Path) -> None:
    status, text = run(tmp_path, 2)
    assert status == 0 and "below the floor" not in text, text


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_that_skips_is_not(workers: int, tmp_path: Path) -> None:
    status, text = run(tmp_path, workers, passing=2)
    assert status == 1 and "unit: 2 tests passed, at least 3 are wanted" in text, text
    assert "things: 20" not in text and "things" not in text, "not all parts ran"
    assert " passed" in text.strip().splitlines()[-1], "pytest's own summary comes last"


def test_a_run_that_loses_a_kind_is_not(tmp_path: Path) -> None:
    status, text = run(tmp_path, 0, "--ignore=faults")
    assert status == 1 and "faults: 0 tests ran or were skipped, there are 1" in text, text
    assert "faults: 0 tests passed, at least 1 are wanted" in text


def test_a_run_without_tests_is_not(tmp_path: Path) -> None:
    status, text = run(tmp_path, 0, "-k", "nothing")
    assert status == 1 and "unit: 0 tests passed" in text, text


def test_more_tests_raise_the_floor(tmp_path: Path) -> None:
    status, text = run(tmp_path, 0, floors=FLOORS.replace("tests = 6", "tests = 4"))
    assert status == 1 and "unit: there are 6 tests; the 4 in floors.toml are to be raised" in text, text


def test_what_tests_count_is_summed_over_workers(tmp_path: Path) -> None:
    status, text = run(tmp_path, 2, floors=FLOORS.replace("things = 60", "things = 61"))
    assert status == 1 and "things: 60, at least 61 are wanted" in text, text


def test_kinds_are_folders() -> None:
    rows = {"unit": {}, "faults": {"folder": "tests/faults/"}}
    found = floors.Floors(rows, strict=True)
    assert found.kind("tests/faults/test_faults.py::test_a") == "faults"
    assert found.kind("tests/test_knobs.py::test_a") == found.kind("bench/plan.py::bench.plan.Case") == "unit"
