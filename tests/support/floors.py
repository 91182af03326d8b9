"""Floors under the count: a run that skipped or collected nothing, or in which operators declined, is not green.

`--floors tests/floors.toml` compares a run of everything with the file, by kind of test. What tests count themselves
(`record_property("counted NAME", (part, parts, number))`) is held to its floor in every run in which all parts ran, on however
many workers.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

FILE = Path(__file__).resolve().parent.parent / "floors.toml"
GROWTH = 1.15  # so many more tests than the file knows of, and its numbers are too old to mean anything
_COUNTED = "counted "


class Floors:
    """Hears of every report, those of workers too; ``strict``: the whole suite is run."""

    def __init__(self, wanted: Mapping[str, Mapping[str, Any]], *, strict: bool) -> None:
        self.kinds = {name: row for name, row in wanted.items() if name != "counted"}
        self.counted = wanted.get("counted", {})
        self.strict = strict
        self.outcomes: dict[str, str] = {}  # by test
        self.parts: dict[str, dict[int, int]] = {}
        self.of: dict[str, int] = {}  # parts there are

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.outcomes[report.nodeid] = report.outcome
        for name, value in report.user_properties:
            if report.when == "call" and name.startswith(_COUNTED):
                part, parts, number = cast(tuple[int, int, int], value)
                self.of[name] = parts
                self.parts.setdefault(name, {})[part] = number

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ran = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if exitstatus in ran and self.problems():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if problems := self.problems():
            terminalreporter.section("below the floor", red=True)
            for line in problems:
                terminalreporter.line(line, red=True)

    def problems(self) -> list[str]:
        """One line for each floor that was not reached."""
        found = [
            f"{name}: {sum(parts.values())}, at least {self.counted.get(name, 0)} are wanted"
            for name, parts in ((key.removeprefix(_COUNTED), parts) for key, parts in self.parts.items())
            if len(parts) == self.of[_COUNTED + name] and sum(parts.values()) < self.counted.get(name, 0)
        ]
        return found + [line for kind in self.kinds if self.strict for line in self._of_kind(kind)]

    def _of_kind(self, kind: str) -> list[str]:
        row = self.kinds[kind]
        outcomes = Counter(outcome for test, outcome in self.outcomes.items() if self.kind(test) == kind)
        tests, passed = outcomes.total(), outcomes["passed"]
        least = round(row["tests"] * row["passed"])
        lines = []
        if tests < row["tests"]:
            lines.append(f"{kind}: {tests} tests ran or were skipped, there are {row['tests']}")
        if tests > GROWTH * row["tests"]:
            lines.append(f"{kind}: there are {tests} tests; the {row['tests']} in {FILE.name} are to be raised")
        if passed < least:
            lines.append(f"{kind}: {passed} tests passed, at least {least} are wanted")
        return lines

    def kind(self, test: str) -> str:
        """By folder; what has none of its own is of the kind without one."""
        return next(
            (name for name, row in self.kinds.items() if row.get("folder") and test.startswith(row["folder"])),
            next((name for name, row in self.kinds.items() if not row.get("folder")), ""),
        )


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--floors", metavar="FILE", type=Path, help="fail below these numbers of tests: for runs of everything")


def register(config: pytest.Config) -> None:
    """Workers report to the process that started them, and only that one counts."""
    if not hasattr(config, "workerinput"):
        file: Path | None = config.getoption("--floors")
        wanted = tomllib.loads((file or FILE).read_text(encoding="utf-8"))
        config.pluginmanager.register(Floors(wanted, strict=file is not None), "floors")
