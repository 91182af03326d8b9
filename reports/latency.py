"""Distribution of run times per session, baseline included."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Scenario
from bench.results import CaseResult, Run
from bench.show import milliseconds
from reports._markdown import cases_of, provenance, table
from reports.registry import Report

HEADER = ("case", "provider", "n", "min ms", "p50 ms", "p95 ms", "p99 ms", "max ms", "CV", "warnings")


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.SINGLE_STREAM) for row in _rows(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    for m in case.arms:
        if m.latency is None:
            continue
        values = m.latency
        yield [
            f"{case.model} {case.shape} t{case.threads}",
            m.label,
            str(values.n),
            *map(milliseconds, (values.min_ns, values.p50_ns, values.p95_ns, values.p99_ns, values.max_ns)),
            f"{values.cv:.1%}",
            ", ".join((*m.warnings, *case.warnings)) or "-",
        ]


REPORTS = [Report(name="latency", title="Distribution of run times", render=render)]
