"""Inputs for a case: the zoo's own, or made up from the declared types and shapes of somebody's model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.errors import BenchError
from bench.plan import Case
from zoo import model_path, zoo

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


def case_path(case: Case) -> Path:
    return Path(case.file) if case.file else model_path(zoo[case.model])


def case_feeds(case: Case, inputs: Sequence[Any]) -> Feeds:
    """Feeds for the session whose `get_inputs()` is given."""
    if case.file:
        return synthetic_feeds(inputs, case.shapes, case.seed, case.batch)
    return zoo[case.model].feeds(case.batch, case.seq or 1, case.seed)


def save_feeds(feeds: Feeds, path: Path) -> None:
    """Names apart from arrays: an input may be called anything."""
    np.savez(path, np.array(list(feeds)), *feeds.values())


def load_feeds(path: Path) -> Feeds:
    with np.load(path) as stored:
        names = stored["arr_0"].tolist()
        return {name: stored[f"arr_{i}"] for i, name in enumerate(names, start=1)}


def synthetic_feeds(inputs: Sequence[Any], shapes: Mapping[str, tuple[int, ...]], seed: int, batch: int = 1) -> Feeds:
    """Normal floats, ones for masks, and zeros and ones for other integers: legal for any vocabulary.

    A dynamic first dim is 1; every other dynamic dim must be given. `batch` multiplies the dynamic first dims.
    """
    names = [value.name for value in inputs]
    if unknown := [name for name in shapes if name not in names]:
        raise BenchError(f"--shape {unknown[0]}: the model has no such input. it has {', '.join(names)}")
    if batch > 1 and not any(_has_free_batch(value) for value in inputs):
        raise BenchError(f"a batch of {batch}: no input of the model has a dynamic first dim. export it with one")
    rng = np.random.default_rng(seed)
    feeds = {}
    for value in inputs:
        dims = _dims(value, shapes.get(value.name))
        if _has_free_batch(value):
            dims = (batch * dims[0], *dims[1:])
        feeds[value.name] = _tensor(value, dims, rng)
    return feeds


def _has_free_batch(value: Any) -> bool:
    return bool(value.shape) and not isinstance(value.shape[0], int)


def _dims(value: Any, given: tuple[int, ...] | None) -> tuple[int, ...]:
    declared = list(value.shape)
    if given is None:
        if declared and not isinstance(declared[0], int):
            declared[0] = 1
        if free := [dim for dim in declared if not isinstance(dim, int)]:
            raise BenchError(f"input {value.name}: dim {free[0]} is dynamic. give --shape {value.name}=1x128")
        return tuple(declared)
    fits = len(given) == len(declared) and all(
        not isinstance(want, int) or want == got for want, got in zip(declared, given, strict=True)
    )
    if not fits:
        raise BenchError(f"--shape {value.name}: {list(given)} does not fit the declared {declared}")
    return given


def _tensor(value: Any, dims: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[Any]:
    if value.type not in DTYPES:
        raise BenchError(f"input {value.name}: cannot make up {value.type}. only tensors of numbers and bools")
    dtype = np.dtype(DTYPES[value.type])
    if dtype.kind == "f":
        return rng.standard_normal(dims).astype(dtype)
    if "mask" in value.name.lower():
        return np.ones(dims, dtype)
    return rng.integers(0, 2, dims).astype(dtype)
