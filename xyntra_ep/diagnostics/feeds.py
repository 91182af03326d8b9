"""What a model is run with to see what it does: arrays from files, and for the other inputs values that are made up.

given = read_feeds(session, {"ids": Path("ids.npy")})        # .npy, or a TensorProto in .pb
sizes = Sizes.of(session, {"seq": 64}, given)                # what nobody gave is what models of that kind have
feeds = {**made_up(session, sizes, seed=0, besides=given), **given}
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.plausible import SEQUENCE, by_name, of_dim
from xyntra_ep.wording import wording

Array = NDArray[Any]
_NUMPY = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
    "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint64)": np.uint64,
    "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
}  # fmt: skip
_TEXT = "OSU"  # kinds of arrays that ONNX Runtime takes strings from
_TRIPS = 3  # of a loop: with 0 its body would not run, with 1 nothing would be carried from one trip to the next
_AS_STRINGS = "store strings with .astype(str)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Of the symbolic dims of a model's inputs, by name. ``given`` are the caller's (or those of arrays that they gave),
    ``made_up`` the others; ``shapes`` those of inputs with dims that have no name. ``of`` raises ConfigError for what is no dim
    of the model or no size."""

    given: Mapping[str, int]
    made_up: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, session: Any, given: Mapping[str, int], feeds: Mapping[str, Array]) -> Sizes:
        _check_sizes(given, dims_of(session))
        known = dict(given)
        for entry in session.get_inputs():
            if (array := feeds.get(entry.name)) is not None:
                for dim, size in zip(entry.shape, array.shape, strict=True):
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
        unnamed = [e for e in session.get_inputs() if e.name not in feeds and any(_is_unnamed(d) for d in e.shape)]
        return cls(given=known, made_up=made_up, shapes={e.name: _shape(e, sizes) for e in unnamed})

    @property
    def all(self) -> dict[str, int]:
        return {**self.made_up, **self.given}

    def __str__(self) -> str:
        named = [f"{name}={size}{' (made up)' if name in self.made_up else ''}" for name, size in self.all.items()]
        return ", ".join([*named, *(f"{name}: {list(shape)} (made up)" for name, shape in self.shapes.items())])


def dims_of(session: Any) -> list[str]:
    """The names of the symbolic dims of the inputs, in their order."""
    return list(dict.fromkeys(d for entry in session.get_inputs() for d in entry.shape if isinstance(d, str)))


def _check_sizes(given: Mapping[str, int], known: Sequence[str]) -> None:
    for name, size in given.items():
        if name not in known:
            hint = f"there are {', '.join(sorted(known))}" if known else "all of them are fixed"
            raise ConfigError(f"the model's inputs have no dimension {name!r}", where=wording().sizes, hint=hint)
        if size < 0:
            raise ConfigError(f"{name}={size} is no size", where=wording().sizes, hint="it wants an integer of at least 0")


def _usual(name: str) -> int:
    return (by_name(name) or SEQUENCE).usual


