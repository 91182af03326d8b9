"""Sizes for symbolic dimensions of a model's inputs: what the caller gave, otherwise usual sizes for models of that kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.estimates.plausible import SEQUENCE, by_name, of_dim
from xyntra_ep.wording import wording

Array = NDArray[Any]
Shape = tuple[int, ...]
LARGEST = 2**31 - 1  # more elements no dim of a tensor has that could be run
WANTED = f"it wants an integer from 0 to {LARGEST}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of the symbolic dims of a model's inputs, by name. ``given`` are the caller's (or those of arrays and shapes that they
    gave), ``made_up`` the others; ``shapes`` are made up for inputs with dims that have no name, ``fixed`` are the caller's."""

    given: Mapping[str, int]
    made_up: Mapping[str, int]
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    fixed: Mapping[str, Shape] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        session: Any,
        given: Mapping[str, int],
        feeds: Mapping[str, Array],
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> Sizes:
        """Raises ConfigError for what is no dim or no input of the model, no size, or does not fit."""
        _check_sizes(given, session)
        given = {name: int(size) for name, size in given.items()}
        fixed = {name: tuple(shape) for name, shape in (shapes or {}).items()}
        _check_shapes(fixed, feeds, session)
        _check_agreement(fixed, given, feeds, session)
        told = {**fixed, **{name: array.shape for name, array in feeds.items()}}
        known = dict(given)
        for entry in session.get_inputs():
            if (shape := told.get(entry.name)) is not None:
                for dim, size in zip(entry.shape, shape, strict=True):
                    if isinstance(dim, str):
                        known.setdefault(dim, size)
        made_up: dict[str, int] = {}
        for entry in session.get_inputs():
            for axis, dim in enumerate(entry.shape):
                if isinstance(dim, str) and dim not in known:
                    made_up.setdefault(dim, of_dim(entry.shape, axis).usual)
        sums = {name: terms for name in made_up if len(terms := re.split(r"\s*\+\s*", name)) > 1}
        for name, terms in sums.items():  # as exporters write "past_sequence_length + 1"
            made_up[name] = sum(int(t) if t.isdigit() else {**made_up, **known}.get(t, _usual(t)) for t in terms)
        sizes = {**made_up, **known}
        unnamed = [e for e in session.get_inputs() if e.name not in told and has_unnamed(e)]
        return cls(given=known, made_up=made_up, shapes={e.name: _shape(e, sizes) for e in unnamed}, fixed=fixed)

    def shape_of(self, entry: Any) -> Shape:
        """Of an input."""
        return self.fixed.get(entry.name) or _shape(entry, {**self.made_up, **self.given})

    def fixing(self, session: Any) -> tuple[Mapping[str, int], Mapping[str, Shape]]:
        """What of the caller's a session fixes: dims, by their names, and the shapes of inputs for which that is not enough."""
        by_name = {
            entry.name: tuple(self.given.get(dim, -1) if isinstance(dim, str) else dim for dim in entry.shape)
            for entry in session.get_inputs()
        }
        return self.given, {name: shape for name, shape in self.fixed.items() if shape != by_name[name]}

    @property
    def guesses(self) -> str:
        """Those that nobody gave, with their names."""
        unnamed = [f"{name}: {list(shape)}" for name, shape in self.shapes.items()]
        return ", ".join([*(f"{name}={size}" for name, size in self.made_up.items()), *unnamed])

    def __str__(self) -> str:
        named = [f"{name}={size} (made up)" for name, size in self.made_up.items()]
        named += [f"{name}={size}" for name, size in self.given.items()]
        unnamed = [f"{name}: {list(shape)} (made up)" for name, shape in self.shapes.items()]
        return ", ".join([*named, *unnamed, *(f"{name}: {list(shape)}" for name, shape in self.fixed.items())])


def has_unnamed(entry: Any) -> bool:
    """Whether a dim of the input has neither size nor name, so that a shape alone can fix it."""
    return any(_is_unnamed(dim) for dim in entry.shape)


