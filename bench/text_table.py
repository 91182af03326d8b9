"""A table as people read it: in colours on a terminal, in columns of text on a pipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text


def show_table(console: Console, header: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> None:
    """Each row comes with the style of its line on a terminal, "" for none."""
    if not console.is_terminal:
        for line in aligned([header, *(cells for cells, _ in rows)]):
            print(line, file=console.file)
        return
    table = Table(*header, box=None, header_style="bold")
    for cells, style in rows:
        table.add_row(*map(Text, cells), style=style)
    console.print(table)


def aligned(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as their longest cell, two spaces between them; those of numbers end in one line.

    >>> print(*aligned([("model", "p50 ms"), ("bert-base", "9.5"), ("vit", "-"), ("vit", "12.5")]), sep="\\n")
    model      p50 ms
    bert-base     9.5
    vit             -
    vit          12.5
    """
    columns = list(zip(*lines, strict=True))
    widths = [max(map(len, column)) for column in columns]
    numbers = [all(cell in ("", "-") or cell[0].isdigit() for cell in column[1:]) for column in columns]
    for line in lines:
        cells = zip(line, widths, numbers, strict=True)
        yield "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in cells).rstrip()
