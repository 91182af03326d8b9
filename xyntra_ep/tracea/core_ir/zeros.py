"""How much of a matrix of weights is not zero, as kernels that leave zeros out want to know it.

A product of matrices adds up steps: a column of a times a row of b. Of the columns that a kernel computes together, a step adds
nothing where the row of b has only zeros there. Pruned in blocks, weights have many such steps; pruned element by element, few.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WIDTHS = (4, 8, 12, 16, 24, 32, 48, 64)  # of what kernels compute together, in columns
ALL = 256
_MOST = 230  # of ALL, at the least width: beyond it nothing is gained

Filled = tuple[tuple[int, int], ...]


def filled_of(b: NDArray[np.float32]) -> Filled:
    """For each of ``WIDTHS`` (columns, how many of ``ALL`` pieces of a row of ``b`` [k, n] are not all zero); nothing where most
    are not.

    >>> half = np.concatenate([np.zeros((16, 64), np.float32), np.ones((16, 64), np.float32)])
    >>> filled_of(half)[-1], filled_of(np.ones((4, 4), np.float32))
    ((64, 128), ())
    """
    if not b.size:
        return ()
    fours = _joined(b != 0, 4)
    found = tuple((width, -int(-ALL * float(_joined(fours, width // 4).mean()) // 1)) for width in WIDTHS)
    return found if found[0][1] <= _MOST else ()


def beside(parts: Sequence[tuple[Filled, int]]) -> Filled:
    """Of matrices with so many columns side by side: ``(filled, columns)`` of each."""
    if not any(filled for filled, _ in parts):
        return ()
    columns = sum(n for _, n in parts)
    shares = ([(filled[i][1] if filled else ALL) * n for filled, n in parts] for i in range(len(WIDTHS)))
    return tuple((width, -(-sum(share) // columns)) for width, share in zip(WIDTHS, shares, strict=True))


def _joined(is_any: NDArray[np.bool_], pieces: int) -> NDArray[np.bool_]:
    """Of so many neighbours in a row whether any is true; the last ones may be fewer."""
    rows, n = is_any.shape
    padded = np.zeros((rows, -(-n // pieces) * pieces), np.bool_)
    padded[:, :n] = is_any
    found: NDArray[np.bool_] = np.logical_or.reduce(padded.reshape(rows, -1, pieces), axis=2)
    return found