def declared(entry: Any) -> str:
    """The shape of an input as its model has it."""
    return f"[{', '.join('?' if _is_unnamed(dim) else str(dim) for dim in entry.shape)}]"


def fits(entry: Any, shape: Sequence[int]) -> bool:
    """Whether an input can have this shape."""
    return len(entry.shape) == len(shape) and all(
        not isinstance(dim, int) or dim in (-1, size) for dim, size in zip(entry.shape, shape, strict=True)
    )


def _check_sizes(given: Mapping[str, int], session: Any) -> None:
    inputs = session.get_inputs()
    known = sorted({dim for entry in inputs for dim in entry.shape if isinstance(dim, str)})
    unnamed = [entry for entry in inputs if has_unnamed(entry)]
    for name, size in given.items():
        if name not in known:
            hints = [f"there are {', '.join(known)}"] if known else [] if unnamed else ["all of them are fixed"]
            if unnamed:
                there = ", ".join(f"{entry.name}: {declared(entry)}" for entry in unnamed)
                example = wording().shape(unnamed[0].name, _shape(unnamed[0], dict.fromkeys(known, 1)))
                hints.append(f"they have dimensions without names ({there}): give a shape, as in {example}")
            what = f"the model's inputs have no dimension {name!r}"
            raise ConfigError(what, where=wording().sizes, hint="; ".join(hints))
        if not _is_size(size):
            raise ConfigError(f"{name}={size!r} is no size", where=wording().sizes, hint=WANTED)


def _is_size(value: object) -> bool:
    return isinstance(value, Integral) and 0 <= int(value) <= LARGEST


def _check_shapes(fixed: Mapping[str, Shape], feeds: Mapping[str, Array], session: Any) -> None:
    entries = {entry.name: entry for entry in session.get_inputs()}
    where = wording().shapes
    for name, shape in fixed.items():
        if name not in entries:
            raise ConfigError(f"the model has no input {name!r}", where=where, hint=f"it has {', '.join(entries)}")
        if wrong := [size for size in shape if not _is_size(size)]:
            raise ConfigError(f"{name} has {wrong[0]!r}, which is no size", where=where, hint=WANTED)
        if not fits(entries[name], shape):
            raise ConfigError(f"{name} cannot have the shape {list(shape)}", where=where, hint=f"it is {declared(entries[name])}")
        if name in feeds:
            raise ConfigError(f"{name} is given as a feed, which has its own shape", where=where, hint="leave one of them out")


def _check_agreement(fixed: Mapping[str, Shape], given: Mapping[str, int], feeds: Mapping[str, Array], session: Any) -> None:
    """Of sizes by name with those of shapes and of arrays, which are what runs."""
    for entry in session.get_inputs():
        shape = feeds[entry.name].shape if entry.name in feeds else fixed.get(entry.name, ())
        for dim, size in zip(entry.shape, shape, strict=False):
            if isinstance(dim, str) and given.get(dim, size) != size:
                who, where = (f"feed {entry.name!r}", wording().sizes) if entry.name in feeds else (entry.name, wording().shapes)
                what = f"{who} has {dim}={size}, and {dim}={given[dim]} is given"
                raise ConfigError(what, where=where, hint="give one of them")


def _usual(name: str) -> int:
    return (by_name(name) or SEQUENCE).usual


def _shape(entry: Any, sizes: Mapping[str, int]) -> Shape:
    """What an input's declared shape is with ``sizes``; dims without a name are made up."""
    return tuple(
        of_dim(entry.shape, axis).usual if _is_unnamed(dim) else sizes[dim] if isinstance(dim, str) else dim
        for axis, dim in enumerate(entry.shape)
    )


def _is_unnamed(dim: object) -> bool:
    return not isinstance(dim, str) and (not isinstance(dim, int) or dim < 0)
