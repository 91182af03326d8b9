"""What comes before the first result: imports, session creation cold and warm, and the memory it settles at."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Creation, Run
from xyntra_bench.show import mebibytes, milliseconds
from xyntra_reports._markdown import cases_of, disclosure, provenance, table, without_empty
from xyntra_reports.registry import Part, Report, Section

HEADER = (
    "model",
    "provider",
    "threads",
    "cold ms",
    "of it compiling ms",
    "planning ms",
    "warm ms",
    "warm over CPU ms",
    "first run ms",
    "steady MiB",
    "peak MiB",
    "steady / CPU",
)


NOTE = (
    "Cold: session creation with an empty kernel cache. Warm: with a filled one. Compiling is the extra time of a session "
    "without cached kernels, loading the planner included; in brackets is the processor time of the compilers, which run in "
    "parallel with planning and with each other. Planning is the extra time of a session with cached kernels but no cached plan. "
    "Memory is the resident memory of a separate process that creates one session from a warm cache and runs it; it includes "
    "Python and the runtime."
)


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.SINGLE_STREAM) for row in _rows(case)]
    parts = [
        table(*without_empty(HEADER, rows), left=2),
        NOTE,
        _imports(run),
        disclosure(run, Scenario.SINGLE_STREAM),
        provenance(run, source),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _imports(run: Run) -> str:
    times = ", ".join(f"`{module}` {milliseconds(ns)} ms" for module, ns in run.imports_ns.items())
    return f"Import time; of a plugin what it adds to ONNX Runtime's: {times}." if times else ""


def _rows(case: CaseResult) -> Iterator[list[str]]:
    base = case.baseline
    for m in case.measurements:
        if m.creation is None:
            continue
        over_ns = m.creation.warm_ns - base.creation.warm_ns if base and base.creation and m is not base else None
        ours, theirs = m.memory, base.memory if base and m is not base else None
        yield [
            f"{case.model} {case.shape}",
            m.label,
            str(case.threads),
            milliseconds(m.creation.cold_ns),
            *_parts(m.creation),
            milliseconds(m.creation.warm_ns),
            "-" if over_ns is None else f"{over_ns / 1e6:+.0f}",
            milliseconds(m.first_run_ns),
            mebibytes(ours.steady_bytes) if ours else "-",
            mebibytes(ours.peak_bytes) if ours else "-",
            f"{ours.steady_bytes / theirs.steady_bytes:.2f}x" if ours and theirs else "-",
        ]


def _parts(creation: Creation) -> tuple[str, str]:
    """What compiling adds, with the compilers' processor time, and what planning takes; scatter may make either negative."""
    if creation.planned_ns is None:
        return "-", "-"
    compiling, planning = creation.cold_ns - creation.planned_ns, creation.planned_ns - creation.warm_ns
    return f"{milliseconds(max(compiling, 0))} ({milliseconds(creation.compile_cpu_ns)})", milliseconds(max(planning, 0))


def part(run: Run, case: CaseResult) -> Section | None:
    rows = [row[1:] for row in _rows(case)]
    return Section(text=f"{table(*without_empty(HEADER[1:], rows))}\n\n{NOTE}") if rows else None


REPORTS = [Report(name="creation", title="Imports, session creation and memory", render=render, by_isa=True)]
PARTS = [Part(name="creation", title="Session creation and memory", order=50, render=part)]
