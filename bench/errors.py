"""Mistakes the caller can fix. Each prints "where: what. hint"."""

from __future__ import annotations


class BenchError(Exception):
    """A bad option, a file that cannot be read, a provider that is not there."""


class Unavailable(BenchError):
    """A contender that this machine or this installation does not have: a result, not a failure of it."""
