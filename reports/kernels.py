"""Single operators under the ceilings that were measured in the same run: which kernel computes each, and how well."""

from __future__ import annotations

from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Inside, Measurement, Run
from xyntra_bench.show import milliseconds, named
from xyntra_reports._kernels import groups, of_roof, profiled, roofs_for
from xyntra_reports._markdown import cases_of, provenance, speed_up, table
from xyntra_reports.registry import Report
from xyntra_reports.roofline import ceilings_text

HEADER = (
    "point", "provider", "threads", "kernel", "GFLOP/s", "GB/s", "roof", "% of roof", "p50 ms", "CPU p50 ms", "speed-up [95 %]",
)  # fmt: skip
NOTE = (
    "Each point is a model of its own. Kernel is the variant that takes longest of it, and how many run besides; "
    "the figures are of all of them together, and the share of the roof is the least time that the machine could need over the "
    "time they took. p50 and speed-up are of whole runs, so a small operator's has ONNX Runtime's own call in it."
)


def render(run: Run, source: str) -> str:
    rows = [_row(run, case, m, inside) for case in cases_of(run, Scenario.SINGLE_STREAM) for m, inside in profiled(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{ceilings_text(run)}\n\n{provenance(run, source)}\n"


def _row(run: Run, case: CaseResult, m: Measurement, inside: Inside) -> list[str]:
    roofs = roofs_for(run, case.threads, inside.device)
    found = groups(inside, roofs)
    ns, flops = sum(g.ns for g in found), sum(g.flops for g in found)
    more = f" +{len(inside.kernels) - 1}" if len(inside.kernels) > 1 else ""
    base = case.baseline.latency if case.baseline else None
    return [
        case.model,
        named(m),
        str(case.threads),
        found[0].variant + more,
        f"{flops / max(ns, 1):.3g}" if flops else "-",
        f"{sum(g.bytes for g in found) / max(ns, 1):.3g}",
        found[0].bound or "-",
        f"{of_roof(found):.0%}" if roofs else "-",
        milliseconds(m.latency.p50_ns if m.latency else None),
        milliseconds(base.p50_ns if base else None),
        speed_up(m.ratio),
    ]


REPORTS = [
    Report(
        name="kernels",
        title="Single operators under their roofs",
        target=Target.MICRO,
        render=render,
        needs=lambda run: any(profiled(case) for case in run.cases),
    )
]
