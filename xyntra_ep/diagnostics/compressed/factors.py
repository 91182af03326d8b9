"""A matrix as the product of two of low rank, by its singular values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spectrum:
    """``u`` diag(``values``) ``vt``, the values from the largest on."""

    u: Matrix
    values: Matrix
    vt: Matrix

    @classmethod
    def of(cls, matrix: NDArray[np.floating]) -> Spectrum:
        """Raises numpy.linalg.LinAlgError for one with NaN or infinities."""
        u, values, vt = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
        return cls(u=u, values=values, vt=vt)

    def energy(self, rank: int) -> float:
        """The part of the sum of squares of all elements that the first values have."""
        squares = np.square(self.values)
        total = float(squares.sum())
        return float(squares[:rank].sum()) / total if total else 1.0

    def error(self, rank: int) -> float:
        """Of the matrix cut to ``rank``: the norm of the difference over that of the matrix (Frobenius)."""
        return math.sqrt(max(0.0, 1.0 - self.energy(rank)))

    def least_rank(self, error: float) -> int:
        """Whose error is at most ``error``; at least 1."""
        squares = np.square(self.values)
        cut = squares[::-1].cumsum()[::-1]  # what is left out from each on
        kept = int(np.count_nonzero(cut > error * error * cut[0])) if cut.size and cut[0] else 1
        return max(1, kept)

    def factors(self, rank: int) -> tuple[Matrix, Matrix]:
        """A [k, rank] and B [rank, n], of which both have the root of each value."""
        root = np.sqrt(self.values[:rank])
        return self.u[:, :rank] * root, root[:, None] * self.vt[:rank]
