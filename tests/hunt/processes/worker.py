"""A child process that makes cases and judges them, one message at a time.

It says what it is about to do before it does it; the parent (pool.py) keeps the last word of a child that dies.
"""

from __future__ import annotations

import importlib
import os
import pickle
import resource
import signal
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from tests.hunt.case import Case

MOST_MEMORY = 6 << 30  # a shape program that went wrong on ONNX Runtime's side, too, must not take the machine along


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunt:
    """Make the case of these numbers and judge it."""

    seed: int
    number: int
    only: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Judge this one."""

    case: Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """All values that ONNX Runtime computes for a run of this case, and the number of the node that fails."""

    case: Case
    run: int


Request = Hunt | Check | Inside


def main(conn: Connection, log: str, preload: str, environment: Mapping[str, str]) -> None:
    """``environment``: variables that XyntraEP reads. ``preload``: "module:function" to call first; the hunter's own tests plant
    faults by it."""
    os.environ.update(environment)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit_memory()

    import onnxruntime as ort

    import xyntra_ep
    from tests.hunt.generation.generator import generate
    from tests.hunt.generation.single import values_inside
    from tests.hunt.judge import Judge, Verdict

    ort.set_default_logger_severity(4)
    xyntra_ep.register()
    if preload:
        module, _, function = preload.partition(":")
        getattr(importlib.import_module(module), function)()

    def announce(what: str) -> None:
        conn.send(("about to", what))

    def answer(request: Request) -> object:
        case: Case | None
        if isinstance(request, Inside):
            return values_inside(request.case.proto(), request.case.runs[request.run].feeds)
        if isinstance(request, Hunt):
            announce("ORT generate")
            case = generate(request.seed, request.number, request.only)
            conn.send(("case", case))
        else:
            case = request.case
        return Verdict(refused=True) if case is None else Judge(case, announce).judge()

    conn.send(("ready", Path(xyntra_ep.__file__).parent.as_posix()))
    while True:
        try:
            request: Request = pickle.loads(conn.recv_bytes())
        except EOFError:
            return
        try:
            conn.send(("done", answer(request)))
        except Exception:  # a mistake of the hunter's own, which must not look like a crash of ours
            conn.send(("mistake", traceback.format_exc()))


def _limit_memory() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY or soft > MOST_MEMORY:
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, hard))
