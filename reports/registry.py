"""What a report file declares: one `Report` row per table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bench.plan import Scenario, Target
from bench.results import Run
from zoo.registry import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`render` turns a stored run into Markdown; `source` is the name of the file it came from."""

    name: str
    title: str
    render: Callable[[Run, str], str]
    target: Target = Target.ZOO
    scenario: Scenario = Scenario.SINGLE_STREAM  # a run without such cases has nothing to say here

    def applies(self, run: Run) -> bool:
        return run.target is self.target and any(case.scenario is self.scenario for case in run.cases)


reports: Registry[Report] = Registry("reports", "REPORTS")
