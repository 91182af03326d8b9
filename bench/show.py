"""What a user sees of a run: progress on a terminal or in lines, the table of cases, and remarks below it."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from xyntra_bench.contenders import CPU_BACKEND
from xyntra_bench.plan import MIN_N_P90, MIN_N_P95, MIN_N_P99, MIN_N_P999, PUBLISHED, Scenario, Target
from xyntra_bench.publish import missed, refusal
from xyntra_bench.results import CaseResult, FloatError, Measurement, Run, Status, Stopped, Verdict, Warn
from xyntra_bench.text_table import show_table

FLOAT = "vs float"  # of quantised models, so that other tables lack it
COLUMNS = (
    "model",
    "shape",
    "thr",
    "provider",
    "p50 ms",
    "p95 ms",
    "p99 ms (n)",
    "device ms",
    "ratio [95 %]",
    "vs peers",
    "verdict",
    "error",
    FLOAT,
    "nodes",
    "create cold/warm ms",
    "RSS steady/peak MiB",
    "reason",
)
# Name, field, and how many runs it takes.
PERCENTILES = (
    ("p90", "p90_ns", MIN_N_P90),
    ("p95", "p95_ns", MIN_N_P95),
    ("p99", "p99_ns", MIN_N_P99),
    ("p99.9", "p999_ns", MIN_N_P999),
)
AGAINST_THE_CPU = (Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.SERVER, Scenario.OFFLINE, Scenario.GENERATE)
AGAINST_ITSELF = {Scenario.SCALING: "one thread", Scenario.SPECIALISED: "dynamic"}
SURE = (Verdict.FASTER, Verdict.SLOWER, Verdict.SAME)
STYLES = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.UNSURE: "yellow",
    Verdict.NO_DATA: "magenta",
}


PUBLISHABLE = "keeps the rules of publishing: `bench report` takes it from reports/results"


class Tick(Protocol):
    def __call__(self, description: str, *, done: int) -> None: ...


@contextmanager
def progress(console: Console, total: int) -> Iterator[Tick]:
    """A callable that says what is going on, and how many cases are done: in a bar, or in lines on stderr."""
    if not console.is_terminal:
        yield lambda description, *, done: print(f"[{done}/{total}] {description}", file=sys.stderr, flush=True)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda description, *, done: bar.update(task, description=description, completed=done)


def rows(case: CaseResult) -> Iterator[tuple[list[str], Verdict | None]]:
    """Cells of the baseline's row (no verdict) and of each contender's."""
    head = [case.model, case.shape]
    if case.status is not Status.OK:
        yield [*head, str(case.threads), "", *_without_figures(Verdict.NO_DATA, case.status, case.error)], Verdict.NO_DATA
        return
    for m in case.measurements:
        yield head + _cells(case, m), m.verdict if m.against or m.lacking else None


def _cells(case: CaseResult, m: Measurement) -> list[str]:
    cells = [str(m.threads), named(m) + _rate(m)]
    if m.status is not Status.OK or m.latency is None:
        return [*cells, *_without_figures(m.verdict, m.status, m.error)]
    latency, ratio, check = m.latency, m.ratio, m.check
    p99 = f"{milliseconds(latency.p99_ns)} ({latency.n})" if latency.p99_ns is not None else f"- ({latency.n})"
    return [
        *cells,
        milliseconds(latency.p50_ns),
        milliseconds(latency.p95_ns),
        p99,
        milliseconds(m.device_ns) if m.device_ns is not None else "",
        f"{ratio.middle:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "",
        " ".join(f"{peer.middle:.3f}" for peer in m.peers.values()),
        verdict(case, m) if check else "",
        "" if check is None else f"{check.error:.1e}" if check.error is not None else check.state,
        against_float(m.float_error),
        claimed(m),
        f"{milliseconds(m.creation.cold_ns)} / {milliseconds(m.creation.warm_ns)}" if m.creation else "",
        f"{mebibytes(m.memory.steady_bytes)} / {mebibytes(m.memory.peak_bytes)}" if m.memory else "",
        m.lacking,
    ]


def _without_figures(verdict: Verdict, status: Status, error: str) -> list[str]:
    """The cells behind the provider's of what could not be measured; the reason is the first line of the error."""
    return [*[""] * 6, verdict, status, *[""] * 4, error.partition("\n")[0]]


def outcome(case: CaseResult) -> str:
    """A case in a line, while others are still to come.

    >>> from xyntra_bench.results import Ratio, Weights
    >>> ratio = Ratio(middle=1.25, low=1.2, high=1.3, pairs=9, rounds=3)
    >>> fast = Measurement(label="A", provider="A", options={}, status=Status.OK, ratio=ratio, verdict=Verdict.FASTER)
    >>> dead = Measurement(label="B", provider="B", options={}, status=Status.CRASHED, error="killed by SIGSEGV")
    >>> head = {"model": "vit", "family": "", "shape": "b1", "batch": 1, "seq": None, "threads": 2, "model_sha256": ""}
    >>> outcome(CaseResult(**head, weights=Weights.RANDOM, status=Status.OK, contenders=(fast, dead)))
    'vit b1 t2: A 1.25x faster; B crashed: killed by SIGSEGV'
    """
    told = [_told(case.scenario, m) for m in case.contenders if m.ratio or m.against or m.lacking]
    return f"{case.label}: {case.failure or '; '.join(told)}"


