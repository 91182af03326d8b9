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
RESAMPLES = 2000

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
    baseline_ns: Sequence[Sequence[float]], contender_ns: Sequence[Sequence[float]], *, seed: int = 0
) -> Ratio | None:
    """Median of the ratios of turns that were neighbours in time; the arguments hold one list per round.

    Neighbours share the machine's mood, so their ratio is steadier than the ratio of two medians. The turns of a
    round share their sessions, so the bootstrap first draws rounds and then turns within them: many turns with
    one pair of lucky sessions must not look like certainty.
    """
    if [len(turns) for turns in baseline_ns] != [len(turns) for turns in contender_ns]:
        raise ValueError("pairs need equal counts in every round")
    rounds = [
        np.asarray(base, np.float64) / np.asarray(other, np.float64)
        for base, other in zip(baseline_ns, contender_ns, strict=True)
        if len(base)
    ]
    ratios = np.concatenate(rounds) if rounds else np.empty(0)
    if ratios.size < MIN_PAIRS:
        return None
    rng = np.random.default_rng(seed)
    medians = [
        np.median(np.concatenate([rng.choice(rounds[i], rounds[i].size) for i in drawn]))
        for drawn in rng.integers(0, len(rounds), (RESAMPLES, len(rounds)))
    ]
    low, high = np.percentile(medians, [2.5, 97.5])
    return Ratio(
        median=round(float(np.median(ratios)), 4),
        low=round(float(low), 4),
        high=round(float(high), 4),
        pairs=int(ratios.size),
        rounds=len(rounds),
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
