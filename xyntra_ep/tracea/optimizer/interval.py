"""A confidence interval that outliers do not widen: of a median, by order statistics.

Of n samples, so many of each end are left out that the true median is between what remains in at least 95 of 100 cases, whatever
the distribution (the sign test turned round; Conover, Practical Nonparametric Statistics, 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_COVERAGE = 0.95


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The least and the largest value that the median may have; of fewer than six samples nothing is known.

    >>> median_interval([5, 1, 4, 2, 3, 100])
    (1, 100)
    >>> median_interval([3, 1, 2])
    (-inf, inf)
    """
    ordered, n = sorted(samples), len(samples)
    outside, left_out = 2.0 * 0.5**n, 0  # the probability that the median is outside of all samples
    if outside > 1 - _COVERAGE:
        return -math.inf, math.inf
    while (more := outside + 2.0 * math.comb(n, left_out + 1) * 0.5**n) <= 1 - _COVERAGE:
        outside, left_out = more, left_out + 1
    return ordered[left_out], ordered[n - 1 - left_out]
