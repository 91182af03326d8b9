"""Why a kernel is far from its roof, as far as its own numbers tell. Pure arithmetic on what one run recorded."""

from __future__ import annotations

from xyntra_reports._kernels import COMPUTE, Group, Roofs

ENOUGH = 0.70  # of its roof; what is below has a reason, or is open
SHORT_NS = 10_000  # a start on several threads and two reads of the clock are a part of so short a time
OPEN = "open"


def reason(g: Group, roofs: Roofs) -> str:
    """Empty where the kernel reaches enough. Reasons in their order: it is short; its bytes do not stay in the memory that could
    hold them, and from one further away it is as fast as that one; arithmetic and memory weigh alike, and one after the other is
    what it reaches. ``OPEN`` when none of them explains it."""
    if g.of_roof is None or g.of_roof >= ENOUGH:
        return ""
    each_ns, computing_ns = g.ns / g.calls, g.flops / g.calls / roofs.peak(g.precision)
    if each_ns < SHORT_NS:
        return f"short: {each_ns / 1e3:.2g} µs"
    moved = g.bytes / g.calls
    levels = [(name, moved / gbs) for name, gbs, size in roofs.levels if moved <= size]
    enough_ns = ENOUGH * each_ns
    for name, moving_ns in levels:
        if computing_ns < moving_ns >= enough_ns:
            part = " in part" if moving_ns > each_ns else ""
            return f"{moving_ns / each_ns:.0%} of {name}'s roof, from where its {_size(moved)} come{part}"
        if (both_ns := computing_ns + moving_ns) >= enough_ns:
            return f"{both_ns / each_ns:.0%} of {COMPUTE} and {name} one after the other"
    return OPEN


def _size(count: float) -> str:
    """
    >>> _size(300_000), _size(7 << 20)
    ('293 KiB', '7.0 MiB')
    """
    return f"{count / 2**20:.1f} MiB" if count >= 1 << 20 else f"{count / 2**10:.0f} KiB"
