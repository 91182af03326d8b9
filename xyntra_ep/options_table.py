"""The table of options in the documentation: `python -m xyntra_ep.options_table --write docs/options.md`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import DimHints, rows


def table() -> str:
    """All options as a Markdown table."""
    lines = ["| option | values | default | environment | meaning |", "|---|---|---|---|---|"]
    for row in rows():
        values = ", ".join(f"`{value}`" for value in row.values) if row.kind not in (int, Path, DimHints) else row.values[0]
        lines.append(f"| `{row.name}` | {values} | `{row.default}` | `{row.variable}` | {row.doc} |")
    return "\n".join(lines)


def refresh(document: str) -> str:
    """The document with the table between its `<!-- options -->` marks made new."""
    begin, end = "<!-- options -->", "<!-- /options -->"
    head, found_begin, rest = document.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not (found_begin and found_end):
        raise ConfigError(f"no {begin} ... {end}", where="document", hint="put the marks where the table belongs")
    return f"{head}{begin}\n{table()}\n{end}{tail}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m xyntra_ep.options_table", description="Print the table of provider options.")
    parser.add_argument("--write", metavar="FILE", type=Path, help="refresh the table inside this document instead")
    chosen = parser.parse_args(arguments)
    if chosen.write is None:
        print(table())
    else:
        chosen.write.write_text(refresh(chosen.write.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
