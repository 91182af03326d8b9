"""Inputs for a case: the zoo's own, or generated from the declared types and shapes of a user's model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.architectures._modules import module_row
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Case
from xyntra_zoo import model_path, zoo

Feeds = dict[str, npt.NDArray[Any]]

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
TRIPS = 3  # of a loop: with 0, which a random index may be, its body would not be measured
EXAMPLE = 128  # the size of a dynamic dim in an advice


def case_path(case: Case) -> Path:
    return Path(case.file) if case.file else model_path(zoo[case.model])


def float_path(case: Case) -> Path | None:
    """Of the model that the case's was quantised from; None of one that was not."""
    return model_path(zoo[case.float_model]) if case.float_model else None


def case_feeds(case: Case, inputs: Sequence[Any]) -> Feeds:
    """Feeds for the session whose `get_inputs()` is given."""
    if case.module:
        return synthetic_feeds(inputs, module_row(case.module).shapes_of(case.batch), case.seed)
    if case.file:
        given = load_feeds(Path(case.feeds)) if case.feeds else {}
        return synthetic_feeds(inputs, case.shapes, case.seed, case.batch, given)
    return zoo[case.model].feeds(case.batch, case.seq or 1, case.seed)


def save_feeds(feeds: Feeds, path: Path) -> None:
    """Names apart from arrays: an input may be called anything."""
    np.savez(path, np.array(list(feeds)), *feeds.values())


def load_feeds(path: Path) -> Feeds:
    with np.load(path) as stored:
        names = stored["arr_0"].tolist()
        return {name: stored[f"arr_{i}"] for i, name in enumerate(names, start=1)}


def synthetic_feeds(
    inputs: Sequence[Any],
    shapes: Mapping[str, tuple[int, ...]],
    seed: int,
    batch: int = 1,
    given: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Feeds:
    """Normal floats, ones for masks, true bools, and zeros and ones for integers, which are legal for any vocabulary; single ones
    are 3. Shapes are those of `dims_of`."""
    given = given or {}
    dims = dims_of(inputs, shapes, batch, given)
    rng = np.random.default_rng(seed)
    repeated = {v.name: np.concatenate([given[v.name]] * batch) for v in inputs if v.name in given and _has_free_batch(v)}
    known = {**given, **repeated}
    return {v.name: known[v.name] if v.name in known else _tensor(v, dims[v.name], rng) for v in inputs}


def dims_of(
    inputs: Sequence[Any], shapes: Mapping[str, tuple[int, ...]], batch: int = 1, given: Collection[str] = ()
) -> dict[str, tuple[int, ...]]:
    """The shape of every input. What `shapes` says of a dim that has a name counts for the other inputs too; a dynamic first
    dim that nothing is said of is 1, every other must be given. `batch` multiplies the dynamic first dims.
    Inputs that are `given` need not be of a type that can be made up; `shapes` has theirs."""
    names = [value.name for value in inputs]
    if unknown := [name for name in shapes if name not in names]:
        raise BenchError(f"--shape {unknown[0]}: the model has no such input. it has {', '.join(names)}")
    if batch > 1 and not any(_has_free_batch(value) for value in inputs):
        raise BenchError(f"a batch of {batch}: no input of the model has a dynamic first dim. export it with one")
    sizes: dict[str, int] = {}
    for value in inputs:
        if value.type not in DTYPES and value.name not in given:
            raise BenchError(f"input {value.name}: cannot make up {value.type}. `bench run model` takes --feed {value.name}=FILE")
        if value.name in shapes:
            _note_sizes(value, shapes[value.name], sizes)
    lacking: dict[str, Any] = {}  # by input, the first dim that nothing is known of
    found: dict[str, tuple[int, ...]] = {}
    for value in inputs:
        known = shapes[value.name] if value.name in shapes else _known(value, sizes)
        dims = tuple(EXAMPLE if size is None else size for size in known)
        if None in known:
            lacking[value.name] = value.shape[known.index(None)]
            _note_sizes(value, dims, sizes)  # what the advice would tell of the inputs that follow
        found[value.name] = dims
    if lacking:
        name, dim = next(iter(lacking.items()))
        advice = " ".join(f"--shape {name}={'x'.join(map(str, found[name]))}" for name in lacking)
        raise BenchError(f"input {name}: dim {dim} is dynamic. give {advice}")
    return {v.name: (batch * found[v.name][0], *found[v.name][1:]) if _has_free_batch(v) else found[v.name] for v in inputs}


def _has_free_batch(value: Any) -> bool:
    return bool(value.shape) and not isinstance(value.shape[0], int)


def _known(value: Any, sizes: Mapping[str, int]) -> tuple[int | None, ...]:
    """None where nothing tells."""
    found = [dim if isinstance(dim, int) else sizes.get(dim) for dim in value.shape]
    if found and found[0] is None:
        found[0] = 1
    return tuple(found)


def _note_sizes(value: Any, given: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Of the dims that have names, from a shape that has to fit."""
    declared = list(value.shape)
    fits = len(given) == len(declared) and all(
        not isinstance(want, int) or want == got for want, got in zip(declared, given, strict=True)
    )
    if not fits:
        raise BenchError(f"--shape {value.name}: {list(given)} does not fit the declared {declared}")
    for dim, size in zip(declared, given, strict=True):
        if isinstance(dim, str) and dim:
            sizes.setdefault(dim, size)


def is_count(value: Any) -> bool:
    """Whether the model declares an input as one integer."""
    dtype = np.dtype(DTYPES.get(value.type, np.float32))
    return dtype.kind in "iu" and list(value.shape) in ([], [1]) and "mask" not in value.name.lower()


def _tensor(value: Any, dims: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    dtype = np.dtype(DTYPES[value.type])
    if dtype.kind == "f":
        return rng.standard_normal(dims).astype(dtype)
    if dtype.kind == "b" or "mask" in value.name.lower():
        return np.ones(dims, dtype)
    if is_count(value):
        return np.full(dims, TRIPS, dtype)
    return rng.integers(0, 2, dims).astype(dtype)
