"""Open loop: the rate of arrivals that each contender answers with its p99 within the bound."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Scenario
from bench.results import CaseResult, Run, Serving, Status
from bench.show import milliseconds, named
from reports._markdown import cases_of, provenance, speed_up, table
from reports.registry import Report

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
    "Queries arrive at random times (Poisson) that do not wait for answers; latency counts from the intended start. Each worker "
    "calls Run on the same session, with one intra-op thread. The rate is the highest that held the bound, a search in every "
    "round with new sessions; the interval of the ratio has the gap to the next rate, which failed, and the scatter of searches."
)


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.SERVER) for row in _rows(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    name = f"{case.model} {case.shape}"
    if case.status is not Status.OK:
        yield [name, "-", str(case.threads), "-", str(case.status), *["-"] * 4]
        return
    for m in case.arms:
        if m.serving is None or m.latency is None:
            yield [name, m.label, str(m.streams), "-", str(m.status), *["-"] * 4]
            continue
        latency, serving = m.latency, m.serving
        p99 = f"{milliseconds(latency.p99_ns)} ({latency.n})"
        cells = [milliseconds(serving.bound_ns), _rate(serving), milliseconds(latency.p50_ns), p99, speed_up(m.ratio)]
        yield [name, named(m), str(m.streams), *cells, str(len(serving.brackets))]


def _rate(serving: Serving) -> str:
    return "none holds" if serving.rate_per_s is None else f"{serving.rate_per_s:.3g}"


REPORTS = [Report(name="server", title="The rate that holds a bound of p99", scenario=Scenario.SERVER, render=render)]
