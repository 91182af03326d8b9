"""Sizes that decide how a kernel is built, and are still given to it when it runs: one kernel then serves many shapes.

    768                    is in the kernel's text wherever it is used
    symbol("n")            is a parameter, of which building knows nothing
    GivenSize(768, "k")    is a parameter, and every decision sees 768

A ``GivenSize`` is an int. What is computed from it with + - * // % is one too and remembers how it came about, so that equal
computations are one parameter of a kernel, whatever their values are. What is decided by it is in the kernel's text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from xyntra_ep.errors import InvariantError

PREFIX = "pg_"  # of the names of parameters
_NAME_DIGITS = 12
_values: ContextVar[dict[str, int] | None] = ContextVar("_values", default=None)


class GivenSize(int):
    """See the module's docstring. ``origin`` says how it came about."""

    origin: str

    def __new__(cls, value: int, origin: str) -> GivenSize:
        made = super().__new__(cls, value)
        made.origin = origin
        return made

    def __add__(self, other: Any) -> Any:
        return _made("+", int.__add__(self, other), self, other, either_order=True)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Any:
        return _made("*", int.__mul__(self, other), self, other, either_order=True)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Any:
        return _made("-", int.__sub__(self, other), self, other)

    def __rsub__(self, other: Any) -> Any:
        return _made("-", int.__rsub__(self, other), other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _made("//", int.__floordiv__(self, other), self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _made("//", int.__rfloordiv__(self, other), other, self)

    def __mod__(self, other: Any) -> Any:
        return _made("%", int.__mod__(self, other), self, other)

    def __rmod__(self, other: Any) -> Any:
        return _made("%", int.__rmod__(self, other), other, self)

    def __neg__(self) -> Any:
        return _made("-", int.__neg__(self), 0, self)

    def __reduce__(self) -> Any:
        return GivenSize, (int(self), self.origin)


def _made(sign: str, value: Any, a: Any, b: Any, either_order: bool = False) -> Any:
    """The result of an operation; 0 and 1 are themselves, since they decide what is left out."""
    if value is NotImplemented or value in (0, 1):
        return value
    names = [x.origin if isinstance(x, GivenSize) else str(x) for x in (a, b)]
    if either_order:
        names.sort()
    return GivenSize(value, _digest(sign.join(names)))


def _digest(origin: str) -> str:
    return hashlib.sha256(origin.encode()).hexdigest()[:_NAME_DIGITS]


def decided_by(what: str, value: int, size: int) -> int:
    """``value``, which was decided by a size in a way that arithmetic on integers does not show. ``what`` it is for tells it from
    others that the same size decides."""
    if type(size) is not GivenSize or value in (0, 1):
        return value
    return GivenSize(value, _digest(f"{what} {value} by {size.origin}"))


@contextmanager
def parameters() -> Iterator[None]:
    """Within it given sizes can be parameters of kernels."""
    token = _values.set({})
    try:
        yield
    finally:
        _values.reset(token)


def sizes_are_parameters() -> bool:
    return _values.get() is not None


def parameter_name(size: GivenSize) -> str:
    """Its name as a parameter. Raises InvariantError where another size is called the same."""
    values = _values.get()
    assert values is not None, "given sizes are parameters only within `parameters`"
    name = f"{PREFIX}{size.origin}"
    if values.setdefault(name, int(size)) != int(size):
        raise InvariantError(f"two sizes have one origin: {values[name]} and {int(size)}", pass_name="given sizes")
    return name


def parameter_values() -> Mapping[str, int]:
    """The parameters that were named so far, and what they are."""
    return _values.get() or {}


def given_config(config: Mapping[str, int], names: Sequence[str]) -> dict[str, int]:
    """A configuration whose values of these ``names`` are given sizes."""
    return {name: GivenSize(value, name) if name in names and value > 1 else value for name, value in config.items()}
