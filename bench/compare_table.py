"""A comparison of two runs as people see it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.compare import Comparison
from bench.show import STYLES, note


def show_comparison(console: Console, comparison: Comparison) -> None:
    """Every case, those that became slower once more, the mean of those that passed, and those that did not."""
    header = ("case", "provider", "old", "new", "new / old [95 %]", "verdict")
    rows = [
        [
            change.case,
            change.contender,
            f"{change.old.middle:.3f}" if change.old else "-",
            f"{change.new.middle:.3f}" if change.new else "-",
            f"{change.ratio.middle:.3f} [{change.ratio.low:.3f}, {change.ratio.high:.3f}]" if change.ratio else "-",
            change.verdict if change.ratio else change.why,
        ]
        for change in comparison.changes
    ]
    if console.is_terminal:
        table = Table(*header, box=None, header_style="bold")
        for change, cells in zip(comparison.changes, rows, strict=True):
            table.add_row(*(Text(cell) for cell in cells), style=STYLES.get(change.verdict, ""))
        console.print(table)
    else:
        for line in (header, *rows):
            print("\t".join(line), file=console.file)
    if comparison.mean is not None:
        mean = f"{comparison.mean:.3f}x in geometric mean of {len(comparison.passing)} that both runs measured"
        console.print(Text(mean), soft_wrap=True)
    for change in comparison.slower:
        ratio = change.ratio.middle if change.ratio else 0.0
        console.print(Text(f"slower: {change.case} {change.contender} {ratio:.3f}x"), soft_wrap=True)
    for change in comparison.failing:
        note(console, f"{change.case} {change.contender}: {change.why}")
    for text in comparison.notes:
        note(console, text)
