"""The zoo at the sizes that people serve: against the CPU provider, and how near each kernel comes to its roof."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario, Target
from xyntra_bench.results import CaseResult, Inside, Run
from xyntra_reports import zoo
from xyntra_reports._kernels import Group, Roofs, groups, of_roof, profiled, roofs_for
from xyntra_reports._markdown import cases_of, provenance, table
from xyntra_reports._reasons import ENOUGH, OPEN, reason
from xyntra_reports.registry import Report
from xyntra_reports.roofline import ceilings_text

LEAST_SHARE = 0.005  # of a model's time; what is less is one row together
NOTHING = "Not measured yet: `bench run zoo --wide --json reports/results/wide.json` measures it.\n"
SUMMARY_HEADER = ("model", "shape", "threads", "provider", "in kernels", "% of roof", f"below {ENOUGH:.0%} of it", "open")
HEADER = ("kernel", "variant", "of the model's time", "µs each", "GFLOP/s", "GB/s", "roof", "% of roof", "reason")
NOTE = (
    f"% of roof is over all kernels of a model. Below {ENOUGH:.0%} of it is the share of the model's time in kernels that reach "
    "less than that of their own roofs; open is the share that no reason explains. A reason follows from the recorded numbers. "
    "Short: the kernel is so short that its launch counts. A memory's roof: the bytes would fit into a smaller memory, but "
    "other kernels use that one in between, so they come from a larger memory at that memory's rate. One after the other: "
    "arithmetic and memory take about as long, and the kernel's time is their sum.\n"
)


def render(run: Run, source: str) -> str:
    cases = cases_of(run, Scenario.SINGLE_STREAM)
    summary = table(SUMMARY_HEADER, [row for case in cases for row in _summary_rows(run, case)], left=2)
    tables = [text for case in cases for text in _tables(run, case)]
    return "\n\n".join([summary, *tables, ceilings_text(run), provenance(run, source)]) + "\n"


def _summary_rows(run: Run, case: CaseResult) -> Iterator[list[str]]:
    for m, inside in profiled(case):
        head = [case.model, case.shape, str(case.threads), m.label]
        roofs = roofs_for(run, case.threads, inside.device)
        found = groups(inside, roofs)
        busy = f"{sum(g.ns for g in found) / max(inside.run_ns, 1):.0%}"
        if roofs is None:
            yield [*head, busy, "-", "-", "-"]
            continue
        reasons = [reason(g, roofs) for g in found]
        below = _share(inside, [g for g, why in zip(found, reasons, strict=True) if why])
        unexplained = _share(inside, [g for g, why in zip(found, reasons, strict=True) if why == OPEN])
        yield [*head, busy, f"{of_roof(found):.0%}", below, unexplained]


def _tables(run: Run, case: CaseResult) -> Iterator[str]:
    """Of each contender a heading and its kernels, the hottest first."""
    for m, inside in profiled(case):
        roofs = roofs_for(run, case.threads, inside.device)
        found = groups(inside, roofs)
        shown = [g for g in found if g.ns >= LEAST_SHARE * inside.run_ns]
        rows = [_row(g, inside, roofs) for g in shown]
        if rest := found[len(shown) :]:
            rows.append([f"{sum(g.count for g in rest)} more", "-", _share(inside, rest), *["-"] * (len(HEADER) - 3)])
        yield f"**{case.model} {case.shape}, {case.threads} thread{'s' if case.threads > 1 else ''}, {m.label}**"
        yield table(HEADER, rows, left=2)


def _row(g: Group, inside: Inside, roofs: Roofs | None) -> list[str]:
    return [
        g.name,
        g.variant,
        _share(inside, [g]),
        f"{g.ns / g.count / 1e3:.3g}",
        f"{g.gflops:.3g}" if g.flops else "-",
        f"{g.gbs:.3g}",
        g.bound or "-",
        "-" if g.of_roof is None else f"{g.of_roof:.0%}",
        reason(g, roofs) if roofs else "",
    ]


def _share(inside: Inside, found: list[Group]) -> str:
    return f"{sum(g.ns for g in found) / max(inside.run_ns, 1):.1%}"


REPORTS = [
    Report(
        name="wide",
        title="The zoo at the sizes that people serve",
        target=Target.WIDE,
        render=zoo.render,
        note=zoo.NOTE,
        nothing=NOTHING,
        by_isa=True,
    ),
    Report(
        name="wide-kernels",
        title="Each kernel's share of its roof at these sizes",
        target=Target.WIDE,
        render=render,
        needs=lambda run: any(profiled(case) for case in run.cases),
        note=NOTE,
        nothing=NOTHING,
        by_isa=True,
    ),
]
