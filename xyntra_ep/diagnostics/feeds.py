"""Inputs for a model that is run to be examined: arrays from files, and generated values for the other inputs.

given = read_feeds(session, {"ids": Path("ids.npy")})        # .npy, or a TensorProto in .pb
sizes = Sizes.of(session, {"seq": 64}, given)                # sizes that are not given get usual ones
feeds = Feeds(session=session, given=given, sizes=sizes, seed=0).feeds
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from xyntra_ep.diagnostics.sessions import said_by
from xyntra_ep.diagnostics.sizes import Array, Shape, Sizes, declared, fits
from xyntra_ep.errors import ConfigError
from xyntra_ep.wording import wording

_NUMPY = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
    "tensor(int32)": np.int32, "tensor(int16)": np.int16, "tensor(int8)": np.int8, "tensor(uint64)": np.uint64,
    "tensor(uint32)": np.uint32, "tensor(uint16)": np.uint16, "tensor(uint8)": np.uint8, "tensor(bool)": np.bool_,
}  # fmt: skip
_TEXT = "OSU"  # kinds of arrays that ONNX Runtime takes strings from
_TRIED = (64, 32, 16, 256, 512, 224, 8, 1)  # for a dimension with whose made-up size a model does not run
_TRIPS = 3  # of a loop: with 0 its body would not run, with 1 nothing would be carried from one trip to the next
_AS_STRINGS = "store strings with .astype(str)"


@dataclass(frozen=True, kw_only=True)
class Feeds:
    """What the caller gave for ``session``, and the rest, made up."""

    session: Any
    given: Mapping[str, Array]
    sizes: Sizes
    seed: int

    @cached_property
    def feeds(self) -> dict[str, Array]:
        return {**made_up(self.session, self.sizes, seed=self.seed, besides=self.given), **self.given}

    @property
    def scalars(self) -> dict[str, object]:
        """Those that were made up: on one of them may hang how often a loop runs, and so what is compared at all."""
        feeds = self.feeds
        entries = [e for e in self.session.get_inputs() if is_scalar(e) and e.name not in self.given]
        return {e.name: feeds[e.name].reshape(-1)[0].item() for e in entries}


def outputs_of(session: Any, made: Feeds, where: str, hint: str = "") -> dict[str, Any]:
    """By name. Raises ConfigError where it does not run with these feeds, with the size that would help; ``hint``: where none
    does."""
    names, feeds = [o.name for o in session.get_outputs()], made.feeds
    try:
        return dict(zip(names, session.run(names, feeds), strict=True))
    except Exception as error:  # ONNX Runtime's own classes have no common base of their own
        raise ConfigError(said_by(error), where=where, hint=_size_that_runs(made) or hint or _what_to_give(made)) from error


def told(scalars: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}" for name, value in scalars.items())


def _size_that_runs(made: Feeds) -> str:
    """Which dimension is to be given, by trying: one size after another for each that was made up. What was given is no guess."""
    for name, size in made.sizes.made_up.items():
        for other in (s for s in _TRIED if s != size):
            tried = Sizes.of(made.session, {**made.sizes.given, name: other}, made.given, made.sizes.fixed)
            try:
                made.session.run(None, replace(made, sizes=tried).feeds)
            except Exception:  # the next one, then
                continue
            return f"{name}={size} is made up, with {other} it runs: give {wording().size(name, other)}"
    return ""


def _what_to_give(made: Feeds) -> str:
    """Where no size helps."""
    guesses = made.sizes.guesses
    reasons = [f"sizes are made up ({guesses})"] if guesses else []
    reasons += [f"values are made up ({told(made.scalars)})"] if made.scalars else []
    if not reasons:
        sizes = f" ({made.sizes})" if str(made.sizes) else ""
        return f"{'these sizes' if sizes else 'the inputs'} do not fit the model{sizes}"
    ways = [wording().some_size_of(name) for name in made.sizes.made_up]
    ways += [wording().shape(name, shape) for name, shape in made.sizes.shapes.items()]
    return f"{' and '.join(reasons)}: give {' or '.join([*ways, wording().some_feed])}"


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
        shape = sizes.shape_of(entry)
        try:
            feeds[entry.name] = _values(entry, shape, rng)
        except (MemoryError, ValueError) as error:  # numpy's for more than memory has, and for more than it can count
            raise ConfigError(f"{list(shape)} is too large", where=f"input {entry.name!r}", hint="give less") from error
    return feeds


def _values(entry: Any, shape: Shape, rng: np.random.Generator) -> Array:
    dtype = np.dtype(_NUMPY[entry.type])
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    if dtype.kind == "b" or "mask" in entry.name.lower():
        return np.ones(shape, dtype)
    if is_scalar(entry):
        return np.full(shape, _TRIPS, dtype)
    return rng.integers(0, 2, shape).astype(dtype)


def is_scalar(entry: Any) -> bool:
    """Whether the model declares an input as one value: a count, an axis, a temperature."""
    return list(entry.shape) in ([], [1])


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
    if not fits(entry, array.shape):
        what = f"is of shape {list(array.shape)}, the model wants {declared(entry)}"
        raise ConfigError(what, where=f"feed {entry.name!r}")


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
    hint = "write it with numpy.save or numpy.savez"  # what numpy itself says of junk advises to unpickle it
    return ConfigError(f"{what} no array of numbers or strings, or not the whole of one", where=str(path), hint=hint)


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
