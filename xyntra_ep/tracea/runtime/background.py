"""Compiles kernels beside a session that does not wait for them: in a child of low priority, which ends with its parent.

A thread starts the child and waits for its end, so that there is no zombie, and planning goes on at once. It does so for another
reason, too: the system ends the child when the thread that started it has ended.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence

from xyntra_ep.tracea.runtime.children import background_child
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

_begun: set[str] = set()  # keys of kernels that a child of this process is compiling
_lock = threading.Lock()


def compile_beside(cache: KernelCache, sources: Sequence[KernelSource]) -> threading.Thread | None:
    """Have ``sources`` compiled into the cache; what becomes of it is seen there alone. Returns at once, with what waits for the
    child; None where another child compiles all of them already."""
    by_key = {cache.key(source.text): source for source in sources}
    with _lock:
        wanted = {key: source for key, source in by_key.items() if key not in _begun}
        _begun.update(wanted)
    if not wanted:
        return None
    waiting = threading.Thread(target=_wait_for_child, args=(cache, wanted), name="xyntra-background", daemon=True)
    waiting.start()
    return waiting


def _wait_for_child(cache: KernelCache, wanted: dict[str, KernelSource]) -> None:
    try:
        job = pickle.dumps((str(cache.root.path), cache.compiler, cache.target, list(wanted.values())))
        child = subprocess.Popen(
            [sys.executable, background_child.__file__, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C is for the parent
        )
        child.communicate(job)
    except OSError:  # the session goes on with the kernels that it has, and the next one tries again
        pass
    finally:
        with _lock:
            _begun.difference_update(wanted)


def _forget() -> None:
    """A child made by fork has no such thread."""
    global _lock
    _lock = threading.Lock()
    _begun.clear()


os.register_at_fork(after_in_child=_forget)
