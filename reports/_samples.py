"""Run times of a measurement, from its raw samples or else from its histogram."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from xyntra_bench.results import Measurement

Values = NDArray[np.float64]
FAR_OUT = 3.0  # quartile distances beyond the quartiles: Tukey's outer fence, "Exploratory Data Analysis" (1977)


def sorted_ns(m: Measurement) -> Values:
    """In increasing order; empty when nothing was measured."""
    if m.samples_ns:
        return np.sort(np.asarray(m.samples_ns, np.float64))
    return _of_histogram(m.latency.histogram) if m.latency and m.latency.histogram else np.empty(0)


@lru_cache(maxsize=256)
def _of_histogram(encoded: str) -> Values:
    """Each counted value as often as it was counted, to the histogram's three digits."""
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram.decode(encoded)
    found = [(item.value_iterated_to, item.count_added_in_this_iter_step) for item in histogram.get_recorded_iterator()]
    values, counts = (np.asarray(column) for column in zip(*found, strict=True))
    return np.repeat(values.astype(np.float64), counts.astype(np.int64))


def outer_fence_ns(values: Values) -> float:
    """Beyond it a run is called an outlier; only slow ones are, as nothing makes a run too fast."""
    low, high = np.percentile(values, [25, 75])
    return float(high + FAR_OUT * (high - low))
