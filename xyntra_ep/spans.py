"""Stages of planning and how long they took, for a trace (docs/tracing.md). Where nobody listens, a stage costs a comparison.

>>> told = []
>>> with heard_by(lambda name, begin_ns, end_ns: told.append(name)):
...     with span("compile", "xy_gemm"):
...         pass
>>> told
['compile xy_gemm']
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

Hear = Callable[[str, int, int], None]  # what it is called, and when it began and ended: nanoseconds of time.monotonic_ns()


class _State:
    """Of the process, because compilers are waited for by other threads than the one that plans."""

    def __init__(self) -> None:
        self.hear: Hear | None = None


_state = _State()


class _Nothing:
    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class _Span:
    __slots__ = ("begin_ns", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.begin_ns = time.monotonic_ns()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if (hear := _state.hear) is not None:
            hear(self.name, self.begin_ns, time.monotonic_ns())


_NOTHING = _Nothing()


def span(stage: str, of: str = "") -> _Span | _Nothing:
    """A context: it is told when it is left. ``of``: what the stage is about."""
    return _NOTHING if _state.hear is None else _Span(f"{stage} {of}".rstrip())


def tell(stage: str, of: str, begin_ns: int) -> None:
    """Of what began at ``begin_ns`` and has ended now, beside other things that this thread did."""
    if (hear := _state.hear) is not None:
        hear(f"{stage} {of}".rstrip(), begin_ns, time.monotonic_ns())


@contextmanager
def heard_by(hear: Hear | None) -> Iterator[None]:
    """Stages are told to ``hear`` meanwhile; to nobody for None. Of two at a time the later one hears all, in one trace."""
    before, _state.hear = _state.hear, hear or _state.hear
    try:
        yield
    finally:
        _state.hear = before
