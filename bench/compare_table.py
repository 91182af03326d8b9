"""A comparison of two runs as people see it: in a terminal, on a pipe, in a document."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from xyntra_bench.compare import Change, Comparison
from xyntra_bench.results import Verdict
from xyntra_bench.show import STYLES, note
from xyntra_bench.text_table import show_table

HEADER = ("case", "provider", "old", "new", "new / old [95 %]", "verdict")
MEANING = (
    "`old` and `new` are speed-ups over the CPU provider, each measured interleaved with it; above 1 their ratio is better. A "
    "verdict needs the whole interval beyond 2 %."
)


def show_comparison(console: Console, comparison: Comparison) -> None:
    """Every case, then what there is to say about them."""
    show_table(console, HEADER, [(_row(change), STYLES.get(change.verdict, "")) for change in comparison.changes])
    for text in _said(comparison):
        console.print(Text(text), soft_wrap=True)
    for text in _noted(comparison):
        note(console, text)


def markdown_of(comparison: Comparison) -> str:
    """The same as a document. What changed comes first, because a build server shows it to one who has little time."""
    from xyntra_reports._markdown import plain, table  # with all of reports, which few commands need

    first = (Verdict.SLOWER, Verdict.NO_DATA, Verdict.FASTER)
    changes = sorted(comparison.changes, key=lambda c: first.index(c.verdict) if c.verdict in first else len(first))
    lines = [*_said(comparison), *_noted(comparison)]
    return "\n\n".join([table(HEADER, map(_row, changes), left=2), *map(plain, lines), MEANING])


def _row(change: Change) -> list[str]:
    return [
        change.case,
        change.contender,
        f"{change.old.middle:.3f}" if change.old else "-",
        f"{change.new.middle:.3f}" if change.new else "-",
        f"{change.ratio.middle:.3f} [{change.ratio.low:.3f}, {change.ratio.high:.3f}]" if change.ratio else "-",
        change.verdict if change.ratio else change.why,
    ]


def _said(comparison: Comparison) -> list[str]:
    """The mean of those that passed, and those that became slower once more."""
    mean = []
    if comparison.mean is not None:
        mean = [f"{comparison.mean:.3f}x in geometric mean of {len(comparison.passing)} that both runs measured"]
    return [*mean, *(f"slower: {c.case} {c.contender} {c.ratio.middle:.3f}x" for c in comparison.slower if c.ratio)]


def _noted(comparison: Comparison) -> list[str]:
    """What has no ratio, and what the runs do not share."""
    return [*(f"{change.case} {change.contender}: {change.why}" for change in comparison.failing), *comparison.notes]
