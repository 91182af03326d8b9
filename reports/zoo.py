"""The README's table: each model against the CPU provider, losing and failing cases included."""

from __future__ import annotations

from collections.abc import Iterator

from bench.contenders import OPENVINO
from bench.plan import Scenario
from bench.results import CaseResult, Measurement, Run, Status
from bench.show import claimed, milliseconds, named
from reports._markdown import bounds, cases_of, provenance, speed_up, table
from reports.registry import Report

PEER = "vs OpenVINO [95 %]"
HEADER = (
    "model",
    "shape",
    "threads",
    "provider",
    "CPU p50 ms",
    "p50 ms",
    "p99 ms (n)",
    "speed-up [95 %]",
    PEER,
    "verdict",
    "max error",
    "nodes",
)


def render(run: Run, source: str) -> str:
    cases = cases_of(run, Scenario.SINGLE_STREAM)
    header = list(HEADER)
    rows = [row for case in cases for row in _rows(case)]
    peers = any(m.provider == OPENVINO for case in cases for m in case.contenders)
    note = (
        "Speed-up is the median ratio of paired turns, CPU provider over contender, with its bootstrap "
        "interval. Max error is max\\|a-b\\| / max\\|b\\| against the CPU provider; a row that exceeds its "
        f"bound ({bounds(cases)}) has no speed-up. Nodes are those the provider runs, of all after ONNX Runtime's optimisation."
    )
    if peers:
        note += f" `{PEER.partition(' [')[0]}` is the same ratio against OpenVINO's own runtime in the same precision."
    else:
        at = header.index(PEER)
        header, rows = _without(header, at), [_without(row, at) for row in rows]
    return f"{table(header, rows, left=2)}\n\n{note}\n\n{provenance(run, source)}\n"


def _without(cells: list[str], at: int) -> list[str]:
    return cells[:at] + cells[at + 1 :]


def _rows(case: CaseResult) -> Iterator[list[str]]:
    head = [case.model, case.shape, str(case.threads)]
    if case.status is not Status.OK:
        yield [*head, "-", *["-"] * 5, str(case.status), "-", "-"]
        return
    base = case.baseline.latency if case.baseline else None
    for m in case.contenders:
        yield [*head, named(m), milliseconds(base.p50_ns if base else None), *_cells(m)]


def _cells(m: Measurement) -> list[str]:
    if m.status is not Status.OK or m.latency is None:
        return [*["-"] * 4, str(m.status), "-", "-"]
    latency, check = m.latency, m.check
    error = "-" if check is None else f"{check.error:.1e}" if check.error is not None else str(check.state)
    return [
        milliseconds(latency.p50_ns),
        f"{milliseconds(latency.p99_ns)} ({latency.n})",
        speed_up(m.ratio),
        " ".join(speed_up(peer) for peer in m.peers.values()) or "-",
        str(m.verdict),
        error,
        claimed(m) or "-",
    ]


REPORTS = [Report(name="zoo", title="The zoo against the CPU provider", render=render)]
