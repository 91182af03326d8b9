"""Numbers from samples. Pure functions; knows neither sessions nor files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hdrh.histogram import HdrHistogram

from bench.results import Latency, Ratio, Verdict

# A percentile needs samples beyond it: with n = 100 one sample lies above p99.
MIN_N_P95 = 20
MIN_N_P99 = 100
MIN_PAIRS = 8  # below this the interval of a median is its whole range
MIN_EFFECT = 0.02  # smaller differences are not worth a word
RESAMPLES = 4000

LOWEST_NS, HIGHEST_NS, DIGITS = 100, 3_600_000_000_000, 3


def latency(samples_ns: Sequence[int]) -> Latency:
    histogram = HdrHistogram(LOWEST_NS, HIGHEST_NS, DIGITS)
    for sample in samples_ns:
        histogram.record_value(sample)
    values = np.asarray(samples_ns, np.float64)
    mean = float(values.mean())

    def percentile(p: float, min_n: int) -> int | None:
        return int(histogram.get_value_at_percentile(p)) if len(samples_ns) >= min_n else None

    return Latency(
        n=len(samples_ns),
        mean_ns=round(mean, 1),
        cv=round(float(values.std()) / mean, 4),
        mad_ns=round(float(np.median(np.abs(values - np.median(values)))), 1),
        min_ns=int(values.min()),
        p50_ns=int(histogram.get_value_at_percentile(50)),
        p95_ns=percentile(95, MIN_N_P95),
        p99_ns=percentile(99, MIN_N_P99),
        max_ns=int(values.max()),
        histogram=histogram.encode().decode("ascii"),
    )


def paired_ratio(
    baseline_ns: Sequence[float], contender_ns: Sequence[float], *, seed: int = 0
) -> Ratio | None:
    """Median of the ratios of runs that were neighbours in time, with a percentile bootstrap over the pairs.

    Neighbours share the machine's mood, so their ratio is steadier than the ratio of two medians.
    """
    if len(baseline_ns) != len(contender_ns):
        raise ValueError(f"pairs need equal counts, got {len(baseline_ns)} and {len(contender_ns)}")
    if len(baseline_ns) < MIN_PAIRS:
        return None
    ratios = np.asarray(baseline_ns, np.float64) / np.asarray(contender_ns, np.float64)
    rng = np.random.default_rng(seed)
    medians = np.median(rng.choice(ratios, (RESAMPLES, ratios.size)), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return Ratio(
        median=round(float(np.median(ratios)), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
        pairs=int(ratios.size),
    )


def judge(ratio: Ratio | None) -> Verdict:
    """The whole interval must lie beyond the minimum effect, or within it."""
    if ratio is None:
        return Verdict.NO_DATA
    up, down = 1 + MIN_EFFECT, 1 / (1 + MIN_EFFECT)
    if ratio.low > up:
        return Verdict.FASTER
    if ratio.high < down:
        return Verdict.SLOWER
    if ratio.low >= down and ratio.high <= up:
        return Verdict.SAME
    return Verdict.UNSURE
