"""Logs once that a session waits for compilers; later sessions find what was compiled."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xyntra_ep.provider import registration
from xyntra_ep.tracea.planning.manifest import LogLevel
from xyntra_ep.tracea.runtime import progress
from xyntra_ep.tracea.runtime.cache_root import open_root

PATIENCE_S = 1.0  # what nobody asks about


@contextmanager
def announced(cache_dir: Path, least: LogLevel) -> Iterator[None]:
    """As a warning where somebody sits at a terminal, else only for who listens to INFO. Nothing below ``least``, and nothing
    where a command shows its progress.
    """
    if progress.is_heard():
        yield
        return
    begun, said = time.monotonic(), False

    def hear(done: int, total: int) -> None:
        nonlocal said
        if said or time.monotonic() - begun < PATIENCE_S:
            return
        said = True
        level = LogLevel.WARNING if os.isatty(2) else LogLevel.INFO  # where ONNX Runtime's log goes
        if level >= least:
            registration.say(level, _line(total, cache_dir))

    with progress.heard_by(hear):
        yield


def _line(kernels: int, cache_dir: Path) -> str:
    text = f"{registration.EP_NAME}: compiling {kernels} kernel{'s' if kernels > 1 else ''}"
    root = open_root(cache_dir)
    return text if root.reason else f"{text}, kept in {root.path}; later sessions find them"
