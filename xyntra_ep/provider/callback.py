"""The callback by which native code asks Python for the plan of a graph.

It is called on any thread, while a session is created. Errors become a reason in the answer, because ctypes only prints an
exception that leaves a callback. `xyntra_ep/ending.py` says what happens to it when the process ends.
"""

from __future__ import annotations

import _thread
import ctypes
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from xyntra_ep import ending, knobs
from xyntra_ep.errors import XyntraError
from xyntra_ep.guard import is_ours, reason_of

if TYPE_CHECKING:
    from xyntra_ep.provider.graph_buffer import RawGraph

# int (*)(const void* graph, uint64_t bytes, const char* digest, void* reply)
PLANNER = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_void_p)
PlanGraph = Callable[["RawGraph", str], bytes]
_POLL_S = 0.0005
_COLLECT_AFTER = 20_000  # objects more than before: garbage stays below some megabytes


def make_callback(library: ctypes.CDLL, plan_graph: PlanGraph | None = None) -> Any:
    """The callback to attach. `plan_graph`: for tests; the planner itself is imported at the first call."""

    def callback(address: int, n_bytes: int, digest: bytes, reply: int) -> int:
        return _planned(library, address, n_bytes, digest, reply, plan_graph or _plan_graph)

    return PLANNER(callback)


def _planned(library: ctypes.CDLL, address: int, n_bytes: int, digest: bytes, reply: int, plan_graph: PlanGraph) -> int:
    is_plan, answer = _answer(address, n_bytes, digest, plan_graph)
    library.xyntra_reply(reply, is_plan, answer, len(answer))
    if ending.is_closing():
        ending.linger()
    return 1


def _plan_graph(raw: RawGraph, digest: str) -> bytes:
    from xyntra_ep.provider.planner import plan_graph

    return plan_graph(raw, digest)


def _answer(address: int, n_bytes: int, digest: bytes, plan_graph: PlanGraph) -> tuple[bool, bytes]:
    try:
        from xyntra_ep.provider import graph_buffer

        view = memoryview((ctypes.c_char * n_bytes).from_address(address))
        with ending.Interruptible(), _rare_collections():
            return True, plan_graph(graph_buffer.read(view), digest.decode("ascii"))
    except BaseException as error:  # KeyboardInterrupt too: it must not end in ctypes
        if ending.is_closing():
            return False, b"the process ends"
        if not isinstance(error, Exception):
            with suppress(RuntimeError):  # too late for threads
                _thread.start_new_thread(_raise_again, (threading.get_ident(), error))
        return False, _reason(error).encode("utf-8", "replace")


def _raise_again(thread: int, error: BaseException) -> None:
    """Who pressed Ctrl-C while a plan was made, or whose handler of a signal said sys.exit(), meant the program: that is told
    again as soon as the thread has left Python for native code, to be heard when it comes back."""
    while _in_callback(thread):
        time.sleep(_POLL_S)
    if isinstance(error, KeyboardInterrupt) and thread == threading.main_thread().ident:
        signal.pthread_kill(thread, signal.SIGINT)  # which ends waiting, too, should the thread be back already
    else:
        ending.raise_in_thread(thread, error)


def _in_callback(thread: int) -> bool:
    frame = sys._current_frames().get(thread)
    while frame is not None:
        if frame.f_code is _planned.__code__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def _rare_collections() -> Iterator[None]:
    """A plan is many small objects most of which live until it is written: to look for garbage among them every 700th time, and
    among all that the process has besides, was a tenth of planning."""
    before = gc.get_threshold()
    if not 0 < before[0] < _COLLECT_AFTER:
        yield
        return
    gc.set_threshold(_COLLECT_AFTER, 1000, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _reason(error: BaseException) -> str:
    """Our own errors explain themselves; of others, the place helps to report them."""
    if isinstance(error, XyntraError):
        return str(error)
    import traceback

    text = reason_of(error) if is_ours(error) else "".join(traceback.format_exception_only(error)).strip()
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        text += f" ({frames[-1].filename}:{frames[-1].lineno})"
    try:
        debug = knobs.current().debug
    except XyntraError:
        debug = 0
    return text + ("\n" + "".join(traceback.format_exception(error)) if debug else "")
