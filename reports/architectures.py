"""Architectures as PyTorch exports them, dynamic and fixed, beside ONNX Runtime: the slowest first."""

from __future__ import annotations

import math

from xyntra_bench.contenders import BASELINE
from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Measurement, Ratio, Run, Status
from xyntra_bench.show import claimed, milliseconds
from xyntra_reports._markdown import cases_of, plain, provenance, speed_up, table
from xyntra_reports.registry import Report

BAR = 0.98  # what no interval may lie below
HEADER = (
    "architecture", "sizes", "threads", "ORT p50 ms", "dynamic p50 ms", "x ORT [95 %]", "fixed p50 ms", "x ORT fixed [95 %]",
    "gain by fixing [95 %]", "max error", "nodes",
)  # fmt: skip
NOTE = (
    "Each architecture is a row of `bench/architectures` with random weights, exported by PyTorch with those dimensions dynamic "
    "that users usually leave dynamic. Fixed: all sizes are fixed before the session is created, by free dimension overrides, "
    "for XyntraEP and for ONNX Runtime's CPU provider. All sessions run interleaved in one process, with default options."
)


def render(run: Run, source: str) -> str:
    cases = sorted(cases_of(run, Scenario.SPECIALISED), key=_order)
    rows = [_row(case) for case in cases]
    return f"{_summary(cases)}\n\n{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{provenance(run, source)}\n"


def _dynamic_and_fixed(case: CaseResult) -> tuple[Measurement | None, Measurement | None]:
    """Ours, dynamic and fixed."""
    ours = [m for m in case.measurements if m.provider != BASELINE]
    dynamic, fixed = (next((m for m in ours if m.specialised is special), None) for special in (False, True))
    return dynamic, fixed


def _against_ort(m: Measurement | None) -> Ratio | None:
    return None if m is None else next(iter(m.peers.values()), None)


def _order(case: CaseResult) -> tuple[float, str]:
    ratio = _against_ort(_dynamic_and_fixed(case)[0])
    return (ratio.middle if ratio else math.inf, case.model)


def _summary(cases: list[CaseResult]) -> str:
    found = {case.label: [ratio for m in _dynamic_and_fixed(case) if (ratio := _against_ort(m))] for case in cases}
    below = [name for name, ratios in found.items() if any(ratio.high < BAR for ratio in ratios)]
    lacking = [name for name, ratios in found.items() if len(ratios) < 2]
    text = f"{len(cases)} rows; the interval lies below {BAR}x of ONNX Runtime in {len(below)}, dynamic or fixed"
    text += f": {', '.join(map(plain, below))}." if below else "."
    return text + (f" Without figures: {', '.join(map(plain, lacking))}." if lacking else "")


def _row(case: CaseResult) -> list[str]:
    dynamic, fixed = _dynamic_and_fixed(case)
    shown = [case.model, plain(case.shape), str(case.threads)]
    if dynamic is None or fixed is None or Status.OK not in (dynamic.status, fixed.status):
        return [*shown, *["-"] * 7, plain(str(dynamic.status if dynamic else case.status))]
    errors = [m.check.error for m in (dynamic, fixed) if m.check and m.check.error is not None]
    return [
        *shown,
        _p50(case.baseline),
        _p50(dynamic),
        speed_up(_against_ort(dynamic)),
        _p50(fixed),
        speed_up(_against_ort(fixed)),
        speed_up(fixed.ratio),
        f"{max(errors):.1e}" if errors else "-",
        claimed(dynamic) or "-",
    ]


def _p50(m: Measurement | None) -> str:
    return milliseconds(m.latency.p50_ns if m is not None and m.latency is not None else None)


REPORTS = [
    Report(
        name="architectures",
        title="Architectures",
        target=Target.ARCHITECTURES,
        scenario=Scenario.SPECIALISED,
        render=render,
        nothing="Not measured yet.\n",
        by_isa=True,
    )
]
