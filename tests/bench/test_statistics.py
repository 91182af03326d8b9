from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hdrh.histogram import HdrHistogram

from xyntra_bench.results import Ratio, Verdict
from xyntra_bench.statistics import MIN_PAIRS, latency, paired_ratio, student_t_975
from xyntra_bench.verdicts import judge


def ratio(low: float, high: float) -> Ratio:
    return Ratio(middle=(low + high) / 2, low=low, high=high, pairs=30, rounds=3)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (1.03, 1.40, Verdict.FASTER),
        (1.01, 1.40, Verdict.UNSURE),
        (0.99, 1.01, Verdict.SAME),
        (0.985, 1.02, Verdict.SAME),
        (0.90, 1.10, Verdict.UNSURE),
        (0.90, 0.99, Verdict.UNSURE),
        (0.70, 0.97, Verdict.SLOWER),
    ],
)
def test_verdicts(low: float, high: float, verdict: Verdict) -> None:
    assert judge(ratio(low, high)) is verdict


def test_no_ratio_no_verdict() -> None:
    assert judge(None) is Verdict.NO_DATA


def test_percentiles_are_those_of_the_samples_to_three_digits() -> None:
    samples = list(range(1_000_000, 2_000_000, 1000))
    measured = latency(samples)
    assert measured.n == 1000
    for value, p in ((measured.p50_ns, 50), (measured.p95_ns, 95), (measured.p99_ns, 99)):
        assert value == pytest.approx(np.percentile(samples, p), rel=2e-3)
    assert (measured.min_ns, measured.max_ns) == (1_000_000, 1_999_000)
    assert HdrHistogram.decode(measured.histogram).get_total_count() == 1000


def test_percentiles_without_enough_samples_are_refused() -> None:
    assert latency([1000] * 99).p99_ns is None
    assert latency([1000] * 100).p99_ns is not None
    assert latency([1000] * 9).p90_ns is None and latency([1000] * 10).p90_ns is not None
    assert latency([1000] * 999).p999_ns is None and latency([1000] * 1000).p999_ns is not None
    assert latency([1000] * 19).p95_ns is None
    assert latency([1000] * 20).p95_ns is not None


def test_scatter() -> None:
    steady, wild = latency([1000] * 10), latency([1000, 2000] * 5)
    assert steady.cv == 0 and steady.mad_ns == 0
    assert wild.cv == pytest.approx(1 / 3, abs=1e-3) and wild.mad_ns == 500


def in_rounds(values: npt.ArrayLike, rounds: int = 5) -> list[list[float]]:
    return [list(part) for part in np.array_split(np.asarray(values), rounds)]


def test_pairing_removes_what_both_share() -> None:
    """A machine that becomes three times slower half way spoils medians, not paired ratios."""
    rng = np.random.default_rng(1)
    mood = np.repeat([1e6, 3e6], 15)
    contender = mood * rng.normal(1, 0.005, 30)
    measured = paired_ratio(in_rounds(1.4 * mood), in_rounds(contender))
    assert measured is not None
    assert measured.low <= 1.4 <= measured.high
    assert measured.high - measured.low < 0.02
    assert judge(measured) is Verdict.FASTER


def test_equal_sessions_are_not_told_apart() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(1e6, 1e4, (2, 200))
    assert judge(paired_ratio(in_rounds(a), in_rounds(b))) is Verdict.SAME
    a, b = rng.normal(1e6, 2e5, (2, 10))
    assert judge(paired_ratio(in_rounds(a), in_rounds(b))) is Verdict.UNSURE


def test_what_disturbs_some_turns_does_not_move_the_ratio() -> None:
    rng = np.random.default_rng(5)
    base, other = rng.normal(1e6, 1e3, (2, 100))
    base[::5] *= 4
    measured = paired_ratio(in_rounds(base), in_rounds(other))
    assert measured is not None and measured.middle == pytest.approx(1, abs=2e-3)


def test_the_interval_is_reproducible() -> None:
    samples = in_rounds(np.random.default_rng(3).normal(1e6, 1e5, 20).tolist())
    assert paired_ratio(samples, samples[::-1]) == paired_ratio(samples, samples[::-1])


def test_rounds_of_unequal_length() -> None:
    rounds = [[2.0] * 6, [2.0] * 4]
    measured = paired_ratio(rounds, [[1.0] * 6, [1.0] * 4])
    assert measured is not None and (measured.middle, measured.low, measured.high, measured.pairs) == (2, 2, 2, 10)


def test_too_few_or_unequal_pairs() -> None:
    half = [1.0] * (MIN_PAIRS // 2)
    assert paired_ratio([half, half], [half, half]) is not None
    assert paired_ratio([half, half[1:]], [half, half[1:]]) is None
    assert paired_ratio([half * 4], [half * 4]) is None, "one round says nothing of other sessions"
    assert paired_ratio([], []) is None
    with pytest.raises(ValueError, match="equal counts"):
        paired_ratio([[1.0, 2.0]], [[1.0]])


def test_one_lucky_pair_of_sessions_is_not_certainty() -> None:
    """Within each round the sessions differ steadily, but not always in the same direction."""
    rounds = [[1.05e6] * 20, [0.97e6] * 20, [1.04e6] * 20]
    ones = [[1e6] * 20] * 3
    measured = paired_ratio(rounds, ones)
    assert measured is not None and (measured.rounds, measured.pairs) == (3, 60)
    assert measured.low <= 0.97 and measured.high >= 1.05
    assert judge(measured) is Verdict.UNSURE


def test_few_rounds_have_a_wider_interval() -> None:
    """As many iterations, of sessions that differ as much: what their number alone makes of it is Student's t."""
    few, many = ([[1e6 * level] * n for level in levels] for n, levels in ((20, (0.99, 1.01)), (4, (0.99, 1.01) * 5)))
    of_few, of_many = (paired_ratio(rounds, [[1e6] * len(iterations) for iterations in rounds]) for rounds in (few, many))
    assert of_few is not None and of_many is not None
    assert of_few.high - of_few.low > 5 * (of_many.high - of_many.low)


def test_the_quantile_of_students_t() -> None:
    for freedom, value in ((1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (100, 1.984)):
        assert student_t_975(freedom) == pytest.approx(value, rel=0.01)
