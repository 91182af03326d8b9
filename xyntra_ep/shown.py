"""What commands print: text for people, JSON for programs, and on a terminal how far they are."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def show(value: object, as_json: Any, chosen: argparse.Namespace) -> None:
    print(json.dumps(as_json, indent=1, default=_plain) if chosen.json else value)


def fields_of(record: Any) -> dict[str, object]:
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}


def _plain(value: object) -> object:
    """What json does not know: records by field, sets sorted, paths as text."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """A line on a terminal that each new one replaces, and that is gone in the end."""
    shown = sys.stderr.isatty()

    def show(line: str) -> None:
        if shown:
            print(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        show("")