def made_up(session: Any, sizes: Sizes, *, seed: int, besides: Mapping[str, Array]) -> dict[str, Array]:
    """For inputs that are not in ``besides``: normal floats, small integers (they are often indices), single ones that
    a loop can have as its trip count, ones for masks, true bools. Raises ConfigError for a negative seed, and for inputs that
    nothing can be made up for."""
    if seed < 0:
        raise ConfigError(f"seed={seed} is none", where="compare", hint="it wants an integer of at least 0")
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for entry in session.get_inputs():
        if entry.name in besides:
            continue
        if entry.type not in _NUMPY:
            hint = f"give it: {wording().feed(entry.name)}"
            raise ConfigError(f"cannot make up a {entry.type}", where=f"input {entry.name!r}", hint=hint)
        dtype, shape = np.dtype(_NUMPY[entry.type]), _shape(entry, sizes.all)
        if dtype.kind == "f":
            feeds[entry.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype.kind == "b" or "mask" in entry.name.lower():
            feeds[entry.name] = np.ones(shape, dtype)
        elif is_scalar(entry):
            feeds[entry.name] = np.full(shape, _TRIPS, dtype)
        else:
            feeds[entry.name] = rng.integers(0, 2, shape).astype(dtype)
    return feeds


def is_scalar(entry: Any) -> bool:
    """Whether the model declares an input as one value: a count, an axis, a temperature."""
    return list(entry.shape) in ([], [1])


def _shape(entry: Any, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """What an input's declared shape is with ``sizes``; dims without a name are made up."""
    return tuple(
        of_dim(entry.shape, axis).usual if _is_unnamed(dim) else sizes[dim] if isinstance(dim, str) else dim
        for axis, dim in enumerate(entry.shape)
    )


def _is_unnamed(dim: object) -> bool:
    return not isinstance(dim, str) and (not isinstance(dim, int) or dim < 0)


# -- from files


def read_feeds(session: Any, feeds: Mapping[str, Array | Path] | Path) -> dict[str, Array]:
    """Arrays for inputs: as they are, each from a .npy or .pb of its own, or all from a .npz or the folder of a test data set
    (input_0.pb is the first input). Raises ConfigError where a file, a name, a type or a shape does not fit."""
    entries = {e.name: e for e in (*session.get_inputs(), *session.get_overridable_initializers())}
    if isinstance(feeds, Path):
        found = dict(_together(feeds, [e.name for e in session.get_inputs()]))
    else:
        found = {name: _array(given) if isinstance(given, Path) else given for name, given in feeds.items()}
    for name, array in found.items():
        if name not in entries:
            raise ConfigError(f"the model has no input {name!r}", where="feeds", hint=f"it has {', '.join(entries)}")
        _check_feed(entries[name], array)
    return found


def _check_feed(entry: Any, array: Array) -> None:
    """ConfigError where ``array`` is not what the input wants."""
    wanted = _NUMPY.get(entry.type)
    if wanted is not None and array.dtype != np.dtype(wanted):
        raise ConfigError(f"is {array.dtype}, the model wants {np.dtype(wanted)}", where=f"feed {entry.name!r}")
    if entry.type == "tensor(string)" and array.dtype.kind not in _TEXT:
        raise ConfigError(f"is {array.dtype}, the model wants strings", where=f"feed {entry.name!r}", hint=_AS_STRINGS)
    shape = list(entry.shape)
    fits = len(shape) == array.ndim and all(
        not isinstance(d, int) or d in (-1, n) for d, n in zip(shape, array.shape, strict=True)
    )
    if not fits:
        declared = ", ".join("?" if d is None else str(d) for d in shape)
        raise ConfigError(f"is of shape {list(array.shape)}, the model wants [{declared}]", where=f"feed {entry.name!r}")


def _together(path: Path, inputs: Sequence[str]) -> Iterator[tuple[str, Array]]:
    if path.is_dir():
        files = {name: path / f"input_{i}.pb" for i, name in enumerate(inputs)}
        present = {name: file for name, file in files.items() if file.is_file()}
        if not present:
            raise ConfigError("has no input_0.pb", where=str(path), hint="give a .npz, or the folder of a test data set")
        yield from ((name, _array(file)) for name, file in present.items())
    elif path.suffix == ".npz":
        stored = _loaded(path)
        if not isinstance(stored, np.lib.npyio.NpzFile):
            raise ConfigError("is not a .npz", where=str(path))
        with stored:
            for name in stored.files:
                try:
                    yield name, stored[name]
                except ValueError as error:  # objects
                    raise _no_array(f"{name!r} is", error, path) from error
    else:
        raise ConfigError("is neither a .npz nor a folder", where=str(path), hint=f"give single arrays by {wording().some_feed}")


def _array(path: Path) -> Array:
    if path.suffix == ".npy":
        stored = _loaded(path)
        if not isinstance(stored, np.ndarray):
            raise ConfigError("is not a .npy", where=str(path))
        return stored
    if path.suffix == ".pb":
        return _tensor(path)
    raise ConfigError(
        f"{path.suffix or 'no suffix'} is no kind of array that can be read", where=str(path), hint="give .npy or .pb"
    )


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)  # pickled objects are code
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise _no_array("is", error, path) from error


def _no_array(what: str, error: Exception, path: Path) -> ConfigError:
    if "Object arrays" in str(error):
        return ConfigError(f"{what} an array of Python objects, which are not read", where=str(path), hint=_AS_STRINGS)
    return ConfigError(f"{what} no array of numbers or strings ({' '.join(str(error).split())})", where=str(path))


def _tensor(path: Path) -> Array:
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise ConfigError("reading a .pb needs the onnx package", where=str(path), hint="pip install onnx") from error
    try:
        return numpy_helper.to_array(onnx.load_tensor(str(path)))
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except Exception as error:  # protobuf's classes have no common base, and what a tensor lacks is of any class
        raise ConfigError("is no ONNX tensor", where=str(path)) from error
