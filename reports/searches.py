"""The tuner's search against chance: a page from a stored run of `bench run tune`. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xyntra_bench.tuning.search_results import KIND_GP, KIND_RANDOM, NEAR, KernelSearch, SearchRun
from xyntra_reports._figure import INK, LINES, MUTED, SERIES, figure, png, svg
from xyntra_reports._markdown import table
from xyntra_reports.registry import Picture

HEADER = (
    "kernel", "points", "near the best", "default", "rank correlation", "top 5", "Gaussian process", "random", "best",
)  # fmt: skip
KINDS = (KIND_GP, KIND_RANDOM)
_COLUMNS = 5  # of small plots


def searches_page(run: SearchRun, source: str) -> str:
    """Markdown, the kernels on which the process gains least at the end of the table."""
    ordered = sorted(run.kernels, key=_gain, reverse=True)
    won = [k for k in ordered if _gain(k) > 1.0]
    lost = [k.name for k in ordered if _gain(k) < 1.0]
    e = run.environment
    versions = ", ".join(f"{name} {version}" for name, version in e.packages.items())
    which = f" ({', '.join(lost)})" if lost else ""
    text = (
        f"To come within {NEAR - 1:.0%} of the best configuration there is, the Gaussian process needs fewer trials than chance "
        f"on {len(won)} of {len(ordered)} kernels, and more on {len(lost)}{which}. By the geometric mean chance needs "
        f"{_mean_gain(ordered):.1f} times as many."
    )
    notes = (
        "`points`: configurations of all variants that may be tried, each measured. `near the best`: how many of them are within "
        f"{NEAR - 1:.0%} of the best. `default`: how much slower what is chosen without tuning is than the best. What estimates "
        "are worth: their `rank correlation` (Spearman's) with what was measured, and by `top 5` the best of the five that are "
        "estimated to be the fastest, over the best. Then for each search the trials that it needs, the median over seeds; a "
        "search begins with the default."
    )
    machine = f"{e.cpu}, kernels for {run.kernels_isa}, one thread. Python {e.python}, {versions}"
    revision = f" at {e.git_revision}" if e.git_revision else ""
    from_file = f"{machine}{revision}. Measured {run.started[:10]} with `{run.command}`, stored in `{source}`."
    interrupted = "" if run.finished else "\n\nInterrupted."
    return f"{text}\n\n{table(HEADER, map(_row, ordered))}\n\n{notes}\n\n{from_file}{interrupted}\n"


def _needed(kernel: KernelSearch, kind: str) -> float:
    """Where most seeds did not come near, one trial more than they had."""
    return min(kernel.median_needed(kind), len(kernel.curves[kind]) + 1.0)


def _gain(kernel: KernelSearch) -> float:
    return _needed(kernel, KIND_RANDOM) / _needed(kernel, KIND_GP)


def _mean_gain(kernels: Sequence[KernelSearch]) -> float:
    return math.exp(sum(math.log(_gain(k)) for k in kernels) / len(kernels)) if kernels else 1.0


def _row(kernel: KernelSearch) -> list[str]:
    trials = [f"{kernel.median_needed(kind):g}" if math.isfinite(kernel.median_needed(kind)) else "never" for kind in KINDS]
    points = f"{kernel.points}" + (f" ({kernel.failed} failed)" if kernel.failed else "")
    slower = f"{(kernel.default_ratio - 1) * 100:.1f} % slower" if kernel.default_ratio > 1.0005 else "is the best"
    by_estimate = [f"{kernel.rank_correlation:.2f}", f"{kernel.top5:.3f}x"]
    return [kernel.name, points, str(kernel.near), slower, *by_estimate, *trials, kernel.best]


def searches_picture(run: SearchRun) -> Picture:
    """A small plot for each kernel: the best so far over the best there is, by the number of trials."""
    kernels = [k for k in run.kernels if k.points > 1]
    rows = max(1, -(-len(kernels) // _COLUMNS))
    with figure(2.3 * _COLUMNS, 1.75 * rows + 0.5) as fig:
        for number, kernel in enumerate(kernels):
            axes = fig.add_subplot(rows, _COLUMNS, number + 1)
            for kind, colour, line in zip(KINDS, SERIES, LINES, strict=False):
                curve = kernel.curves[kind]
                axes.plot(range(1, len(curve) + 1), curve, color=colour, linestyle=line, linewidth=1.4, label=kind)
            axes.axhline(NEAR, color=MUTED, linewidth=0.7)
            top = max(NEAR + 0.02, *(max(curve[:1], default=1.0) for curve in kernel.curves.values()))
            axes.set(ylim=(0.995, top), xlim=(1, max(2, *(len(c) for c in kernel.curves.values()))))
            axes.set_title(kernel.name, fontsize=7.5, color=INK)
            axes.tick_params(labelsize=7)
        fig.tight_layout(rect=(0, 0.05, 1, 1))
        handles, labels = fig.axes[0].get_legend_handles_labels() if fig.axes else ([], [])
        fig.legend(handles, labels, loc="lower center", ncol=len(KINDS), fontsize=9)
        alt = f"Best configuration so far over the best there is, by the number of trials, of {len(kernels)} kernels"
        return Picture(name="tuning-search", alt=alt, svg=svg(fig), png=png(fig))
