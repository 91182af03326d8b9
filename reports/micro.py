"""Single operators over shapes, the worst first."""

from __future__ import annotations

import math

from xyntra_bench.plan import Target
from xyntra_bench.results import CaseResult, Measurement, Run
from xyntra_bench.show import claimed, milliseconds, named
from xyntra_reports._markdown import provenance, speed_up, table
from xyntra_reports.registry import Report

HEADER = ("point", "provider", "threads", "CPU p50 ms", "p50 ms", "speed-up [95 %]", "verdict", "max error", "nodes")


def render(run: Run, source: str) -> str:
    measured = [(case, m) for case in run.cases for m in case.contenders]
    failed = [case for case in run.cases if not case.contenders]
    measured.sort(key=lambda pair: pair[1].ratio.middle if pair[1].ratio else math.inf)
    rows = [_row(case, m) for case, m in measured] + [_failed(case) for case in failed]
    note = "Each point is a model of its own, so its weights are in the caches if they fit. The slowest points come first."
    return f"{table(HEADER, rows, left=2)}\n\n{note}\n\n{provenance(run, source)}\n"


def _row(case: CaseResult, m: Measurement) -> list[str]:
    base = case.baseline.latency if case.baseline else None
    error = m.check.error if m.check else None
    return [
        case.model,
        named(m),
        str(case.threads),
        milliseconds(base.p50_ns if base else None),
        milliseconds(m.latency.p50_ns if m.latency else None),
        speed_up(m.ratio),
        str(m.verdict if m.latency else m.status),
        "-" if error is None else f"{error:.1e}",
        claimed(m) or "-",
    ]


def _failed(case: CaseResult) -> list[str]:
    return [case.model, "-", str(case.threads), "-", "-", "-", str(case.status), "-", "-"]


REPORTS = [Report(name="micro", title="Single operators over shapes", target=Target.MICRO, render=render)]
