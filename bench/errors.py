"""Mistakes the caller can fix. Each prints "where: what. hint"."""

from __future__ import annotations


class BenchError(Exception):
    """A bad option, a file that cannot be read, a provider that is not there."""


def reason_of(error: BaseException) -> str:
    """An exception in a line: the last that its text has, where runtimes that print how they came there say what is wrong.

    >>> reason_of(ValueError("exception from core.cpp:264:\\nno such property\\n"))
    'ValueError: no such property'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1]}" if lines else type(error).__name__


class Unavailable(BenchError):
    """A contender that this machine or this installation does not have: a result, not a failure of it."""
