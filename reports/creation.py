"""Session creation, which users feel first: cold from an empty kernel cache, warm from a filled one."""

from __future__ import annotations

from collections.abc import Iterator

from bench.results import CaseResult, Run
from bench.show import milliseconds
from reports._markdown import provenance, table
from reports.registry import Report

HEADER = ("model", "provider", "threads", "cold ms", "warm ms", "first run ms", "memory MiB")


def render(run: Run, source: str) -> str:
    rows = [row for case in run.cases for row in _rows(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    for m in (case.baseline, *case.contenders):
        if m is None or m.creation is None:
            continue
        yield [
            f"{case.model} {case.shape}",
            m.label,
            str(case.threads),
            milliseconds(m.creation.cold_ns),
            milliseconds(m.creation.warm_ns),
            milliseconds(m.first_run_ns),
            f"{m.creation.rss_growth_bytes / 2**20:.0f}",
        ]


REPORTS = [Report(name="creation", title="Session creation", render=render)]
