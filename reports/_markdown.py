"""Markdown pieces the reports share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from bench.plan import Scenario
from bench.results import CaseResult, Ratio, Run, Status


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
    return tuple(case for case in run.cases if case.scenario is scenario)


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
    return f"{table(header, filled, left=2)}\n\n{note}\n\n{provenance(run, source)}\n"


def speed_up(ratio: Ratio | None) -> str:
    """
    >>> speed_up(Ratio(middle=1.3, low=1.281, high=1.324, pairs=60, rounds=3))
    '1.30x [1.28, 1.32]'
    """
    return f"{ratio.middle:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]" if ratio else "-"


def bounds(cases: Sequence[CaseResult]) -> str:
    """The bound of each precision that was checked, as in `2e-05 in fp32, 0.02 in bf16`."""
    checked = {m.contender.precision: m.check.max_err for case in cases for m in case.contenders if m.check}
    return ", ".join(f"{bound:g} in {precision}" for precision, bound in checked.items()) or "none checked"


def provenance(run: Run, source: str) -> str:
    """Where the numbers come from: the machine, the versions, the day, the file."""
    e = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in e.packages.items())
    revision = f" at {e.git_revision}{' with local changes' if e.git_dirty else ''}" if e.git_revision else ""
    quota = f", quota {e.quota_cores:g} cores" if e.quota_cores is not None else ""
    unfinished = "" if run.finished else f" Interrupted after {len(run.cases)} of {run.planned} cases."
    quick = " A quick run: few repetitions, for orientation." if run.quick else ""
    return (
        f"{e.cpu}, {e.cores_usable} of {e.cores_logical} logical cores{quota}, {e.os} {e.kernel}. "
        f"Python {e.python}, {versions}{revision}. Measured {run.started[:10]} with `{run.command}`, "
        f"stored in `{source}`.{quick}{unfinished}"
    )
