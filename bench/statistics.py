"""Numbers from samples. Pure functions; knows neither sessions nor files."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from hdrh.histogram import HdrHistogram

from xyntra_bench.plan import MIN_N_P90, MIN_N_P95, MIN_N_P99, MIN_N_P999
from xyntra_bench.results import Latency, Ratio

MIN_PAIRS = 8
MIN_ROUNDS = 2  # one cannot show how sessions differ
RESAMPLES = 1000
NORMAL_975 = 1.959963984540054

LOWEST_NS, HIGHEST_NS, DIGITS = 100, 3_600_000_000_000, 3

Array = npt.NDArray[np.float64]


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
        p90_ns=percentile(90, MIN_N_P90),
        p95_ns=percentile(95, MIN_N_P95),
        p99_ns=percentile(99, MIN_N_P99),
        p999_ns=percentile(99.9, MIN_N_P999),
        max_ns=int(values.max()),
        histogram=histogram.encode().decode("ascii"),
    )


def paired_ratio(
    baseline_ns: Sequence[Sequence[float]], contender_ns: Sequence[Sequence[float]], *, seed: int = 0
) -> Ratio | None:
    """How many times longer the baseline takes, from iterations that were neighbours in time; one list per round.

    Neighbours see the machine in the same state, so their ratio is steadier than the ratio of two medians. The result is the
    interquartile mean of the logarithms of all ratios: a disturbed iteration can take any time, which a mean would follow, and
    the median needs a third more iterations for the same interval.

    The iterations of a round share their sessions, whose memory may have good or bad addresses, so the bootstrap draws whole
    rounds: many iterations of one lucky pair of sessions must not look like certainty. With few rounds its percentiles are too
    narrow and are moved apart by the quantile of Student's t over the normal one and by sqrt(n / (n - 1)), the expanded
    percentile interval of Hesterberg, "What Teachers Should Know About the Bootstrap" (2015).
    """
    if [len(iterations) for iterations in baseline_ns] != [len(iterations) for iterations in contender_ns]:
        raise ValueError("pairs need equal counts in every round")
    rounds = [
        np.log(np.asarray(base, np.float64) / np.asarray(other, np.float64))
        for base, other in zip(baseline_ns, contender_ns, strict=True)
        if len(base)
    ]
    n, pairs = len(rounds), sum(iterations.size for iterations in rounds)
    if pairs < MIN_PAIRS or n < MIN_ROUNDS:
        return None
    middle = _middle(np.concatenate(rounds))
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    low, high = np.percentile(_middles(rounds, drawn), [2.5, 97.5])
    apart = student_t_975(n - 1) / NORMAL_975 * math.sqrt(n / (n - 1))
    return Ratio(
        middle=_told(middle),
        low=_told(middle + (min(low, middle) - middle) * apart),
        high=_told(middle + (max(high, middle) - middle) * apart),
        pairs=pairs,
        rounds=n,
    )


def _middle(values: Array) -> float:
    """Mean of the middle half."""
    return float(_middles([values], np.zeros((1, 1), np.int64))[0])


def _middles(rounds: Sequence[Array], drawn: npt.NDArray[np.int64]) -> Array:
    """That of the rounds drawn in each row."""
    if len({iterations.size for iterations in rounds}) > 1:
        return np.array([_middle(np.concatenate([rounds[i] for i in row])) for row in drawn])
    together = np.stack(rounds)[drawn].reshape(len(drawn), -1)
    count = together.shape[1]
    quarter = count // 4
    together.partition((quarter, count - 1 - quarter), axis=1)
    middles: Array = together[:, quarter : count - quarter].mean(axis=1)
    return middles


def student_t_975(freedom: int) -> float:
    """The 97.5 % quantile, by the expansion around the normal one in Abramowitz and Stegun, 26.7.5.

    >>> [round(student_t_975(n), 1) for n in (1, 2, 3, 7, 30)]
    [12.7, 4.3, 3.2, 2.4, 2.0]
    """
    if freedom == 1:  # where the expansion is too far out: Cauchy's
        return math.tan(0.475 * math.pi)
    z = NORMAL_975
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / float(freedom) ** power for power, term in enumerate(terms))


def _told(log_ratio: float) -> float:
    """Four decimals, and never 0, by which nothing can be divided: iterations may scatter that far.

    >>> _told(0.0), _told(-20.0)
    (1.0, 0.0001)
    """
    return max(round(math.exp(log_ratio), 4), 0.0001)
