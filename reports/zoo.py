"""The README's table: each model against the CPU provider, losing and failing cases included."""

from __future__ import annotations

from collections.abc import Iterator

from bench.results import CaseResult, Measurement, Run, Status
from bench.show import claimed, milliseconds
from reports._markdown import provenance, table
from reports.registry import Report

HEADER = (
    "model",
    "shape",
    "threads",
    "provider",
    "CPU p50 ms",
    "p50 ms",
    "p99 ms (n)",
    "speed-up [95 %]",
    "verdict",
    "max error",
    "nodes",
)


def render(run: Run, source: str) -> str:
    rows = [row for case in run.cases for row in _rows(case)]
    note = (
        "Speed-up is the median ratio of paired turns, CPU provider over contender, with its bootstrap "
        "interval. Max error is max\\|a-b\\| / max\\|b\\| against the CPU provider; a case that exceeds its "
        "bound has no speed-up. Nodes are those the provider runs, of all after ONNX Runtime's optimisation."
    )
    return f"{table(HEADER, rows, left=2)}\n\n{note}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    head = [case.model, case.shape, str(case.threads)]
    if case.status is not Status.OK:
        yield [*head, "-", *["-"] * 4, str(case.status), "-", "-"]
        return
    base = case.baseline.latency if case.baseline else None
    for m in case.contenders:
        yield [*head, m.label, milliseconds(base.p50_ns if base else None), *_cells(m)]


def _cells(m: Measurement) -> list[str]:
    if m.status is not Status.OK or m.latency is None:
        return ["-", "-", "-", str(m.status), "-", "-"]
    latency, ratio, check = m.latency, m.ratio, m.check
    error = "-" if check is None else f"{check.error:.1e}" if check.error is not None else str(check.state)
    return [
        milliseconds(latency.p50_ns),
        f"{milliseconds(latency.p99_ns)} ({latency.n})",
        f"{ratio.median:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio else "-",
        str(m.verdict),
        error,
        claimed(m) or "-",
    ]


REPORTS = [Report(name="zoo", title="The zoo against the CPU provider", render=render)]
