"""The head of the README: how many times as fast, from the slowest row to the fastest, on each class of processors."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.contenders import CPU_BACKEND, PLUGINS
from xyntra_bench.environment import IsaClass
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run, Verdict
from xyntra_bench.store import Stored
from xyntra_reports._markdown import cases_of, plain
from xyntra_reports._published import published
from xyntra_reports.registry import Report, reports

HOW = "`bench run zoo --json reports/results/zoo.json`"


def across(results: Stored) -> str:
    """A line for each class that a run under the rules is stored of."""
    found = [published(results, reports["zoo"], isa) for isa in IsaClass]
    lines = [line for one in found if one and one[1].rules and (line := _line(one[1]))]
    if not lines:
        return f"No run that keeps the [rules of publishing](bench/README.md#publishing) is stored yet: {HOW} makes one.\n"
    return "\n".join(
        ["Measured against ONNX Runtime's CPU provider on the models of the zoo ([tables](#results)):", "", *lines, ""]
    )


def render(run: Run, source: str) -> str:
    return f"{_line(run)}\n"


def _line(run: Run) -> str:
    spans = "; ".join(_spans(run))
    return f"- {run.environment.isa} ({plain(run.environment.cpu)}, {run.started[:10]}): {spans}" if spans else ""


def unmodified(case: CaseResult) -> Iterator[Measurement]:
    """Our provider on the CPU, with no option but a precision."""
    for m in case.contenders:
        if m.provider in PLUGINS and m.backend == CPU_BACKEND and not set(m.options) - {"precision"}:
            yield m


def _spans(run: Run) -> Iterator[str]:
    """For each precision, with the rows that lose and those that have no ratio."""
    rows: dict[str, list[Measurement]] = {}
    for case in cases_of(run, Scenario.SINGLE_STREAM):
        for m in unmodified(case):
            rows.setdefault(m.contender.precision, []).append(m)
    for precision, found in rows.items():
        ratios = [m.ratio.middle for m in found if m.ratio]
        if not ratios:
            continue
        slower = sum(m.verdict is Verdict.SLOWER for m in found)
        lost = f", {len(found) - len(ratios)} without a ratio" if len(found) > len(ratios) else ""
        yield f"{min(ratios):.2f}x to {max(ratios):.2f}x in {precision} ({len(found)} rows, {slower} of them slower{lost})"


REPORTS = [Report(name="ratios", title="Range of the ratios", render=render, across=across)]