def _told(scenario: Scenario, m: Measurement) -> str:
    if m.ratio is None:
        return f"{m.label} {m.lacking or m.verdict}"
    if (itself := AGAINST_ITSELF.get(scenario)) is None:
        return f"{m.label} {m.ratio.middle:.2f}x {m.verdict}"
    joined = {Verdict.FASTER: "than", Verdict.SLOWER: "than", Verdict.SAME: "as"}.get(m.verdict, "beside")
    return f"{m.label}: {m.ratio.middle:.2f}x {m.verdict} {joined} {itself}"


def verdict(case: CaseResult, m: Measurement) -> str:
    """With a mark where the time was up before the least that a row takes; none of a row that others are compared with."""
    if not m.against and not m.lacking:
        return ""
    return f"{m.verdict}, {case.stopped}" if case.stopped is Stopped.CUT else str(m.verdict)


def named(m: Measurement) -> str:
    """With where it ran and what in, when that is not what was asked for.

    >>> from xyntra_bench.results import Status
    >>> options = {"precision": "bf16"}
    >>> named(Measurement(label="A", provider="A", options=options, status=Status.OK, precision="fp32"))
    'A (ran fp32)'
    >>> named(Measurement(label="A", provider="A", options={}, status=Status.OK, warnings=(Warn.OTHER_PRECISION,)))
    'A (other precision)'
    >>> device = "CUDA / Example / sm_90 / driver 12.8"
    >>> named(Measurement(label="XyntraEP", provider="XyntraEP", options={"backend": "auto"}, status=Status.OK, device=device))
    'XyntraEP (on CUDA / Example / sm_90 / driver 12.8)'
    """
    told = []
    if m.status is Status.OK and m.backend not in ("", m.options.get("backend", CPU_BACKEND)):
        told.append(f"on {m.device or 'the CPU'}")
    if m.precision and m.precision != m.contender.precision:
        told.append(f"ran {m.precision}")
    elif Warn.OTHER_PRECISION in m.warnings:
        told.append(Warn.OTHER_PRECISION)
    return f"{m.label} ({', '.join(told)})" if told else m.label


def _rate(m: Measurement) -> str:
    """Of a server, and of a loop."""
    if m.generation:
        return f" first {milliseconds(m.generation.first_token.p50_ns)} ms, {m.generation.tokens_per_s:.3g} tokens/s"
    if m.serving is None:
        return ""
    return " no rate" if m.serving.rate_per_s is None else f" {m.serving.rate_per_s:.3g}/s"


def claimed(m: Measurement) -> str:
    """Nodes this provider runs, of all."""
    if m.placement is None:
        return ""
    return f"{m.placement.nodes.get(m.provider, 0)}/{sum(m.placement.nodes.values())}"


def against_float(found: FloatError | None) -> str:
    """
    >>> found = FloatError(model="gpt2", error=0.24, rms=0.2, output="logits", positions=128, same_largest=44)
    >>> against_float(found), against_float(None)
    ('2.4e-01, 44 of 128 tokens', '')
    """
    if found is None:
        return ""
    tokens = "" if found.positions is None else f", {found.same_largest} of {found.positions} tokens"
    return f"{found.error:.1e}{tokens}"


def mebibytes(count: int) -> str:
    return f"{count / 2**20:.0f}"


def milliseconds(ns: int | None) -> str:
    """Three digits, whatever the size.

    >>> milliseconds(131_234_567), milliseconds(4_321), milliseconds(None)
    ('131', '0.00432', '-')
    """
    if ns is None:
        return "-"
    ms = ns / 1e6
    return f"{ms:.0f}" if ms >= 100 else f"{ms:#.3g}"


def show_cases(console: Console, cases: Sequence[CaseResult]) -> None:
    shown = [(cells, STYLES.get(verdict, "") if verdict else "dim") for case in cases for cells, verdict in rows(case)]
    at = COLUMNS.index(FLOAT)
    if any(cells[at] for cells, _ in shown):
        show_table(console, COLUMNS, shown)
    else:
        show_table(console, without(COLUMNS, at), [(without(cells, at), style) for cells, style in shown])


def without(cells: Sequence[str], at: int) -> list[str]:
    return [*cells[:at], *cells[at + 1 :]]


def show_summary(console: Console, run: Run) -> None:
    for text in summary(run):
        console.print(Text(text), soft_wrap=True)


