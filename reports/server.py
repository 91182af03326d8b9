"""Open loop: the rate of arrivals that each contender answers with its p99 within the bound."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Run, Serving
from xyntra_bench.show import milliseconds, named
from xyntra_reports._markdown import case_table, speed_up
from xyntra_reports.registry import Report

HEADER = (
    "model",
    "provider",
    "workers",
    "bound of p99 ms",
    "queries/s",
    "p50 ms",
    "p99 ms (n)",
    "rate / CPU provider's",
    "searches",
)
NOTE = (
    "Queries arrive at random times (Poisson), whether or not earlier ones are answered; latency counts from the intended start. "
    "Each worker calls Run on the same session, with one intra-op thread. The rate is the highest that kept p99 within the "
    "bound. Every round searches for it with new sessions. The interval of the ratio includes the gap to the next higher rate, "
    "which failed, and the scatter of the searches."
)


def render(run: Run, source: str) -> str:
    return case_table(run, source, Scenario.SERVER, HEADER, _rows, NOTE)


def _rows(case: CaseResult) -> Iterator[list[str]]:
    for m in case.measurements:
        head = [f"{case.model} {case.shape}", named(m), str(m.streams)]
        if m.serving is None or m.latency is None:
            yield [*head, str(m.status)]
            continue
        latency, serving = m.latency, m.serving
        p99 = f"{milliseconds(latency.p99_ns)} ({latency.n})"
        cells = [milliseconds(serving.bound_ns), _rate(serving), milliseconds(latency.p50_ns), p99, speed_up(m.ratio)]
        yield [*head, *cells, str(len(serving.brackets))]


def _rate(serving: Serving) -> str:
    return "none holds" if serving.rate_per_s is None else f"{serving.rate_per_s:.3g}"


REPORTS = [Report(name="server", title="The rate that holds a bound of p99", scenario=Scenario.SERVER, render=render)]
