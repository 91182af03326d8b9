"""The README's tables: a row for each case of the newest run under the rules, on each class of processors. All columns: `zoo`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xyntra_bench.environment import TABLED, IsaClass
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Latency, Measurement, Run, Status
from xyntra_bench.show import milliseconds
from xyntra_bench.store import Stored
from xyntra_reports._markdown import cases_of, disclosure, plain, provenance, speed_up, table, without_empty
from xyntra_reports._published import heading, published
from xyntra_reports.ratios import unmodified
from xyntra_reports.registry import Report, reports

HOW_TO_READ = (
    "p50 and p99 are in milliseconds, with the number of runs in brackets. Speed-up is the ratio of paired iterations, CPU "
    "provider over XyntraEP, with its 95 % interval."
)


def across(results: Stored) -> str:
    """One table for each class, and which have none."""
    found = {isa: run for isa in TABLED if (run := _under_rules(results, isa))}
    parts = [f"{heading(run[1])}\n\n{render(run[1], run[0])}" for run in found.values()]
    lacking = ", ".join(str(isa) for isa in TABLED if isa not in found)
    if lacking:
        parts.append(f"No run that keeps the rules is stored for {lacking}.\n")
    return "\n".join(parts)


def _under_rules(results: Stored, isa: IsaClass) -> tuple[str, Run] | None:
    found = published(results, reports["zoo"], isa)
    return (found[0].name, found[1]) if found and found[1].rules else None


def render(run: Run, source: str, *, named: Mapping[str, str] | None = None) -> str:
    """``named``: what stands for a precision in the header, where it does not say what is multiplied."""
    cases = cases_of(run, Scenario.SINGLE_STREAM)
    precisions = list(dict.fromkeys(m.contender.precision for case in cases for m in unmodified(case)))
    header = ["model", "shape", "threads", "CPU p50, p99 (n)"]
    shown = [(named or {}).get(p, p) for p in precisions]
    header += [text for p in shown for text in (f"{p} p50, p99 (n)", f"{p} speed-up")]
    told = f"{HOW_TO_READ} {disclosure(run, Scenario.SINGLE_STREAM)}"
    filled = without_empty(header, [_row(case, precisions) for case in cases])
    return f"{table(*filled, left=3)}\n\n{told}\n\n{provenance(run, source)}\n"


def _row(case: CaseResult, precisions: Sequence[str]) -> list[str]:
    head = [case.model, case.shape, str(case.threads)]
    if case.status is not Status.OK:
        return [*head, plain(str(case.status)), *["-"] * (2 * len(precisions))]
    ours = {m.contender.precision: m for m in unmodified(case)}
    cells = [_times(case.baseline.latency if case.baseline else None)]
    for precision in precisions:
        cells += _cells(ours.get(precision))
    return [*head, *cells]


def _cells(m: Measurement | None) -> list[str]:
    if m is None:
        return ["-", "-"]
    return [_times(m.latency) if m.status is Status.OK else str(m.status), speed_up(m.ratio)]


def _times(latency: Latency | None) -> str:
    return f"{milliseconds(latency.p50_ns)}, {milliseconds(latency.p99_ns)} ({latency.n})" if latency else "-"


REPORTS = [Report(name="summary", title="Models against the CPU provider, in short", render=render, across=across)]
