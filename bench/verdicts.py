"""What a ratio says in a word. Pure, and all that those who read stored results need of statistics."""

from __future__ import annotations

from xyntra_bench.results import Ratio, Verdict

MIN_EFFECT = 0.02  # smaller differences are not worth a word


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
