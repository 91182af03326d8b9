"""Inputs that the user gave for a model of their own.

They are read once, by the reader of `xyntra compare`, and kept in a file for the child processes that measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xyntra_bench.declared import ORT_FORM, Declared, declared_inputs
from xyntra_bench.errors import BenchError
from xyntra_bench.feeds import Feeds, save_feeds
from xyntra_bench.plan import Case

FILE = "own-feeds.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inputs:
    """Asked as a session is."""

    inputs: Sequence[Declared]

    def get_inputs(self) -> Sequence[Declared]:
        return self.inputs

    def get_overridable_initializers(self) -> Sequence[Declared]:
        return ()


def own_feeds(model: Path, together: Path | None, single: Sequence[str]) -> Feeds:
    """What `--feeds FILE` or `--feed NAME=FILE` give."""
    from xyntra_ep.arguments import pairs
    from xyntra_ep.diagnostics.feeds import read_feeds
    from xyntra_ep.errors import XyntraError
    from xyntra_ep.wording import asked_in_a_shell

    if together is not None and single:
        raise BenchError("--feed and --feeds together. give one of them")
    try:
        with asked_in_a_shell():
            found = read_feeds(
                _asked(model), together or {name: Path(file) for name, file in pairs(single, "--feed", "NAME=FILE").items()}
            )
    except XyntraError as error:
        raise BenchError(str(error)) from None
    return {name: array.astype(str) if array.dtype.kind == "O" else array for name, array in found.items()}


def with_feeds(cases: Sequence[Case], feeds: Feeds, folder: Path) -> tuple[Case, ...]:
    """The cases with these inputs, whose shapes are theirs; the other inputs are made up."""
    if not feeds:
        return tuple(cases)
    for case in cases:
        if twice := [name for name in feeds if name in case.shapes]:
            raise BenchError(f"--shape {twice[0]}: it is given as a feed, which has its own shape. leave one of them out")
    save_feeds(feeds, folder / FILE)
    shapes = {name: array.shape for name, array in feeds.items()}
    return tuple(replace(case, feeds=str(folder / FILE), shapes={**shapes, **case.shapes}) for case in cases)


def gives_all(model: Path, feeds: Feeds) -> bool:
    """Whether no input is left to make up."""
    return all(value.name in feeds for value in _asked(model).get_inputs())


def _asked(model: Path) -> Any:
    if model.suffix == ORT_FORM:
        from xyntra_bench.ort_sessions import plain_session

        return plain_session(model)
    return _Inputs(inputs=declared_inputs(model))
