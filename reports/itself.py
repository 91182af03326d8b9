"""Each contender against itself: with more threads, with its shapes known beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run, Status
from xyntra_bench.show import milliseconds, named
from xyntra_reports._markdown import case_table, speed_up
from xyntra_reports.registry import Report

HEADERS = {
    Scenario.SCALING: ("1 thread p50 ms", "p50 ms", "1 thread / threads [95 %]"),
    Scenario.SPECIALISED: ("dynamic p50 ms", "fixed p50 ms", "dynamic / fixed [95 %]"),
}
NOTES = {
    Scenario.SCALING: "A session with one intra-op thread and one with several, interleaved in one process; the ratio is of "
    "paired iterations.",
    Scenario.SPECIALISED: "The model with dynamic dimensions, and the same model with its input shapes fixed before the session "
    "is created, interleaved in one process. 1.00x means that fixing gains nothing.",
}


def render(run: Run, source: str, *, scenario: Scenario) -> str:
    return case_table(run, source, scenario, ("model", "provider", "threads", *HEADERS[scenario]), _rows, NOTES[scenario])


def _rows(case: CaseResult) -> Iterator[list[str]]:
    by_label = {m.label: m for m in case.measurements}
    for m in case.measurements:
        if not m.against:
            continue
        reference = by_label.get(m.against)
        result = speed_up(m.ratio) if m.status is Status.OK else str(m.status)
        label = named(m).removeprefix(m.label)
        yield [f"{case.model} {case.shape}", f"{m.contender.label}{label}", str(case.threads), _p50(reference), _p50(m), result]


def _p50(m: Measurement | None) -> str:
    return milliseconds(m.latency.p50_ns if m and m.latency else None)


TITLES = {
    Scenario.SCALING: "Several threads against one",
    Scenario.SPECIALISED: "Fixed shapes against dynamic ones",
}
REPORTS = [
    Report(name=scenario.value, title=title, scenario=scenario, render=partial(render, scenario=scenario))
    for scenario, title in TITLES.items()
]
