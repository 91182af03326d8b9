"""Whose the error of a quantised model is: what quantising costs, what ONNX Runtime adds, and what XyntraEP adds.

Both are measured against the model as its operators are defined (`unrounded.defined`). A sum in another order falls on the other
side of the middle between two levels now and then, and later layers may make much of that: so neither is zero. Such elements are
few, and each is off by a whole level where rounding costs half of one: so it is root mean squares that are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from xyntra_ep.diagnostics.distance.drift import numbers
from xyntra_ep.diagnostics.sessions import open_session, said_by
from xyntra_ep.diagnostics.sizes import Array
from xyntra_ep.errors import XyntraError

if TYPE_CHECKING:
    from onnx import ModelProto

_AS_GOOD = 2.0  # times ONNX Runtime's distance
_DEVIATES = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Distances of one tensor, each rms(a - b) / rms(b) (levels as numbers): ``xyntra`` and ``ort`` from the model as it is
    defined, ``quantisation`` of that from the same without rounding, None where that is not known."""

    xyntra: float
    ort: float
    quantisation: float | None

    def bound(self, max_drift: float) -> float:
        """How far XyntraEP may be: twice as far as ONNX Runtime, or as far as rounding is."""
        return max(max_drift, _AS_GOOD * self.ort, self.quantisation or 0.0)

    def ort_deviates(self, max_drift: float) -> bool:
        """Whether ONNX Runtime is far from the definition, and XyntraEP is not: its kernels saturate on some processors."""
        return self.ort > max(max_drift, _DEVIATES * self.xyntra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separated:
    """``tensors``: by name, of those that have numbers. ``unknown``: why there is nothing, or no share of quantisation's own."""

    tensors: Mapping[str, Shares]
    unknown: str = ""


def separated(model: ModelProto, feeds: Mapping[str, Array], got: Mapping[str, Any], theirs: Mapping[str, Any]) -> Separated:
    """``got``, ``theirs``: what XyntraEP and ONNX Runtime computed, by the names of outputs of ``model``, which quantises."""
    from xyntra_ep.diagnostics.distance.unrounded import defined, unrounded

    try:
        meant = _outputs(defined(model), feeds)
    except XyntraError as error:
        return Separated(tensors={}, unknown=str(error))
    unknown = ""
    try:
        floats = _outputs(unrounded(model), feeds)
    except XyntraError as error:
        floats, unknown = {}, str(error)
    found = {
        name: Shares(
            xyntra=_distance(got[name], meant[name]),
            ort=_distance(theirs[name], meant[name]),
            quantisation=_distance(meant[name], floats[name]) if name in floats else None,
        )
        for name in meant
        if name in got and numbers(meant[name]) is not None
    }
    return Separated(tensors=found, unknown=unknown)


def _outputs(model: ModelProto, feeds: Mapping[str, Array]) -> dict[str, Any]:
    """Of ONNX Runtime's CPU provider, node by node."""
    session = open_session(model.SerializeToString(), optimised=False)
    names = [o.name for o in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, dict(feeds)), strict=True)) if names else {}
    except Exception as error:  # ONNX Runtime's own classes have no common base of their own
        raise XyntraError(said_by(error), where="a quantised model written in floats") from error


def _distance(got: Any, wanted: Any) -> float:
    """inf where shapes, NaN or infinities differ."""
    a, b = numbers(got), numbers(wanted)
    if a is None or b is None or a.shape != b.shape:
        return math.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(y)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(x[finite]).all():
        return math.inf
    apart, size = (float(np.sqrt(np.mean(v**2))) if v.size else 0.0 for v in (x[finite] - y[finite], y[finite]))
    return apart / size if size else math.inf if apart else 0.0
