"""The callback answers whatever happens, and says in one line what did."""

from __future__ import annotations

import ctypes
import gc
import time
from typing import Any

import pytest

from tests.provider.test_graph_buffer import written
from xyntra_ep import knobs
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.provider.callback import make_callback
from xyntra_ep.provider.graph_buffer import RawGraph


class Stop(BaseException):
    """As a program may have one of its own."""


class Library:
    """What of the native library the callback uses."""

    def __init__(self) -> None:
        self.replies: list[tuple[bool, bytes]] = []

    def xyntra_reply(self, reply: int, is_plan: bool, answer: bytes, size: int) -> None:
        assert reply == 77 and size == len(answer)
        self.replies.append((is_plan, answer))


def call(plan_graph: Any, data: bytes | None = None, library: Library | None = None) -> tuple[bool, bytes]:
    library = library or Library()
    callback = make_callback(library, plan_graph)  # type: ignore[arg-type]
    buffer = ctypes.create_string_buffer(data if data is not None else written(2))
    assert callback(ctypes.addressof(buffer), len(buffer) - 1, b"ab" * 16, 77) == 1
    (reply,) = library.replies
    return reply


def test_a_plan() -> None:
    def plan_graph(raw: RawGraph, digest: str) -> bytes:
        assert len(raw.nodes) == 2 and digest == "ab" * 16
        return b"plan"

    assert call(plan_graph) == (True, b"plan")


@pytest.mark.parametrize("threshold", [700, 10**6, 0])  # as Python has it; the owner of the process thought of it already
def test_garbage_is_looked_for_less_often_while_planning(threshold: int) -> None:
    def plan_graph(raw: RawGraph, digest: str) -> bytes:
        seen.append(gc.get_threshold()[0])
        raise ValueError("odd")

    seen: list[int] = []
    before = gc.get_threshold()
    gc.set_threshold(threshold, 11, 12)
    try:
        call(plan_graph)
        assert gc.get_threshold() == (threshold, 11, 12)
    finally:
        gc.set_threshold(*before)
    assert (seen[0] > threshold) is (threshold == 700)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnsupportedError("no compiler", hint="install gcc"), b"no compiler. install gcc"),
        (ValueError("odd"), b"internal: ValueError: odd ("),
        (RecursionError("deep"), b"internal: RecursionError: deep ("),
    ],
)
def test_an_exception_is_a_reason(error: BaseException, text: bytes) -> None:
    def fail(raw: RawGraph, digest: str) -> bytes:
        raise error

    is_plan, answer = call(fail)
    assert not is_plan and answer.startswith(text)
    assert b"\n" not in answer


@pytest.mark.parametrize(
    ("error", "text"),
    [(KeyboardInterrupt(), b"KeyboardInterrupt ("), (SystemExit(3), b"SystemExit: 3 ("), (Stop("now", 4), b"tests.")],
)
def test_what_is_meant_for_the_program_comes_again_when_the_answer_is_given(error: BaseException, text: bytes) -> None:
    """Ctrl-C, or what the user's handler of a signal raises. It may come as soon as the callback has returned, so the answer is
    read where native code has it."""

    def interrupted(raw: RawGraph, digest: str) -> bytes:
        raise error

    library = Library()
    with pytest.raises(type(error)) as caught:
        call(interrupted, library=library)
        for _ in range(600):
            time.sleep(0.01)
    [(is_plan, answer)] = library.replies
    assert not is_plan and answer.startswith(text)
    assert caught.value.args == error.args
    assert getattr(caught.value, "code", None) == getattr(error, "code", None)
    time.sleep(0.1)  # once


def test_with_debug_the_reason_has_a_traceback() -> None:
    def fail(raw: RawGraph, digest: str) -> bytes:
        raise ValueError("odd")

    with knobs.scope(debug=1):
        assert b"Traceback (most recent call last)" in call(fail)[1]


def test_a_damaged_buffer_is_a_reason() -> None:
    assert call(lambda raw, digest: b"", written(2)[:-3])[0] is False
    assert call(lambda raw, digest: b"", b"nothing at all")[1].startswith(b"internal: ValueError: this is no graph buffer")
