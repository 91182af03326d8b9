"""Nets whose sizes only a run knows: dynamic and fixed, beside ONNX Runtime."""

from __future__ import annotations

from xyntra_bench.contenders import BASELINE
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Measurement, Run, Status
from xyntra_bench.show import milliseconds
from xyntra_reports._markdown import cases_of, plain, provenance, speed_up, table
from xyntra_reports.registry import Report

HEADER = (
    "net", "size", "threads", "ORT p50 ms", "dynamic p50 ms", "x ORT", "fixed p50 ms", "x ORT fixed", "gain by fixing [95 %]",
)  # fmt: skip
NOTE = (
    "Small nets with random weights (`bench/nets.py`), whose sizes and batch are dynamic. Dynamic: the model as it is, one plan "
    "for all sizes of a net. Fixed: all sizes are fixed before the session is created, by free dimension overrides. ORT: ONNX "
    "Runtime's CPU provider, with the dynamic model and with the fixed one. Sessions run interleaved in one process. x ORT is a "
    "quotient of medians. The last column is the ratio of paired iterations, dynamic over fixed: 1.00 means that dynamic sizes "
    "cost nothing."
)


def render(run: Run, source: str) -> str:
    cases = cases_of(run, Scenario.SPECIALISED)
    rows = [row for case in cases if (row := _row(case)) is not None]
    return f"{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{provenance(run, source)}\n"


def _row(case: CaseResult) -> list[str] | None:
    by_label = {m.label: m for m in case.measurements}
    fixed = next((m for m in case.measurements if m.against and m.contender.provider != BASELINE), None)
    if fixed is None:
        return None
    net, _, size = case.model.partition("/")
    if fixed.status is not Status.OK:
        return [net, size, str(case.threads), *["-"] * 5, plain(str(fixed.status))]
    ours, cpu, cpu_fixed = (by_label.get(name) for name in (fixed.against, BASELINE, f"{BASELINE} fixed"))
    return [
        net,
        size,
        str(case.threads),
        milliseconds(_p50(cpu)),
        milliseconds(_p50(ours)),
        _quotient(cpu, ours),
        milliseconds(_p50(fixed)),
        _quotient(cpu_fixed, fixed),
        speed_up(fixed.ratio),
    ]


def _p50(m: Measurement | None) -> int | None:
    return m.latency.p50_ns if m is not None and m.latency is not None else None


def _quotient(theirs: Measurement | None, ours: Measurement | None) -> str:
    a, b = _p50(theirs), _p50(ours)
    return f"{a / b:.2f}x" if a and b else "-"


REPORTS = [
    Report(
        name="nets",
        title="Any size",
        target=Target.MICRO,
        scenario=Scenario.SPECIALISED,
        render=render,
        nothing="Not measured yet.",
    )
]
