"""A guard around each stage of planning: an internal error costs the part that it happens in, not the model.

>>> with guarded("lowering"):
...     {}["tanh"]
Traceback (most recent call last):
    ...
xyntra_ep.errors.InternalError: lowering: internal: KeyError: 'tanh'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xyntra_ep import knobs
from xyntra_ep.errors import InternalError, InvariantError, XyntraError

_MARK = "internal: "
INVALID_PLAN = "the planner's answer is not a valid plan"  # of native code (plan_source.cc), of what Python gave it
_LONGEST = 160  # characters of an exception's own text, in a reason that is one line


def reason_of(error: BaseException) -> str:
    """The reason of a decline for an exception that nobody expected: one short line."""
    lines = str(error).strip().splitlines()
    return f"{_MARK}{type(error).__name__}" + (f": {lines[0][:_LONGEST]}" if lines else "")


def is_fault(reason: str) -> bool:
    """Whether a reason is that of a fault of ours."""
    return reason.startswith((_MARK, INVALID_PLAN))


def is_ours(error: BaseException) -> bool:
    """Whether an exception is a fault of ours. Our own errors are expected, but for a failed check of our IR. A full disk or
    memory is no fault of ours, and may be another time; nor is what is meant for the program, as Ctrl-C."""
    expected = isinstance(error, XyntraError | OSError | MemoryError) and not isinstance(error, InvariantError)
    return isinstance(error, Exception) and not expected


@contextmanager
def guarded(stage: str) -> Iterator[None]:
    """What nobody expected becomes an InternalError, recorded as any other decline; with XYNTRA_DEBUG it stays what it is."""
    try:
        yield
    except Exception as error:
        if not is_ours(error) or knobs.current().debug:
            raise
        import traceback  # seldom needed, and this is part of the package's import

        details = "".join(traceback.format_exception(error))
        raise InternalError(reason_of(error), where=stage, details=details) from error
