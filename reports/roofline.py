"""Each kernel and each model under the ceilings that were measured in the same run.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model" (2009). Work is what an op must at least do
(`xyntra_ep/tracea/core_ir/work.py`), so a kernel that moves more than that, or computes twice, shows as far from its roof.
"""

from __future__ import annotations

from bench.plan import Scenario
from bench.results import CaseResult, Ceilings, Inside, Run
from bench.show import milliseconds
from reports._kernels import Group, ceilings_for, groups, levels, of_roof, profiled
from reports._markdown import cases_of, provenance, table
from reports._roofline_plot import picture
from reports.registry import Part, Report, Section

HEADER = ("kernel", "nodes", "variant", "share", "time µs", "GFLOP/s", "GB/s", "flop/byte", "roof", "% of roof")
ROWS = 24
HOW_TO_READ = (
    "A kernel is named after the first ONNX node that it computes, with the number of those that it computes besides, as in +6; "
    "x12 is twelve kernels that are the same but for their data. Roof is what bounds a kernel: arithmetic, or the smallest "
    "memory that holds its bytes; % of roof is the least time it could need over the time it took. Operations are those of the "
    "definition, so a convolution by Winograd's method may exceed 100 %, and so may anything where others used the machine while "
    "the ceilings were measured. Times include the profile's own two clock reads."
)


def render(run: Run, source: str) -> str:
    """Per contender how near its models come to their roofs, and the kernels that cost most over all models."""
    parts = []
    for case in cases_of(run, Scenario.SINGLE_STREAM):
        for m, inside in profiled(case):
            title = f"**{case.model} {case.shape}, {case.threads} thread{'s' if case.threads > 1 else ''}, {m.label}**"
            parts.append(f"{title}: {summary(inside, ceilings_for(run, case.threads))}")
            parts.append(kernel_table(inside, ceilings_for(run, case.threads), rows=5))
    return "\n\n".join([*parts, ceilings_text(run), provenance(run, source)]) + "\n"


def summary(inside: Inside, ceilings: Ceilings | None) -> str:
    kernels = groups(inside, ceilings)
    busy_ns = sum(g.ns for g in kernels)
    text = (
        f"{milliseconds(inside.run_ns)} ms a run (median of {inside.runs} profiled), "
        f"{busy_ns / max(inside.run_ns, 1):.0%} of it in {len(inside.kernels)} kernels"
    )
    flops = sum(g.flops for g in kernels)
    text += f"; {flops / 1e9:.3g} Gflop a run at {flops / max(busy_ns, 1):.3g} GFLOP/s inside of the kernels"
    return f"{text}, {of_roof(kernels):.0%} of their roofs" if ceilings else text


def kernel_table(inside: Inside, ceilings: Ceilings | None, *, rows: int = ROWS) -> str:
    """The dearest kernels; what is left of the run in the last rows."""
    found = groups(inside, ceilings)
    lines = [_row(g, inside.run_ns) for g in found[:rows]]
    if rest := found[rows:]:
        lines.append(_share_only(f"{sum(g.count for g in rest)} more", sum(g.ns for g in rest), inside.run_ns))
    outside = inside.run_ns - sum(g.ns for g in found)
    if outside > 0:
        lines.append(_share_only("ONNX Runtime and its own nodes", outside, inside.run_ns))
    return table(HEADER, lines, left=3)


def _row(g: Group, run_ns: int) -> list[str]:
    return [
        g.name,
        g.ops,
        g.variant,
        f"{g.ns / max(run_ns, 1):.1%}",
        _microseconds(g.ns),
        f"{g.gflops:.3g}" if g.flops else "-",
        f"{g.gbs:.3g}",
        f"{g.intensity:.3g}" if g.flops else "-",
        g.bound or "-",
        "-" if g.of_roof is None else f"{g.of_roof:.0%}",
    ]


def _share_only(name: str, ns: int, run_ns: int) -> list[str]:
    return [name, "-", "-", f"{ns / max(run_ns, 1):.1%}", _microseconds(ns), *["-"] * 5]


def _microseconds(ns: int) -> str:
    """
    >>> _microseconds(8_070_400), _microseconds(576)
    ('8070', '0.576')
    """
    return f"{ns / 1e3:.0f}" if ns >= 100_000 else f"{ns / 1e3:#.3g}"


def ceilings_text(run: Run) -> str:
    """What a % is of."""
    if not run.ceilings:
        return "No ceilings were measured in this run."
    rows = [
        [
            str(c.threads),
            f"{c.fp32_gflops:.0f}",
            f"{c.bf16_gflops:.0f}" if c.bf16_gflops else "-",
            *(f"{rate:.0f}" for _, rate, _ in levels(c)),
        ]
        for c in run.ceilings
    ]
    header = ("threads", "fp32 GFLOP/s", "bf16 GFLOP/s", "L1 GB/s", "L2 GB/s", "L3 GB/s", "DRAM GB/s")
    note = "Ceilings measured when the run began: fused multiply-adds in registers, and reading buffers of half a cache's size."
    return f"{table(header, rows, left=0)}\n\n{note} {HOW_TO_READ}"


def part(run: Run, case: CaseResult) -> Section | None:
    pictures, texts = [], []
    ceilings = ceilings_for(run, case.threads)
    for i, (m, inside) in enumerate(profiled(case)):
        texts += [f"**{m.label}**: {summary(inside, ceilings)}.", kernel_table(inside, ceilings)]
        if ceilings:
            pictures.append(picture(case, m, inside, ceilings, i))
    if not texts:
        return None
    return Section(text="\n\n".join([*texts, HOW_TO_READ]), pictures=tuple(pictures))


REPORTS = [
    Report(
        name="roofline",
        title="Kernels under their roofs",
        render=render,
        target=None,
        needs=lambda run: any(profiled(case) for case in run.cases),
    )
]
PARTS = [Part(name="roofline", title="Kernels and roofline", order=30, render=part)]
