"""The error tree: how messages read, what each carries, and that they survive a process boundary."""

from __future__ import annotations

import pickle

import pytest

from xyntra_ep.errors import CompileError, ConfigError, InvariantError, UnsupportedError, XyntraError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (XyntraError("what"), "what"),
        (XyntraError("what", where="where"), "where: what"),
        (XyntraError("what", hint="hint"), "what. hint"),
        (XyntraError("what", where="where", hint="hint"), "where: what. hint"),
        (XyntraError("what.", where="where", hint="hint"), "where: what. hint"),
        (InvariantError("x is not defined", pass_name="fuse_loops"), "fuse_loops: x is not defined"),
    ],
)
def test_message_form(error: XyntraError, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize("kind", [ConfigError, UnsupportedError, CompileError, InvariantError])
def test_one_base_catches_all(kind: type[XyntraError]) -> None:
    with pytest.raises(XyntraError):
        raise kind("what", where="where", hint="hint")


def test_what_is_carried_survives_pickling() -> None:
    compiling = CompileError("gcc ended with 1", where="xy_relu", hint="see the log", source="int f(", log="expected ')'")
    again = pickle.loads(pickle.dumps(compiling))
    assert (str(again), again.source, again.log) == (str(compiling), "int f(", "expected ')'")

    broken = pickle.loads(pickle.dumps(InvariantError("bad", pass_name="simplify", ir="(add x)")))
    assert (str(broken), broken.pass_name, broken.ir) == ("simplify: bad", "simplify", "(add x)")
