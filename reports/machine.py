"""Models against the limits of the machine, in a table and a figure for documents; kernel by kernel it is `roofline`."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Run
from xyntra_bench.show import milliseconds
from xyntra_reports._kernels import groups, of_roof, profiled, roofs_for
from xyntra_reports._markdown import cases_of, disclosure, provenance, table
from xyntra_reports._roofline_plot import overview
from xyntra_reports.registry import Picture, Report
from xyntra_reports.roofline import ceilings_text

HEADER = (
    "model",
    "shape",
    "provider",
    "threads",
    "ms a run",
    "in kernels",
    "GFLOP/s",
    "GB/s",
    "% of roof",
    "hottest kernel",
    "of the run",
)


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.SINGLE_STREAM) for row in _rows(case, run)]
    note = (
        "Time, rates and % of roof are those of the kernels of a profiled run; the rest of the run is ONNX Runtime's. GFLOP/s "
        "and GB/s count the least work that the operators need."
    )
    told = disclosure(run, Scenario.SINGLE_STREAM)
    return f"{table(HEADER, rows, left=3)}\n\n{note}\n\n{ceilings_text(run)}\n\n{told}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult, run: Run) -> Iterator[list[str]]:
    for m, inside in profiled(case):
        roofs = roofs_for(run, case.threads, inside.device)
        found = groups(inside, roofs)
        busy_ns = max(sum(g.ns for g in found), 1)
        yield [
            case.model,
            case.shape,
            m.label,
            str(case.threads),
            milliseconds(inside.run_ns),
            f"{busy_ns / max(inside.run_ns, 1):.0%}",
            f"{sum(g.flops for g in found) / busy_ns:.3g}",
            f"{sum(g.bytes for g in found) / busy_ns:.3g}",
            f"{of_roof(found):.0%}" if roofs else "-",
            found[0].name,
            f"{found[0].ns / max(inside.run_ns, 1):.0%}",
        ]


def pictures(run: Run) -> tuple[Picture, ...]:
    threads = sorted({case.threads for case in run.cases})
    return tuple(picture for count in threads if (picture := overview(run, count)))


REPORTS = [
    Report(
        name="machine",
        title="Models against the machine's limits",
        render=render,
        pictures=pictures,
        by_isa=True,
        needs=lambda run: any(profiled(case) for case in run.cases),
    )
]
