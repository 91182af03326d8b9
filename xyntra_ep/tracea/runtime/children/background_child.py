"""Compiles kernels into a cache, as a program of its own that nobody waits for.

background_child.py PARENT < JOB > REFUSED   PARENT: the process that it ends with; JOB: what `runtime/background.py` has pickled;
                                             REFUSED: as JSON, for each kernel in turn why it cannot be compiled, or ""
"""

from __future__ import annotations

import ctypes
import json
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import NoReturn

_NICE = 10  # with 19, sessions that keep all processors busy would never get their kernels
_PR_SET_PDEATHSIG = 1
_TIMEOUT_S = 1000.0  # of a compiler that gets what others leave


def main(parent: str) -> int:
    _end_with(int(parent))
    os.nice(_NICE)
    os.environ.update(XYNTRA_REGISTER="0")  # a compiler needs no provider
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    from xyntra_ep import knobs
    from xyntra_ep.errors import CompileError
    from xyntra_ep.tracea.runtime.cache_root import open_root
    from xyntra_ep.tracea.runtime.kernel_cache import KernelCache

    path, compiler, target, sources = pickle.load(sys.stdin.buffer)  # of the parent's making
    jobs = max(1, knobs.current().jobs // 4)  # the others are the session's
    with knobs.scope(jobs=jobs, compile_timeout_s=_TIMEOUT_S):
        made = KernelCache(open_root(Path(path)), compiler, target).compile_many(sources)
    json.dump([str(kernel) if isinstance(kernel, CompileError) else "" for kernel in made], sys.stdout)
    return 0


def _end_with(parent: int) -> None:
    """Compilers are ended and their files removed, too, whence an exception instead of the signal's default."""

    def end(number: int, frame: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # it comes again when the parent's last thread ends, and would disturb the cleaning
        raise SystemExit(1)

    signal.signal(signal.SIGTERM, end)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it ended before
        raise SystemExit(1)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
