"""Reports the progress of compilers to a listener while a session waits. A listener belongs to a thread, because a thread waits.

>>> with heard_by(lambda done, total: print(f"{done} of {total}")):
...     tell(3, 12)
3 of 12
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Hear = Callable[[int, int], None]  # how many kernels have been compiled, and how many there are; some times a second

_hear: ContextVar[Hear | None] = ContextVar("xyntra_progress", default=None)


@contextmanager
def heard_by(hear: Hear) -> Iterator[None]:
    """Nobody else hears meanwhile."""
    token = _hear.set(hear)
    try:
        yield
    finally:
        _hear.reset(token)


def is_heard() -> bool:
    """Whether anybody does."""
    return _hear.get() is not None


def tell(done: int, total: int) -> None:
    """Of kernels that were not in the cache."""
    if (hear := _hear.get()) is not None:
        hear(done, total)
