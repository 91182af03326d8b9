"""How far a result may be from ONNX Runtime's CPU provider, and why that far.

The measure is max |a - b| / max |b| over the finite elements; NaN and infinities must be where the other side has them, integers
and bools must be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """``name`` is a numpy dtype."""

    name: str
    max_err: float
    reason: str


TOLERANCES = [
    Tolerance(name="float32", max_err=5e-6, reason="sums of some hundred terms in another order, exp and erf of a few ulp"),
    Tolerance(name="float16", max_err=2e-3, reason="two ulp: ORT rounds also between the steps of what is one operator here"),
    Tolerance(name="float64", max_err=5e-6, reason="ORT's own operators, around ours in float32"),
]
_BY_NAME: Mapping[str, Tolerance] = {t.name: t for t in TOLERANCES}


def difference(got: NDArray[Any], want: NDArray[Any]) -> str:
    """Empty when ``got`` is as good as ``want``, else what is wrong with it."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    if want.dtype.kind != "f":
        wrong = int(np.count_nonzero(got != want))
        return f"{wrong} of {want.size} elements differ" if wrong else ""
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(a[finite]).all():
        return "NaN or infinities in other places"
    if not finite.any():
        return ""
    error = float(np.abs(a[finite] - b[finite]).max())
    scale = float(np.abs(b[finite]).max())
    allowed = _BY_NAME[want.dtype.name].max_err
    return "" if error <= allowed * scale else f"error {error:.3g} of {scale:.3g}, allowed {allowed:g}"
