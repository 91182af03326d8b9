"""The errors that XyntraEP raises.

    XyntraError              base of all; prints "where: what. hint"
      ConfigError            the caller fixes it: a bad name, a bad value, a missing tool
      UnsupportedError       we decline; the partitioner records it and ONNX Runtime keeps the node
        InternalError        an unexpected exception, as a decline: our bug (`xyntra_ep/guard.py`)
      CompileError           a compiler refused our text; carries source and log
      InvariantError         a check of our own IR failed; carries the pass and the IR text

If input can cause it, it is an exception; if only a bug of ours can cause it, an assert.

Errors of a session's run are ONNX Runtime's exceptions: `is_fatal` tells their two kinds apart.
"""

from __future__ import annotations

from collections.abc import Sequence


class XyntraError(Exception):
    """An error with a place and a way out.

    >>> print(XyntraError("no compiler found", where="doctor", hint="install gcc 12 or set XYNTRA_CC"))
    doctor: no compiler found. install gcc 12 or set XYNTRA_CC
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text.rstrip('.')}. {self.hint}" if self.hint else text


_LOST = "the session is lost"  # `what_is_left` of native/ort.h


def is_fatal(error: BaseException) -> bool:
    """Whether an error of a run says that its session is lost, because its device is: only a new session helps. Else the session
    can go on. It looks at the text: `run` raises ONNX Runtime's EPFail for this kind alone, but `run_with_iobinding` raises a
    RuntimeError for both.

    >>> is_fatal(RuntimeError("XyntraEP: there was no memory for a tensor of 8 bytes. the session can go on"))
    False
    """
    return _LOST in str(error)


def did_you_mean(name: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """The hint for a name that does not exist: the nearest one that does, of a likeness (0 to 1) of ``cutoff`` or more, else all.

    >>> did_you_mean("clam", ["backend", "claim"])
    "did you mean 'claim'?"
    """
    import difflib  # seldom needed, and this is part of the package's import

    near = difflib.get_close_matches(name, known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


class ConfigError(XyntraError):
    """The caller asked for something that does not exist or cannot be had here."""


class UnsupportedError(XyntraError):
    """We do not do this. Inside a session it becomes a recorded decline, never a crash."""


class InternalError(UnsupportedError):
    """An exception that nobody expected, at the stage of planning that ``where`` names: our bug. ``details``: its traceback."""

    def __init__(self, what: str, *, where: str = "", hint: str = "", details: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.details = details


class CompileError(XyntraError):
    """A compiler refused our text, crashed or took too long.

    >>> error = CompileError("gcc ended with 1", where="xy_relu", source="int f(", log="expected ')'")
    >>> error.log
    "expected ')'"
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "", source: str = "", log: str = "") -> None:
        super().__init__(what, where=where, hint=hint)
        self.source = source
        self.log = log


class InvariantError(XyntraError):
    """A pass left IR that breaks a rule: our bug, caught before it could reach a user's numbers."""

    def __init__(self, what: str, *, where: str = "", hint: str = "", pass_name: str = "", ir: str = "") -> None:
        super().__init__(what, where=where or pass_name, hint=hint)
        self.pass_name = pass_name
        self.ir = ir
