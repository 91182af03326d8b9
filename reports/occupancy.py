"""How much of a GPU's multiprocessors each kernel fills, by its compiler's report: bench's occupancy table."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Inside, Resident, Run
from xyntra_reports._kernels import likeness, profiled, shortened
from xyntra_reports._markdown import cases_of, provenance, table
from xyntra_reports.registry import Part, Report, Section

HEADER = ("kernel", "variant", "share", "threads", "registers", "shared KiB", "blocks", "warps", "occupancy", "limited by")
ROWS = 24
HOW_TO_READ = (
    "For each kernel's longest launch: threads per block, registers per thread, shared memory per block, and the blocks that a "
    "multiprocessor holds at a time. Occupancy is the warps of these blocks over the most that a multiprocessor can hold. The "
    "last column names what limits it. Low occupancy is no fault where each warp has much independent work, as in products whose "
    "tiles are in registers."
)


def render(run: Run, source: str) -> str:
    parts = [
        f"**{case.model} {case.shape}, {m.label}**, on {inside.device}\n\n{occupancy_table(inside)}"
        for case in cases_of(run, Scenario.SINGLE_STREAM)
        for m, inside in profiled(case)
        if _told(inside)
    ]
    return "\n\n".join([*parts, HOW_TO_READ, provenance(run, source)]) + "\n"


def occupancy_table(inside: Inside) -> str:
    """Kernels that differ only in their data are one row; the hottest come first."""
    return table(HEADER, list(_rows(inside))[:ROWS], left=2)


def part(run: Run, case: CaseResult) -> Section | None:
    texts = [f"**{m.label}**\n\n{occupancy_table(inside)}" for m, inside in profiled(case) if _told(inside)]
    return Section(text="\n\n".join([*texts, HOW_TO_READ])) if texts else None


def _told(inside: Inside) -> bool:
    return any(kernel.resident for kernel in inside.kernels)


def _rows(inside: Inside) -> Iterator[list[str]]:
    ns: dict[tuple[object, ...], int] = {}
    for k in inside.kernels:
        ns[likeness(k)] = ns.get(likeness(k), 0) + k.ns
    first = {likeness(k): k for k in reversed(inside.kernels)}
    for alike, total in sorted(ns.items(), key=lambda item: -item[1]):
        k = first[alike]
        if k.resident:
            name = shortened(k.nodes[0]) if k.nodes else k.variant
            yield [name, k.variant, f"{total / max(inside.run_ns, 1):.1%}", *_cells(k.resident)]


def _cells(r: Resident) -> list[str]:
    """
    >>> _cells(Resident(threads=256, registers=116, shared_bytes=32 << 10, blocks=2, warps=16, of_warps=64, limit="registers"))
    ['256', '116', '32', '2', '16 of 64', '25%', 'registers']
    """
    shared = f"{r.shared_bytes / 1024:.3g}"
    held = f"{r.warps} of {r.of_warps}"
    return [str(r.threads), str(r.registers), shared, str(r.blocks), held, f"{r.warps / r.of_warps:.0%}", r.limit]


REPORTS = [
    Report(
        name="occupancy",
        title="Kernels on multiprocessors",
        render=render,
        target=None,
        needs=lambda run: any(_told(inside) for case in run.cases for _, inside in profiled(case)),
    )
]
PARTS = [Part(name="occupancy", title="Occupancy", order=35, render=part)]
