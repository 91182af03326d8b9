"""What happens when the process ends while a plan is being made.

Python ends a daemon thread by unwinding it as soon as the thread wants to run Python code again. A thread that plans has frames
of ONNX Runtime on its stack, which cannot be unwound, so the process would abort. Therefore, when Python is about to end (all
other threads have ended by then):

1. no new plan is begun: a request for one gets this as the reason;
2. threads that plan are interrupted, as by Ctrl-C: they end their compilers and remove the files that they were writing;
3. the process waits for that, for a bounded time;
4. then what was registered with `at_end` is removed: temporary folders, the callback from native code.

An interrupted thread does not return to ONNX Runtime at once, because it would be unwound there: it `linger`s. If Python ends it
nevertheless, native code stops it where it is (native/planner_link.cc). A daemon thread that is in ONNX Runtime's own code, in a
run or in its part of a session's creation, is outside of our control: the process aborts.

A child made by fork has none of its parent's threads, and forgets them.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType

_PATIENCE_S = 10.0  # that the process waits for its planning threads
_AGAIN_S = 3.0  # after which one that did not listen is interrupted again; ending compilers takes less
_LINGER_S = 1.0  # longer than Python takes to go, as a rule; and somebody may yet wait for the thread
_POLL_S = 0.005


class Ending(BaseException):
    """Raised in a thread that plans or compiles: the process ends."""


class _State:
    """Of the process, and made anew in a child of it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.threads: dict[int, int] = {}  # that can be interrupted; how often each has entered: a plan may ask for another
        self.sent: set[int] = set()  # threads that were interrupted and have not left since
        self.closing = False


_state = _State()
_last: list[Callable[[], None]] = []


class Interruptible:
    """Within it, a thread can be interrupted by the end of the process. Leaves it with SystemExit then, of which Python says
    nothing; raises that, too, where the end has begun."""

    def __enter__(self) -> None:
        me = threading.get_ident()
        with _state.lock:
            if _state.closing:
                raise SystemExit
            _state.threads[me] = _state.threads.get(me, 0) + 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        me, left, count = threading.get_ident(), False, 0
        while True:
            try:
                with _state.lock:
                    if not left:  # set in the same breath: an exception comes at the end of a call
                        if (count := _state.threads.get(me, 1) - 1) > 0:
                            _state.threads[me] = count
                        elif me in _state.threads:
                            del _state.threads[me]
                        left = True
                    if me in _state.sent:
                        # What was sent and has not arrived must not arrive outside. Python 3.11 looks for something to come
                        # ever after, and a profiler never ends: so only where something was sent.
                        _raise_in(me, None)
                        _state.sent.discard(me)
                break
            except Ending:
                continue
        if count <= 0 and isinstance(error, Ending):
            raise SystemExit from None


def is_closing() -> bool:
    """Whether the end has begun."""
    return _state.closing


def linger() -> None:
    """Stay in Python while it goes: from here, native code is not returned to. Not in the main thread, which ends the process."""
    if threading.current_thread() is not threading.main_thread():
        (never := threading.Lock()).acquire()
        never.acquire(timeout=_LINGER_S)


def at_end(function: Callable[[], None]) -> None:
    """Call it when the process ends and nobody plans any more; what was registered last comes first."""
    _last.append(function)


def raise_in_thread(thread: int, error: BaseException) -> None:
    """As if ``error`` had been raised at the point where ``thread`` is. Nothing happens to a thread that has ended. (Python 3.11
    forgets the status of a SystemExit that meets no `except` and no `finally` on its way out.)"""
    kind, arguments = type(error), error.args
    if not arguments:
        _raise_in(thread, kind)
        return

    def init(self: BaseException) -> None:  # Python is given a class, and makes the object itself
        kind.__init__(self, *arguments)

    facts = {"__init__": init, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    _raise_in(thread, type(kind.__name__, (kind,), facts))


def _raise_in(thread: int, kind: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(kind) if kind is not None else None)


def _close() -> None:
    begin = time.monotonic()
    interrupted = -_AGAIN_S
    _state.closing = True
    while (waited_s := time.monotonic() - begin) < _PATIENCE_S:
        with _state.lock:
            if not _state.threads:
                break
            if waited_s - interrupted >= _AGAIN_S:
                interrupted = waited_s
                for thread in _state.threads:
                    _state.sent.add(thread)
                    _raise_in(thread, Ending)
        time.sleep(_POLL_S)
    while _last:
        _last.pop()()


def _in_child() -> None:
    global _state
    _state = _State()


atexit.register(_close)
os.register_at_fork(after_in_child=_in_child)