def summary(run: Run) -> Iterator[str]:
    """Per scenario and contender how its cases ended, the geometric mean of the speed-ups that are sure, and the cases that it
    loses. Of a case that is unsure nothing is claimed, and one that failed as a whole failed for each contender."""
    compared: dict[tuple[Scenario, str], list[tuple[str, Measurement]]] = {}
    lost: Counter[Scenario] = Counter()
    for case in run.cases:
        if case.scenario not in AGAINST_THE_CPU:
            continue
        lost[case.scenario] += case.status is not Status.OK
        where = case.model if run.target is Target.MICRO else f"{case.model} {case.shape}"
        for m in case.contenders:
            if m.against:
                compared.setdefault((case.scenario, m.label), []).append((f"{where} t{case.threads}", m))
    for (scenario, label), found in compared.items():
        ended = Counter("failed" if m.is_wrong else m.verdict if m.verdict in SURE else Verdict.UNSURE for _, m in found)
        ended["failed"] += lost[scenario]
        told = ", ".join(f"{how} in {ended[how]}" for how in (*SURE, Verdict.UNSURE, "failed"))
        sure = [m.ratio.middle for _, m in found if m.ratio and m.verdict in SURE]
        yield f"{_titled(scenario, label)}: {told}; {mean_of(sure)}"
        slower = sorted((m.ratio.middle, where) for where, m in found if m.ratio and m.verdict is Verdict.SLOWER)
        if slower:
            yield f"  slower: {', '.join(f'{where} {middle:.2f}x' for middle, where in slower)}"
    for scenario, count in lost.items():
        if count and scenario not in {there for there, _ in compared}:
            yield f"{_titled(scenario, 'all')}: failed in {count}"


def _titled(scenario: Scenario, label: str) -> str:
    return label if scenario is Scenario.SINGLE_STREAM else f"{label} {scenario}"


def mean_of(speed_ups: Sequence[float]) -> str:
    """
    >>> mean_of([2.0, 0.5, 4.0]), mean_of([])
    ('1.59x in geometric mean of the 3 that are sure', 'none is sure, so there is no mean')
    """
    if not speed_ups:
        return "none is sure, so there is no mean"
    mean = math.exp(sum(map(math.log, speed_ups)) / len(speed_ups))
    return f"{mean:.2f}x in geometric mean of the {len(speed_ups)} that are sure"


def show_notes(console: Console, run: Run) -> None:
    """Failures in full, then what runtimes said and each warning, once, with where it was seen."""
    seen: dict[Warn, list[str]] = {}
    told: dict[str, list[str]] = {}
    for case in run.cases:
        where = f"{case.model} {case.shape} t{case.threads}"
        if case.scenario is not Scenario.SINGLE_STREAM:
            where += f" {case.scenario}"
        if case.status is not Status.OK:
            note(console, f"{where}: {case.status}: {case.error}")
        for warn in case.warnings:
            seen.setdefault(warn, []).append(where)
        for m in case.measurements:
            if m.status is not Status.OK:
                note(console, f"{where} {m.label}: {m.status}: {m.error}")
            for text in m.notes:
                told.setdefault(text, []).append(f"{where} {m.label}")
            for warn in m.warnings:
                seen.setdefault(warn, []).append(f"{where} {m.label}")
    for text, places in told.items():
        note(console, f"{', '.join(places[:3])}{' ...' if len(places) > 3 else ''}: {text}")
    if text := refused_percentiles(run):
        note(console, text)
    if run.left_out:
        note(console, left_out(run))
    for warn, places in seen.items():
        where = f" ({', '.join(places[:3])}{' ...' if len(places) > 3 else ''})"
        note(console, f"{warn}: {warn.advice}{where if len(places) < len(run.cases) else ''}")
    if run.target in PUBLISHED:
        for scenario in dict.fromkeys(case.scenario for case in run.cases):
            found = missed(run, scenario)
            note(console, f"{scenario}: not for publishing: {refusal(found)}" if found else f"{scenario}: {PUBLISHABLE}")


def left_out(run: Run) -> str:
    """The rows that a run was given too little time for, and how to get them."""
    rows = ", ".join(f"{out.case} (about {out.seconds:.0f} s)" for out in run.left_out)
    more = (sum(out.seconds for out in run.left_out) + (run.within_s or 0)) / 60 + 1
    return f"left out for time: {rows}. `--within {more:.0f}` (minutes) has them too, and so has `-m` with their models"


def refused_percentiles(run: Run) -> str:
    """Those that were left out because too few runs cannot tell them, empty for none."""
    found = [m.latency for case in run.cases for m in case.measurements if m.latency]
    left_out = [
        f"{name} in {lacking} of {len(found)}, which needs {least}"
        for name, field, least in PERCENTILES
        if (lacking := sum(getattr(latency, field) is None for latency in found))
    ]
    return f"percentiles left out: {'; '.join(left_out)} runs. a longer run has them: --min-time" if left_out else ""


def note(console: Console, text: str) -> None:
    """Something to know, on a line of its own."""
    console.print(Text(f"! {text}"), soft_wrap=True)
