"""Compares outputs with the baseline's. Gives no verdict if the baseline's outputs could not show a mistake.

Those of a quantised model cannot be held against the baseline's alone. A tie that is rounded the other way changes an activation
by a whole step, which the layers behind it carry on, and the baseline's own products saturate on some processors. What can be
demanded is that a contender is about as near to the float model as the baseline is (`compare_quantised`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.contenders import DEFAULT_MAX_ERR
from xyntra_bench.results import Accuracy, Check, FloatError

ALIVE_MAX_ABS = 1e-3
# How much farther than the baseline a contender may be from the float model. Runtimes that compute the same file were seen at
# 0.88 to 1.05.
MAX_FLOAT_RATIO = 1.25
LOGITS = "logits"

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


def compare_quantised(
    names: Sequence[str], ours: Sequence[Array], reference: Sequence[Array], exact: Sequence[Array], max_err: float
) -> Check:
    """Of a quantised model, whose float model gives `exact`. No output is more than `MAX_FLOAT_RATIO` times as far from the float
    model's as the reference's is. And it differs from the reference's by at most `max_err`, unless all are as near to the float
    model's as the reference's are."""
    check = compare(names, ours, reference, max_err)
    if check.error is None or check.output in check.dead_outputs:
        return check
    judged = [(a, b, e) for name, a, b, e in zip(names, ours, reference, exact, strict=True) if is_judged(b, e)]
    if not judged:
        return check
    ratio = max(rms_error(a, e) / max(rms_error(b, e), DEFAULT_MAX_ERR) for a, b, e in judged)
    good = ratio <= MAX_FLOAT_RATIO and (check.error <= max_err or ratio <= 1)
    return replace(check, state=Accuracy.OK if good else Accuracy.INACCURATE, float_ratio=ratio)


def float_error(model: str, names: Sequence[str], outputs: Sequence[Array], exact: Sequence[Array]) -> FloatError | None:
    """Of the worst output; None where none is comparable."""
    judged = {name: (np.asarray(a), e) for name, a, e in zip(names, outputs, exact, strict=True) if is_judged(np.asarray(a), e)}
    if not judged:
        return None
    errors = {name: relative_error(a, e) for name, (a, e) in judged.items()}
    output = max(errors, key=lambda name: errors[name])
    positions = same = None
    if LOGITS in judged and judged[LOGITS][0].ndim > 2:
        largest = [values.argmax(axis=-1) for values in judged[LOGITS]]
        positions, same = largest[0].size, int((largest[0] == largest[1]).sum())
    rms = rms_error(*judged[output])
    return FloatError(model=model, error=errors[output], rms=rms, output=output, positions=positions, same_largest=same)


def is_judged(a: Array, exact: Array) -> bool:
    """Finite floats in the shape of the float model's, which are alive."""
    return a.dtype.kind == exact.dtype.kind == "f" and a.shape == exact.shape and bool(np.isfinite(a).all()) and is_alive(exact)


def rms_error(a: Array, b: Array) -> float:
    """The root of the mean square of a-b over that of b."""
    a64, b64 = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(np.linalg.norm(a64 - b64) / np.linalg.norm(b64))


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
