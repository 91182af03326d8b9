"""Compares outputs with the baseline's. Gives no verdict if the baseline's outputs could not show a mistake."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.results import Accuracy, Check

ALIVE_MAX_ABS = 1e-3

Array = npt.NDArray[Any]


def compare(names: Sequence[str], ours: Sequence[Array], reference: Sequence[Array], max_err: float) -> Check:
    """The worst alive float output decides. Dead ones must still agree, within `max_err` of 1."""
    if len(ours) != len(reference):
        return _mismatch(max_err, f"{len(ours)} outputs instead of {len(reference)}")
    worst, at = -1.0, ""
    dead = []
    for name, a, b in zip(names, ours, reference, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape or a.dtype != b.dtype:
            return _mismatch(max_err, f"{name}: {a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}")
        if b.dtype.kind != "f":
            if not np.array_equal(a, b):
                return _mismatch(max_err, f"{name}: other {b.dtype} values")
            if b.size and (b != b.flat[0]).any():
                worst, at = max((worst, at), (0.0, name))
            continue
        alive = is_alive(b)
        error = relative_error(a, b, scale=None if alive else 1.0)
        if not alive:
            dead.append(name)
            if error <= max_err:
                continue
        if error > worst:
            worst, at = error, name
    if worst > max_err:
        finite = worst if np.isfinite(worst) else None
        return Check(state=Accuracy.INACCURATE, max_err=max_err, error=finite, output=at, dead_outputs=tuple(dead))
    if worst < 0:
        return Check(state=Accuracy.DEAD_REFERENCE, max_err=max_err, error=None, dead_outputs=tuple(dead))
    return Check(state=Accuracy.OK, max_err=max_err, error=worst, output=at, dead_outputs=tuple(dead))


def is_alive(reference: Array) -> bool:
    """Finite, somewhere at least 1e-3 in size, and not one value everywhere."""
    if reference.size == 0 or not np.isfinite(reference).all() or np.abs(reference).max() < ALIVE_MAX_ABS:
        return False
    return reference.size == 1 or bool(reference.min() < reference.max())


def relative_error(a: Array, b: Array, *, scale: float | None = None) -> float:
    """max|a-b| / max|b|; infinite when `a` is not finite where `b` is, or the other way round."""
    if a.size == 0:
        return 0.0
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b64)
    if not np.array_equal(a64[~finite], b64[~finite], equal_nan=True) or not np.isfinite(a64[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    difference = float(np.abs(a64[finite] - b64[finite]).max())
    return difference / (float(np.abs(b64[finite]).max()) if scale is None else scale)


def _mismatch(max_err: float, what: str) -> Check:
    return Check(state=Accuracy.MISMATCH, max_err=max_err, error=None, output=what)
