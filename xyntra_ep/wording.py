"""How a message names an argument: as one in Python or one on the command line, depending on who asked.

>>> wording().size("seq", 16)
"sizes={'seq': 16}"
>>> with asked_in_a_shell():
...     wording().shape("x", (64, 20))
'--shape x=64x20'
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Names of arguments, and what one of them is written as."""

    sizes: str
    shapes: str
    fix: str
    some_size: str
    size_of: str
    one_size: str
    one_shape: str
    one_feed: str
    some_feed: str
    own_feeds: str
    claim_all: str

    def size(self, name: str, size: int) -> str:
        return self.one_size.format(name=name, size=size)

    def some_size_of(self, name: str) -> str:
        return self.size_of.format(name=name)

    def shape(self, name: str, shape: Sequence[int]) -> str:
        return self.one_shape.format(name=name, shape=tuple(shape), x="x".join(map(str, shape)))

    def feed(self, name: str) -> str:
        return self.one_feed.format(name=name)


_PYTHON = Wording(
    sizes="sizes",
    shapes="shapes",
    fix="fix",
    some_size="sizes={name: size}",
    size_of="sizes={{{name!r}: size}}",
    one_size="sizes={{{name!r}: {size}}}",
    one_shape="shapes={{{name!r}: {shape}}}",
    one_feed="feeds={{{name!r}: ...}}",
    some_feed="feeds={name: file or array}",
    own_feeds="feeds of your own, or another seed",
    claim_all='options={"claim": "all"}',
)
_SHELL = Wording(
    sizes="--dim",
    shapes="--shape",
    fix="--fix",
    some_size="--dim NAME=SIZE",
    size_of="--dim {name}=SIZE",
    one_size="--dim {name}={size}",
    one_shape="--shape {name}={x}",
    one_feed="--feed {name}=FILE",
    some_feed="--feed NAME=FILE",
    own_feeds="inputs of your own by --feed or --feeds, or another --seed",
    claim_all="--claim all",
)
_current = ContextVar("wording", default=_PYTHON)


def counted(count: int, noun: str) -> str:
    """
    >>> counted(1, "node"), counted(0, "node")
    ('1 node', '0 nodes')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def wording() -> Wording:
    return _current.get()


@contextmanager
def asked_in_a_shell() -> Iterator[None]:
    token = _current.set(_SHELL)
    try:
        yield
    finally:
        _current.reset(token)
