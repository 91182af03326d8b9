"""How far an output is from its reference, and how many of its elements are finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xyntra_ep.diagnostics.sizes import Array
from xyntra_ep.wording import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far one tensor is from the CPU provider's. ``relative``: max |a - b| / max |b| over finite elements, inf when
    NaN or infinities are in other places (or integers differ at all)."""

    name: str
    op_type: str  # "" for outputs of the model
    relative: float
    absolute: float
    largest: float | None  # max |b| over finite elements, None without any; near 0 says that the reference is dead
    empty: bool = False  # as is one without elements, of a loop that never ran for example
    not_finite: int = 0  # how many elements of b are NaN or infinite
    unlike: int = 0  # how many are so in one and not in the other, or NaN in one and infinite in the other

    @property
    def alive(self) -> bool:
        return self.largest is not None and self.largest >= 1e-3

    @property
    def note(self) -> str:
        """Why nothing follows from it, or what of it was not measured; "" where all was."""
        if self.empty:
            return "has no elements: this proves nothing"
        if self.unlike:
            return f"not finite: {counted(self.not_finite, 'element')} of the reference, and {self.unlike} not alike in this"
        if self.largest is None:
            return "no finite element, in either: this proves nothing"
        told = [f"not finite, and the same in both: {counted(self.not_finite, 'element')}"] if self.not_finite else []
        return "; ".join(told if self.alive else [*told, "the reference is nearly zero: this proves nothing"])


def drift(name: str, got: Array, wanted: Array, op_type: str = "") -> Drift:
    """See ``Drift``."""
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    largest = float(np.abs(b[finite]).max(initial=0.0)) if finite.any() else None
    inf = float("inf")

    def found(relative: float, absolute: float, unlike: int = 0) -> Drift:
        return Drift(
            name=name,
            op_type=op_type,
            relative=relative,
            absolute=absolute,
            largest=largest,
            empty=not b.size,
            not_finite=int(b.size - finite.sum()),
            unlike=unlike,
        )

    if a.shape != b.shape:
        return found(inf, inf)
    alike = (finite & np.isfinite(a)) | (np.isnan(a) & np.isnan(b)) | (np.isinf(b) & (a == b))
    if not alike.all():
        return found(inf, inf, int(alike.size - alike.sum()))
    absolute = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    relative = absolute / largest if largest else (0.0 if absolute == 0 else inf)
    if wanted.dtype.kind != "f" and absolute:
        relative = inf
    return found(relative, absolute)


def numbers(output: Any) -> Array | None:
    """A tensor of numbers, or the values of maps from labels to numbers, as ``ZipMap`` makes them: in the order of their rows and
    labels. None for what has no numbers.

    >>> numbers([{"cat": 0.25, "dog": 0.75}])
    array([0.25, 0.75])
    """
    if isinstance(output, np.ndarray):
        return output if output.dtype.kind in "fiub" else None
    maps = [output] if isinstance(output, dict) else output
    if not isinstance(maps, list) or not all(isinstance(row, dict) for row in maps):
        return None
    values = np.array([row[label] for row in maps for label in sorted(row)])
    return values if values.dtype.kind in "fiub" else None


def labels(output: Any) -> list[list[Any]]:
    """Of each map; of a tensor none."""
    maps = [output] if isinstance(output, dict) else output if isinstance(output, list) else []
    return [sorted(row) for row in maps if isinstance(row, dict)]
