"""Throughput: several Run calls at a time on one session, against the CPU provider and against one call."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run, Status
from xyntra_bench.show import milliseconds, named
from xyntra_reports._markdown import case_table, speed_up
from xyntra_reports.registry import Report

HEADER = (
    "model",
    "provider",
    "calls",
    "1 call: ms a run",
    "ms a run",
    "throughput / CPU provider's [95 %]",
    "throughput / 1 call [95 %]",
)
NOTE = (
    "Concurrent Run calls on one session with one intra-op thread, `calls` at a time; OpenVINO gets as many streams. The time "
    "of a run is the time of all divided by their number."
)


def render(run: Run, source: str) -> str:
    return case_table(run, source, Scenario.OFFLINE, HEADER, _rows, NOTE)


def _rows(case: CaseResult) -> Iterator[list[str]]:
    alone = {m.contender.label: m for m in case.measurements if m.streams == 1}
    for m in case.measurements:
        if m.streams < 2:
            continue
        one = alone.get(m.contender.label)
        gain = speed_up(m.peers.get(one.label)) if one else "-"
        result = speed_up(m.ratio) if m.status is Status.OK else str(m.status)
        label = named(m).removeprefix(m.label)
        yield [f"{case.model} {case.shape}", f"{m.contender.label}{label}", str(m.streams), _p50(one), _p50(m), result, gain]


def _p50(m: Measurement | None) -> str:
    return milliseconds(m.latency.p50_ns if m and m.latency else None)


REPORTS = [Report(name="offline", title="Concurrent calls on one session", scenario=Scenario.OFFLINE, render=render)]
