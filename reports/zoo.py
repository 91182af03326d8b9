"""The main table: each model against the CPU provider, losing and failing cases included."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from xyntra_bench.contenders import OPENVINO
from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run, Status
from xyntra_bench.show import against_float, claimed, milliseconds, named, verdict
from xyntra_reports._markdown import bounds, cases_of, disclosure, provenance, speed_up, table
from xyntra_reports.registry import Report

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
FLOAT_HEADER = ("CPU against float", "against float")
PEER_HEADER = ("OpenVINO p50 ms (error)", "vs OpenVINO [95 %]")
NOTE = (
    "In a shape, b is the batch and s the length of the sequence. All p50 and p99 of a row are of the same iterations; n is the "
    "number of timed runs of the provider. Speed-up is the interquartile mean of the ratios of paired iterations, CPU provider "
    "over contender, with its bootstrap interval. Max error is max\\|a-b\\| / max\\|b\\| against the CPU provider, the larger of "
    "the first run's and the last run's; a row that exceeds its bound has no speed-up. Nodes are those that the provider runs, "
    "of all nodes after ONNX Runtime's optimisation. OpenVINO is its own runtime in the same precision with as many threads, "
    "interleaved in the same process.\n"
)


def render(run: Run, source: str, *, scenario: Scenario = Scenario.SINGLE_STREAM) -> str:
    cases = cases_of(run, scenario)
    peers = any(m.provider == OPENVINO for case in cases for m in case.contenders)
    quantised = any(m.float_error for case in cases for m in case.measurements)
    header = (*HEADER, *(PEER_HEADER if peers else ()), *(FLOAT_HEADER if quantised else ()))
    rows = [[*row, *(peer if peers else []), *(moved if quantised else [])] for case in cases for row, peer, moved in _rows(case)]
    told = f"Bounds of the error: {bounds(cases)}. {disclosure(run, scenario)}"
    return f"{table(header, rows, left=4)}\n\n{told}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Cells of the columns that every table has, of those about OpenVINO, and of those about float models."""
    head = [case.model, case.shape, str(case.threads)]
    if case.status is not Status.OK:
        yield [*head, "-", *["-"] * 4, str(case.status), "-", "-"], ["-", "-"], ["-", "-"]
        return
    base = case.baseline.latency if case.baseline else None
    ours = [m for m in case.contenders if m.provider != OPENVINO]
    theirs = {m.contender.precision: m for m in case.contenders if m.provider == OPENVINO}
    alone = [m for precision, m in theirs.items() if precision not in {m.contender.precision for m in ours}]
    for m in (*ours, *alone):
        peer = theirs.get(m.contender.precision)
        peer = None if peer is m else peer
        cells = [*head, named(m), milliseconds(base.p50_ns if base else None), *_cells(case, m)]
        moved = [against_float(one.float_error) or "-" if one else "-" for one in (case.baseline, m)]
        yield cells, _peer_cells(m, peer), moved


def _cells(case: CaseResult, m: Measurement) -> list[str]:
    if m.status is not Status.OK or m.latency is None:
        return ["-", "-", "-", str(m.status), "-", "-"]
    latency = m.latency
    return [
        milliseconds(latency.p50_ns),
        f"{milliseconds(latency.p99_ns)} ({latency.n})",
        speed_up(m.ratio),
        verdict(case, m),
        _error(m),
        claimed(m) or "-",
    ]


def _peer_cells(m: Measurement, peer: Measurement | None) -> list[str]:
    if peer is None:
        return ["-", "-"]
    if peer.latency is None:
        return [str(peer.status), "-"]
    return [f"{milliseconds(peer.latency.p50_ns)} ({_error(peer)})", speed_up(m.peers.get(peer.label))]


def _error(m: Measurement) -> str:
    if m.check is None:
        return "-"
    return f"{m.check.error:.1e}" if m.check.error is not None else str(m.check.state)


REPORTS = [
    Report(name="zoo", title="The zoo against the CPU provider", render=render, note=NOTE, by_isa=True),
    Report(
        name="prebuilt",
        title="The zoo without a compiler",
        render=render,
        note=NOTE,
        nothing="Not measured yet: `XYNTRA_CC=none bench run zoo --json reports/results/prebuilt.json` measures it.\n",
        by_isa=True,
        without_compiler=True,
    ),
    Report(
        name="multi-stream",
        title="Batches against the CPU provider",
        scenario=Scenario.MULTI_STREAM,
        render=partial(render, scenario=Scenario.MULTI_STREAM),
        note=NOTE,
    ),
]
