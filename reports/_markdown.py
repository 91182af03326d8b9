"""Markdown pieces the reports share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Ratio, Run, Status, Warn


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, left: int = 1) -> str:
    """A Markdown table; the first `left` columns are text, the others numbers.

    >>> print(table(["a", "b"], [["x", "1"]]))
    | a | b |
    |:--|--:|
    | x | 1 |
    """
    rule = "|" + "|".join(":--" if i < left else "--:" for i in range(len(header))) + "|"
    lines = ["| " + " | ".join(map(plain, row)) + " |" for row in rows]
    return "\n".join(["| " + " | ".join(header) + " |", rule, *lines])


def without_empty(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Without the columns that nobody fills, as memory, which is measured with the first number of threads alone.

    >>> without_empty(["a", "b"], [["1", "-"], ["2", "-"]])
    (['a'], [['1'], ['2']])
    >>> without_empty(["a"], [])
    (['a'], [])
    """
    filled = [i for i in range(len(header)) if not rows or any(row[i] != "-" for row in rows)]
    return [header[i] for i in filled], [[row[i] for i in filled] for row in rows]


def plain(text: str) -> str:
    """Text from elsewhere, as a node's name, so that it stays in its cell and is no markup.

    >>> print(plain("a|b <i>"))
    a\\|b \\<i>
    """
    return re.sub(r"[\\|<`*]|(?<=\])\(", r"\\\g<0>", " ".join(text.split()))


def cases_of(run: Run, scenario: Scenario) -> tuple[CaseResult, ...]:
    """A model's beside each other, whatever order they were measured in."""
    found = [case for case in run.cases if case.scenario is scenario]
    order = list(dict.fromkeys((case.model, case.shape) for case in found))
    return tuple(sorted(found, key=lambda case: order.index((case.model, case.shape))))


def case_table(
    run: Run, source: str, scenario: Scenario, header: Sequence[str], rows: Callable[[CaseResult], Iterable[list[str]]], note: str
) -> str:
    """A report on the cases of a scenario. `rows` gives those of a case that was measured: model, provider, a count, and what
    is known; the rest of a row is filled with `-`, and a case that was not measured is a row with its status."""
    found: list[list[str]] = []
    for case in cases_of(run, scenario):
        lost = [[f"{case.model} {case.shape}", "-", str(case.threads), str(case.status)]]
        found += rows(case) if case.status is Status.OK else lost
    filled = [[*row, *["-"] * (len(header) - len(row))] for row in found]
    return f"{table(header, filled, left=2)}\n\n{note}\n\n{disclosure(run, scenario)}\n\n{provenance(run, source)}\n"


def speed_up(ratio: Ratio | None) -> str:
    """
    >>> speed_up(Ratio(middle=1.3, low=1.281, high=1.324, pairs=60, rounds=3))
    '1.30x [1.28, 1.32]'
    """
    return f"{ratio.middle:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio else "-"


def bounds(cases: Sequence[CaseResult]) -> str:
    """The bound of each precision that was checked, as in `2e-05 in fp32, 0.02 in bf16`, and of each quantised model."""
    checked = [(case, m, m.check) for case in cases for m in case.contenders if m.check]
    told = {m.contender.precision: check.max_err for _, m, check in checked if check.float_ratio is None}
    by_model = {case.model: check.max_err for case, _, check in checked if check.float_ratio is not None}
    kinds = [f"{bound:g} in {precision}" for precision, bound in told.items()]
    kinds += [f"{bound:g} in {plain(model)}" for model, bound in by_model.items()]
    return ", ".join(kinds) or "none checked"


def disclosure(run: Run, scenario: Scenario) -> str:
    """What a reader must know of the cases beside their numbers: weights, how often, how quiet the machine was, and every warning
    of the run."""
    cases = [case for case in cases_of(run, scenario) if case.status is Status.OK]
    if not cases:
        return ""
    weights = {case.model: case.weights for case in cases}
    kinds = [f"{kind} in {', '.join(m for m, w in weights.items() if w is kind)}" for kind in dict.fromkeys(weights.values())]
    counts = [m.latency.n for case in cases for m in case.measurements if m.latency]
    told = [
        f"Weights: {next(iter(weights.values())) + ' in all models' if len(kinds) == 1 else '; '.join(kinds)}.",
        f"{_span(counts, '')} timed runs of each session, in {_span([case.iterations for case in cases], '')} iterations.",
        f"Meanwhile: {'; '.join(_quietness(cases))}.",
    ]
    return f"{' '.join(told)} Warnings: {_warnings(cases)}."


def _quietness(cases: Sequence[CaseResult]) -> Iterator[str]:
    """By the run's own measure, the extremes over its cases."""
    if busy := [case.foreign_cores for case in cases if case.foreign_cores is not None]:
        yield f"other processes used {_span(busy, '')} cores"
    stolen = [case.stolen_cores for case in cases if case.stolen_cores is not None]
    yield f"of that the hypervisor took {_span(stolen, '')}" if stolen else "the hypervisor's share is not recorded"
    if loads := [load for case in cases for load in (case.load_before, case.load_high, case.load_after) if load is not None]:
        yield f"load average {_span(loads, '')}, the measurement included"
    if clocks := [c for case in cases for c in (case.clock_low_mhz, case.clock_high_mhz, case.clock_after_mhz) if c is not None]:
        yield f"clock {_span(clocks, ' MHz')}"


def _span(values: Sequence[float], unit: str) -> str:
    """
    >>> _span([2, 1], ""), _span([2600.0, 2600.0], " MHz")
    ('1 to 2', '2600 MHz')
    """
    low, high = min(values), max(values)
    return f"{low:g}{unit}" if low == high else f"{low:g} to {high:g}{unit}"


def _warnings(cases: Sequence[CaseResult]) -> str:
    """Each with the cases it is about, or in which contenders of which cases; none is dropped."""
    places: dict[Warn, list[str]] = {}
    for case in cases:
        everyone = [m.label for m in case.measurements]
        for warn in dict.fromkeys((*case.warnings, *(warn for m in case.measurements for warn in m.warnings))):
            warned = [m.label for m in case.measurements if warn in m.warnings]
            whom = "" if warn in case.warnings or warned == everyone else f" ({', '.join(warned)})"
            places.setdefault(warn, []).append(plain(f"{case.label}{whom}"))
    everywhere = [plain(case.label) for case in cases]
    told = (f"{warn} in {'all rows' if found == everywhere else ', '.join(found)}" for warn, found in places.items())
    return "; ".join(told) or "none"


def provenance(run: Run, source: str) -> str:
    """Where the numbers come from: the machine, the versions, the day, the file."""
    e = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in e.packages.items())
    revision = f" at {e.git_revision}{' with local changes' if e.git_dirty else ''}" if e.git_revision else ""
    quota = f", quota {e.quota_cores:g} cores" if e.quota_cores is not None else ""
    unfinished = "" if run.finished else f" Interrupted after {len(run.cases)} of {run.planned} cases."
    quick = " A quick run: rows end with 100 runs, sure or not." if run.quick else ""
    out = ", ".join(out.case for out in run.left_out)
    lacking = f" Left out for time: {plain(out)}." if out else ""
    held = f", kernels for {run.kernels_isa}" if run.kernels_isa not in ("", e.isa) else ""
    return (
        f"{e.cpu}, {e.isa}{held}, {e.cores_usable} of {e.cores_logical} logical cores{quota}, {e.os} {e.kernel}. "
        f"Python {e.python}, {versions}{revision}. Measured {run.started[:10]} with `{run.command}`, "
        f"stored in `{source}`.{quick}{unfinished}{lacking}"
    )
