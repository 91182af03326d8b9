"""Values: tame ones, and those on which operators stumble.

A kind of filling stays with each input of a model, so that every run draws new data of the same sort.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from tests.hunt.case import Array

Rng = np.random.Generator


class Kind(StrEnum):
    """``SIGNED``: both signs, nothing large. ``POSITIVE``: away from zero. ``INDEX``: integers from low to high."""

    SIGNED = "signed"
    POSITIVE = "positive"
    UNIT = "unit"
    INDEX = "index"
    EXACT = "exact"


@dataclass(frozen=True, slots=True)
class Fill:
    """How one input is filled. ``low`` and ``high`` (not included) are those of INDEX; ``fixed`` is the content itself where a
    program on shapes depends on it."""

    kind: Kind = Kind.SIGNED
    low: int = 0
    high: int = 1
    fixed: tuple[int, ...] | None = None

    def draw(self, rng: Rng, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Tame data."""
        if self.fixed is not None and len(self.fixed) == int(np.prod(shape)):
            return np.asarray(self.fixed).reshape(shape).astype(dtype)
        if dtype == np.bool_:
            return np.asarray(rng.random(shape) < 0.5)
        if self.kind is Kind.INDEX:
            return np.asarray(rng.integers(self.low, max(self.high, self.low + 1), shape)).astype(dtype)
        if dtype.kind in "iu":
            least = 1 if self.kind is Kind.POSITIVE else 0 if dtype.kind == "u" else -5
            return np.asarray(rng.integers(least, 7, shape)).astype(dtype)
        low, high = {Kind.POSITIVE: (0.5, 2.0), Kind.UNIT: (-0.9, 0.9)}.get(self.kind, (-2.0, 2.0))
        data = np.asarray(rng.uniform(low, high, shape))
        if rng.random() < 0.2:  # ties, zeros, whole numbers
            data = np.round(data * 2) / 2 if self.kind is Kind.SIGNED else data
        return data.astype(dtype)

    def draw_special(self, rng: Rng, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        """Tame data with a few elements that are not."""
        data = np.array(self.draw(rng, shape, dtype))
        if dtype == np.bool_ or not data.size:
            return data
        flat = data.reshape(-1)
        odd = odd_values(dtype, index=self.kind is Kind.INDEX or self.fixed is not None)
        count = max(1, int(flat.size * rng.choice([0.1, 0.3, 1.0], p=[0.6, 0.3, 0.1])))
        for place in rng.choice(flat.size, count, replace=False):
            flat[place] = odd[int(rng.integers(len(odd)))]
        return flat.reshape(shape)


def odd_values(dtype: np.dtype, *, index: bool = False) -> Array:
    """What has no place in arithmetic: NaN, infinities, denormals, the largest, zeros of both signs, and limits of integers.

    An index of 2**63 - 1 is no size that anyone allocates, but one of 1000 might be: shapes get what fails soon.
    """
    if dtype.kind == "f":
        info = np.finfo(dtype)
        values = [np.nan, np.inf, -np.inf, info.tiny / 8, -info.tiny / 8, info.max, -info.max, -0.0, 0.0, 1e4, -1e4, 89.0, -104.0]
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(values).astype(dtype)
    limits = np.iinfo(dtype)
    if index:
        far = (limits.min, limits.max) if dtype.itemsize == 8 else ()
        return np.asarray([v for v in (-1, 0, 1, -7, 9, *far) if limits.min <= v <= limits.max], dtype)
    return np.asarray([limits.min, limits.max, 0, 1, max(-1, limits.min), limits.min + 1, limits.max - 1], dtype)
