"""`xyntra top`: watch a process that traces, or a command that is started for it."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from xyntra_ep.diagnostics.trace.ceilings import CpuCeilings
from xyntra_ep.diagnostics.trace.ring import Batch, Ring, traced_processes
from xyntra_ep.diagnostics.trace.snapshot import Snapshot, Watch
from xyntra_ep.diagnostics.trace.timeline import timeline
from xyntra_ep.diagnostics.trace.view import drawn, need_rich
from xyntra_ep.errors import ConfigError, XyntraError

_RECORDED = 1 << 18  # records, the newest
_POLL_S = 0.02
_TAKEN_EVERY_S = 0.2
Show = Callable[[Snapshot], None]


def top(
    target: Sequence[str], *, interval_s: float = 1.0, count: int | None = None, record: Path | None = None, as_json: bool = False
) -> int:
    """Exit status: of a command that was started its own, else 0. ``target``: a process, a command, or nothing: the one process
    that traces. Raises XyntraError where that does not trace, ConfigError for a wrong question."""
    if interval_s <= 0 or (count is not None and count < 1):
        raise ConfigError("there is nothing to look at", where="top", hint="give more than 0 seconds, and looks")
    if not as_json:
        need_rich()
    if len(target) != 1 or not target[0].isdigit():
        if target:
            return _command(target, interval_s, count, record, as_json)
        return _watch(_only_one(), interval_s, count, record, as_json)
    return _watch(Ring.of_process(int(target[0])), interval_s, count, record, as_json)


def _only_one() -> Ring:
    found = traced_processes()
    if len(found) == 1:
        return Ring.of_process(found[0])
    hint = "start one with XYNTRA_TRACE=live" if not found else f"name one of {', '.join(map(str, found))}"
    raise ConfigError("no process traces" if not found else "several processes trace", where="top", hint=hint)


def _watch(ring: Ring, interval_s: float, count: int | None, record: Path | None, as_json: bool) -> int:
    watch = Watch(ring, keep=_RECORDED if record is not None else 0)
    try:
        with _shown(as_json) as show:
            looks = 0
            while ring.is_alive() and (count is None or looks < count):
                for pause in _pauses(interval_s):
                    time.sleep(pause)
                    watch.take()
                shot = watch.look()
                if looks and not shot.activity.runs and not ring.is_alive():  # what was shown last is the end of it
                    break
                show(shot)
                looks += 1
    except KeyboardInterrupt:
        pass
    if record is not None:
        kept = list(watch.kept)
        words = np.concatenate([batch.words for batch in kept]) if kept else np.empty((0, 8), np.uint64)
        lost = sum(batch.lost for batch in kept)
        batch = Batch(words=words, next=0, lost=lost)
        timeline(batch, watch.names, pid=ring.pid, ceilings=CpuCeilings.here(), lost=lost).write(record)
    return 0


def _pauses(interval_s: float) -> list[float]:
    """So short that a fast model does not fill the ring between two of them."""
    parts = max(1, math.ceil(interval_s / _TAKEN_EVERY_S))
    return [interval_s / parts] * parts


def _command(words: Sequence[str], interval_s: float, count: int | None, record: Path | None, as_json: bool) -> int:
    """What the command prints comes when it has ended, on standard error: the view has the terminal meanwhile."""
    with tempfile.TemporaryFile() as said:
        try:
            child = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env={**os.environ, "XYNTRA_TRACE": "live"},  # handed on, not read
            )
        except OSError as error:
            raise ConfigError(f"cannot be started: {error.strerror}", where=words[0]) from error
        try:
            ring = _ring_of(child)
            if ring is not None:
                _watch(ring, interval_s, count, record, as_json)
                if count is not None:
                    child.terminate()
        finally:
            if child.poll() is None and sys.exc_info()[0] is not None:
                child.terminate()
            status = child.wait()
            _print_all(said)
    if ring is None:
        raise XyntraError("ended without a session of XyntraEP", where=words[0], hint=f"its exit status was {status}")
    return 0 if count is not None else status


def _ring_of(child: subprocess.Popen[bytes]) -> Ring | None:
    """As soon as its first session has begun; None where it ends before."""
    while child.poll() is None:
        try:
            return Ring.of_process(child.pid)
        except XyntraError:
            time.sleep(_POLL_S)
    return None


def _print_all(said: IO[bytes]) -> None:
    said.seek(0)
    sys.stderr.write(said.read().decode(errors="replace"))
    sys.stderr.flush()


@contextmanager
def _shown(as_json: bool) -> Iterator[Show]:
    if as_json:
        yield lambda shot: print(json.dumps(shot.as_json()), flush=True)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console()
    with Live(console=console, auto_refresh=False, transient=False) as live:
        yield lambda shot: live.update(drawn(shot), refresh=True)
