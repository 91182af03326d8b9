"""A division by a known number whose result is rounded to an integer, as two products.

    round(x / s)  =  round(fma(x, high, x * low))          high + low is 1 / s, to 48 bits

Both sides grow with x, so they are equal everywhere if they are on both sides of each x at which the result changes. These are
known, one between every two integers, and are tried. (Brisebarre, Muller, Raina 2004: for nearly all divisors both quotients are
equal as floats.)
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_NEAR = np.arange(-4, 5, dtype=np.int32)  # floats around a change that are tried
_LARGEST = 1 << 17  # of the results: neighbours are then at least 64 floats apart
_EXPONENTS = (2.0**-64, 2.0**64)  # of the divisor: nothing below it is lost, and its reciprocal is far from both ends


def is_usual(divisor: float, first: int, last: int) -> bool:
    """Whether nothing overflows or is lost between ``first`` and ``last`` times the divisor, and the reciprocal is as far from
    the ends of what floats hold."""
    low_end, high_end = _EXPONENTS
    return low_end < divisor < high_end and max(abs(first), abs(last)) <= _LARGEST


@lru_cache(maxsize=4096)
def reciprocal(divisor: float, first: int, last: int) -> tuple[float, float] | None:
    """(high, low) for results from ``first`` to ``last``; None where two products do not do.

    >>> reciprocal(0.25, -128, 127)
    (4.0, 0.0)
    """
    if not is_usual(divisor, first, last):
        return None
    s = np.float32(divisor)
    high = np.float32(1) / s
    low = np.float32(1 / np.float64(s) - np.float64(high))
    changes = ((np.arange(first, last) + 0.5) * np.float64(s)).astype(np.float32)
    x = (changes.view(np.int32)[:, None] + _NEAR).view(np.float32)
    rest = (x.astype(np.float64) * np.float64(low)).astype(np.float32)
    product = (x.astype(np.longdouble) * np.longdouble(high) + rest.astype(np.longdouble)).astype(np.float32)
    return (float(high), float(low)) if np.array_equal(np.rint(product), np.rint(x / s)) else None
