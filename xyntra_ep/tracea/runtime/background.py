"""Compiles kernels beside a session that does not wait for them: in a child of low priority, which ends with its parent.

A thread starts the child and waits for its end, so that there is no zombie, and planning goes on at once. It does so for another
reason, too: the system ends the child when the thread that started it has ended. What the child cannot compile it tells the
thread, and the thread whoever asked: files that do not come are all that the session itself would see.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from xyntra_ep.tracea.runtime.children import background_child
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

Place = tuple[Path, str]  # of a kernel: the cache, and its key there
_begun: set[Place] = set()  # what children of this process are compiling
_asked: dict[str, tuple[Place, ...]] = {}  # what a graph waits for, by its digest
_refused: dict[Place, str] = {}  # why a kernel is not there
_lock = threading.Lock()


def compile_beside(
    cache: KernelCache, sources: Sequence[KernelSource], digest: str, tell: Callable[[Sequence[str]], None]
) -> threading.Thread | None:
    """Have ``sources`` compiled into the cache, for the graph of that ``digest``. Where some cannot be, ``tell`` gets the
    reasons, on another thread. Returns at once, with what waits for the child; None where another one compiles all of them."""
    placed = {(cache.root.path, cache.key(source.text)): source for source in sources}
    with _lock:
        _asked[digest] = tuple(placed)
        wanted = {place: source for place, source in placed.items() if place not in _begun}
        _begun.update(wanted)
        for place in wanted:
            _refused.pop(place, None)
    if not wanted:
        return None
    waiting = threading.Thread(target=_wait_for_child, args=(cache, wanted, tell), name="xyntra-background", daemon=True)
    waiting.start()
    return waiting


def refusals(digest: str) -> list[str]:
    """Why kernels that a graph was to go on with are not there, as far as children of this process have found out."""
    with _lock:
        return [_refused[place] for place in _asked.get(digest, ()) if place in _refused]


def _wait_for_child(cache: KernelCache, wanted: dict[Place, KernelSource], tell: Callable[[Sequence[str]], None]) -> None:
    try:
        job = pickle.dumps((str(cache.root.path), cache.compiler, cache.target, list(wanted.values())))
        child = subprocess.Popen(
            [sys.executable, background_child.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the parent
        )
        said, _ = child.communicate(job)
        reasons = _reasons(said, child.returncode, len(wanted))
    except OSError as error:
        reasons = [f"no process can be had that compiles them: {error}"] * len(wanted)
    refused = {place: why for place, why in zip(wanted, reasons, strict=True) if why}
    with _lock:  # the session goes on with the kernels that it has, and the next one tries again
        _begun.difference_update(wanted)
        _refused.update(refused)
    if refused:
        tell(list(refused.values()))


def _reasons(said: bytes, status: int, count: int) -> list[str]:
    """Of each kernel, "" where it is there."""
    if status != 0:
        return [f"the process that compiles them has ended with status {status}"] * count
    return [str(why) for why in json.loads(said)]


def _forget() -> None:
    """A child made by fork has no such thread."""
    global _lock
    _lock = threading.Lock()
    _begun.clear()  # what a child of the parent finds out, it tells the parent


os.register_at_fork(after_in_child=_forget)
