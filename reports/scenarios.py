"""All scenarios but the first, each with a table where a run of it is stored; of the others nothing."""

from __future__ import annotations

from xyntra_bench.plan import Scenario
from xyntra_bench.results import Run
from xyntra_bench.store import Stored
from xyntra_reports._published import published, standing
from xyntra_reports.registry import Report, reports

OTHERS = tuple(scenario for scenario in Scenario if scenario is not Scenario.SINGLE_STREAM)


def across(results: Stored) -> str:
    parts = []
    for scenario in OTHERS:
        report = reports[scenario]
        if found := published(results, report):
            path, run = found
            parts += [f"## {report.title}", standing(run, report), report.page(run, path.name)]
    return "\n\n".join(part.rstrip() for part in parts if part) + ("\n" if parts else "")


def render(run: Run, source: str) -> str:
    """Of one run, all that it has."""
    there = [reports[scenario] for scenario in OTHERS if reports[scenario].applies(run)]
    return "\n\n".join(f"## {report.title}\n\n{report.page(run, source)}" for report in there)


REPORTS = [Report(name="scenarios", title="Other scenarios", render=render, across=across)]
