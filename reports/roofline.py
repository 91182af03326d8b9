"""Each kernel and each model under the ceilings that were measured in the same run.

Williams, Waterman, Patterson, "Roofline: an insightful visual performance model" (2009). Work is what an op must at least do
(`xyntra_ep/tracea/core_ir/work.py`), so a kernel that moves more than that, or computes twice, shows as far from its roof.
"""

from __future__ import annotations

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Inside, Run
from xyntra_bench.show import milliseconds
from xyntra_reports._kernels import Group, Roofs, cpu_roofs, groups, microseconds, of_roof, profiled, roofs_for
from xyntra_reports._markdown import cases_of, provenance, table
from xyntra_reports._roofline_plot import picture
from xyntra_reports.registry import Part, Report, Section

HEADER = ("kernel", "nodes", "variant", "share", "time µs", "GFLOP/s", "GB/s", "flop/byte", "roof", "% of roof")
ROWS = 24
HOW_TO_READ = (
    "A kernel is named after the first ONNX node that it computes; +6 means six more nodes, x12 means twelve kernels that differ "
    "only in their data. The roof is what bounds a kernel: arithmetic, or the smallest memory that holds its bytes. % of roof is "
    "the least time that the kernel could need over the time it took. Operations are counted by the operator's definition, so a "
    "convolution by Winograd's method may exceed 100 %. So may any kernel if other processes used the machine while the ceilings "
    "were measured. Times include the two clock reads of the profile."
)

DEVICE_CEILINGS = (
    "Ceilings of a device are reached by XyntraEP's own kernels, measured when the run began: a copy of 512 MB (read and written "
    "bytes), reading half of the L2 cache, fused multiply-adds, mma.sync with fragments in registers. In brackets is what a "
    "library's products and copies reached. A roof is the higher of the two. A kernel is timed by two device events around its "
    "launch, so the time of a kernel of a few microseconds includes the cost of its launch."
)


def render(run: Run, source: str) -> str:
    """Per contender how near its models come to their roofs, and the kernels that cost most over all models."""
    parts = []
    for case in cases_of(run, Scenario.SINGLE_STREAM):
        for m, inside in profiled(case):
            title = f"**{case.model} {case.shape}, {case.threads} thread{'s' if case.threads > 1 else ''}, {m.label}**"
            roofs = roofs_for(run, case.threads, inside.device)
            parts.append(f"{title}: {summary(inside, roofs)}")
            parts.append(kernel_table(inside, roofs, rows=5))
    return "\n\n".join([*parts, ceilings_text(run), provenance(run, source)]) + "\n"


def summary(inside: Inside, roofs: Roofs | None) -> str:
    kernels = groups(inside, roofs)
    busy_ns = sum(g.ns for g in kernels)
    text = (
        f"{milliseconds(inside.run_ns)} ms a run (median of {inside.runs} profiled), "
        f"{busy_ns / max(inside.run_ns, 1):.0%} of it in {len(inside.kernels)} kernels"
    )
    flops = sum(g.flops for g in kernels)
    text += f"; {flops / 1e9:.3g} Gflop a run at {flops / max(busy_ns, 1):.3g} GFLOP/s inside of the kernels"
    return f"{text}, {of_roof(kernels):.0%} of their roofs" if roofs else text


def kernel_table(inside: Inside, roofs: Roofs | None, *, rows: int = ROWS) -> str:
    """The hottest kernels; the last rows have the rest of the run."""
    found = groups(inside, roofs)
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
        microseconds(g.ns),
        f"{g.gflops:.3g}" if g.flops else "-",
        f"{g.gbs:.3g}",
        f"{g.intensity:.3g}" if g.flops else "-",
        g.bound or "-",
        "-" if g.of_roof is None else f"{g.of_roof:.0%}",
    ]


def _share_only(name: str, ns: int, run_ns: int) -> list[str]:
    return [name, "-", "-", f"{ns / max(run_ns, 1):.1%}", microseconds(ns), *["-"] * 5]


def ceilings_text(run: Run) -> str:
    """What a % is of."""
    if not run.ceilings and not run.device_ceilings:
        return "No ceilings were measured in this run."
    parts = []
    if run.ceilings:
        rows = [
            [
                str(c.threads),
                f"{c.fp32_gflops:.0f}",
                f"{c.bf16_gflops:.0f}" if c.bf16_gflops else "-",
                f"{c.int8_gops:.0f}" if c.int8_gops else "-",
                *(f"{rate:.0f}" for _, rate, _ in cpu_roofs(c).levels),
            ]
            for c in run.ceilings
        ]
        header = ("threads", "fp32 GFLOP/s", "bf16 GFLOP/s", "int8 GOP/s", "L1 GB/s", "L2 GB/s", "L3 GB/s", "DRAM GB/s")
        note = (
            "Ceilings are the best of the run: products in registers by the fastest instructions, and reading buffers of half a "
            "cache's size."
        )
        parts += [table(header, rows, left=0), f"{note} {HOW_TO_READ}"]
    if run.device_ceilings:
        parts += [device_table(run), DEVICE_CEILINGS if run.ceilings else f"{DEVICE_CEILINGS} {HOW_TO_READ}"]
    return "\n\n".join(parts)


def device_table(run: Run) -> str:
    """Ours, and in brackets the library's."""
    header = ("device", "fp32 GFLOP/s", "fp16 GFLOP/s", "bf16 GFLOP/s", "tf32 GFLOP/s", "L2 GB/s", "copy GB/s", "in brackets")
    rows = [
        [
            c.device,
            _both(c.fp32_gflops, c.library_fp32_gflops),
            _both(c.fp16_gflops, c.library_fp16_gflops),
            _both(c.bf16_gflops, c.library_bf16_gflops),
            _both(c.tf32_gflops, c.library_tf32_gflops),
            _both(c.cache_gbs, 0.0),
            _both(c.copy_gbs, c.library_copy_gbs),
            c.library or "-",
        ]
        for c in run.device_ceilings
    ]
    return table(header, rows, left=1)


def _both(ours: float, library: float) -> str:
    """
    >>> _both(660_123.4, 712_000.0), _both(60_000.0, 0.0), _both(0.0, 0.0)
    ('660123 (712000)', '60000', '-')
    """
    return f"{ours:.0f}" + (f" ({library:.0f})" if library else "") if ours or library else "-"


def part(run: Run, case: CaseResult) -> Section | None:
    pictures, texts = [], []
    for i, (m, inside) in enumerate(profiled(case)):
        roofs = roofs_for(run, case.threads, inside.device)
        texts += [f"**{m.label}**: {summary(inside, roofs)}.", kernel_table(inside, roofs)]
        if roofs:
            pictures.append(picture(case, m, inside, roofs, i))
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
