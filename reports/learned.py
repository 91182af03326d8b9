"""The learned cost model beside the estimates: a page from a stored run of `bench learn`. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from xyntra_bench.tuning.learned_results import TOP, LearnedKernel, LearnedRun, Ranking
from xyntra_reports._figure import INK, MUTED, SERIES, figure, png, svg
from xyntra_reports._markdown import table
from xyntra_reports.registry import Picture

_UNSEEN = ("unseen shape", "unseen machine")
HEADER = (
    "kernel", "kernels for", "points", "correlation", *_UNSEEN, f"top {TOP}", *_UNSEEN, "first", _UNSEEN[0], "trials",
    "begun with it",
)  # fmt: skip
ESTIMATE, SHAPE, MACHINE = "estimates", "learned, unseen shape", "learned, unseen machine"


def learned_page(run: LearnedRun, source: str) -> str:
    """Markdown, the kernels on which the learned ranking loses most at the end."""
    kernels = sorted(run.kernels, key=lambda k: math.log(k.unseen_shape.top / k.estimate.top))
    rows = [_summary(name, of, run.kernels) for name, of in _sides(run.kernels).items()]
    worse = [k for k in run.kernels if k.unseen_shape.top > k.estimate.top]
    where = f"It ranks for {', '.join(run.better_for)}" if run.better_for else "It ranks nowhere"
    text = (
        f"{where}: the kinds of ops on which it is better than the estimates on shapes that it has not seen. Of "
        f"{len(run.kernels)} kernels the best of its first {TOP} is worse than the estimates' on {len(worse)}"
        f"{_named(worse)}. A search that begins with its first ones needs {_fewer(run.kernels)}."
    )
    means = table(("ranking", "correlation", f"best of the first {TOP}", "the first"), rows)
    notes = (
        f"`correlation`: Spearman's, of the ranking with the measured times. `top {TOP}`: the best of the first {TOP}, and "
        "`first`: the first one, over the best configuration there is. Each is given for the estimates, then for models that "
        "were fitted without this kernel, and without any run of its instruction set. `trials`: the median that the Gaussian "
        "process needs to come near the best; `begun with it`: where it tries the ranking's first three before."
    )
    made = f"Made {run.made[:10]} with `{run.command}` from {', '.join(f'`{s}`' for s in run.sources)}"
    machines = "; ".join(run.machines)
    return f"{text}\n\n{means}\n\n{table(HEADER, map(_row, kernels))}\n\n{notes}\n\n{made} ({machines}); stored in `{source}`.\n"


def _sides(kernels: Sequence[LearnedKernel]) -> dict[str, Callable[[LearnedKernel], Ranking | None]]:
    sides: dict[str, Callable[[LearnedKernel], Ranking | None]] = {
        ESTIMATE: lambda k: k.estimate,
        SHAPE: lambda k: k.unseen_shape,
    }
    if any(k.unseen_machine is not None for k in kernels):
        sides[MACHINE] = lambda k: k.unseen_machine
    return sides


def _summary(name: str, of: Callable[[LearnedKernel], Ranking | None], kernels: Sequence[LearnedKernel]) -> list[str]:
    """Means over kernels: arithmetic of correlations, geometric of ratios."""
    found = [ranking for k in kernels if (ranking := of(k)) is not None]
    ratios = [math.exp(statistics.fmean(math.log(getattr(r, which)) for r in found)) for which in ("top", "first")]
    return [name, f"{statistics.fmean(r.correlation for r in found):.2f}", *(f"{ratio:.3f}x" for ratio in ratios)]


def _named(kernels: Sequence[LearnedKernel]) -> str:
    return f" ({', '.join(f'{k.name} {k.isa}' for k in kernels)})" if kernels else ""


def _trials(needed: Sequence[int]) -> float:
    """Infinite where more than half of the seeds did not come near."""
    return statistics.median(n or math.inf for n in needed)


def _fewer(kernels: Sequence[LearnedKernel]) -> str:
    """Who needs more trials."""
    pairs = [(_trials(k.needed), _trials(k.needed_seeded)) for k in kernels]
    fewer, more = sum(b < a for a, b in pairs), sum(b > a for a, b in pairs)
    return f"fewer trials on {fewer} of them, and more on {more}"


def _row(k: LearnedKernel) -> list[str]:
    rankings = [k.estimate, k.unseen_shape, k.unseen_machine]
    correlation = [f"{r.correlation:.2f}" if r is not None else "-" for r in rankings]
    top = [f"{r.top:.3f}x" if r is not None else "-" for r in rankings]
    first = [f"{r.first:.3f}x" for r in (k.estimate, k.unseen_shape)]
    trials = [f"{n:g}" if math.isfinite(n := _trials(needed)) else "never" for needed in (k.needed, k.needed_seeded)]
    return [k.name, k.isa, str(k.points), *correlation, *top, *first, *trials]


def learned_picture(run: LearnedRun) -> Picture:
    """Each kernel's best of the first few, by the estimates and by models that have not seen it."""
    kernels = sorted(run.kernels, key=lambda k: k.estimate.top)
    with figure(8.0, 0.24 * len(kernels) + 1.2) as fig:
        axes = fig.add_subplot(1, 1, 1)
        for (name, of), colour, marker in zip(_sides(kernels).items(), SERIES, "osD", strict=False):
            found = [(ranking.top, y) for y, k in enumerate(kernels) if (ranking := of(k)) is not None]
            axes.plot(*zip(*found, strict=True), marker, color=colour, label=name, markersize=5, alpha=0.85)
        axes.axvline(1.0, color=MUTED, linewidth=0.7)
        axes.set_yticks(range(len(kernels)), [f"{k.name}, {k.isa}" for k in kernels], fontsize=7, color=INK)
        axes.set_xlabel(f"the best of the first {TOP} over the best there is", fontsize=8)
        axes.legend(fontsize=8, loc="lower right")
        fig.tight_layout()
        alt = (
            f"The best of the first {TOP} configurations over the best there is, estimated and learned, of {len(kernels)} kernels"
        )
        return Picture(name="learned-costs", alt=alt, svg=svg(fig), png=png(fig))
