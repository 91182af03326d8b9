"""What native code prints to standard error while Python looks away: the only place a runtime's log goes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Captured:
    """Filled when the block ends."""

    lines: list[str] = field(default_factory=list)


@contextmanager
def stderr_captured(*, active: bool = True) -> Iterator[Captured]:
    """The lines written to file descriptor 2 inside; they are passed on afterwards, so that a log keeps them."""
    captured = Captured()
    if not active:
        yield captured
        return
    kept = os.dup(2)
    try:
        with tempfile.TemporaryFile() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield captured
            finally:
                os.dup2(kept, 2)
                file.seek(0)
                text = file.read()
                os.write(2, text)
                captured.lines = text.decode(errors="replace").splitlines()
    finally:
        os.close(kept)
