"""Distribution of run times per session, baseline included: percentiles on a scale of nines, histogram, and in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Measurement, Run
from xyntra_bench.show import milliseconds
from xyntra_reports._figure import LINES, MARKERS, SERIES, figure, png, svg
from xyntra_reports._markdown import cases_of, provenance, table
from xyntra_reports._samples import Values, outer_fence_ns, sorted_ns
from xyntra_reports.registry import Part, Picture, Report, Section

HEADER = ("case", "provider", "n", "min ms", "p50 ms", "p95 ms", "p99 ms", "max ms", "CV", "outliers", "warnings")
NOTE = (
    "CV is the standard deviation over the mean. Outliers are runs beyond the third quartile by more than three times the "
    "interquartile range. A percentile is left out where there are too few runs for it."
)
CALLS_IT_NOISE = 0.995  # the histogram ends there, and says how many runs lie beyond
LEAST_BINS, MOST_BINS = 24, 60


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.SINGLE_STREAM) for row in _rows(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    for m in case.measurements:
        if m.latency is None:
            continue
        values = m.latency
        yield [
            f"{case.model} {case.shape} t{case.threads}",
            m.label,
            str(values.n),
            *map(milliseconds, (values.min_ns, values.p50_ns, values.p95_ns, values.p99_ns, values.max_ns)),
            f"{values.cv:.1%}",
            str(_outliers(sorted_ns(m))),
            ", ".join((*m.warnings, *case.warnings)) or "-",
        ]


def _outliers(values: Values) -> int:
    return int((values > outer_fence_ns(values)).sum()) if values.size else 0


# ------------------------------------------------------------------------------------------------------- the plots


def part(run: Run, case: CaseResult) -> Section | None:
    setups = [m for m in case.measurements if sorted_ns(m).size]
    if not setups:
        return None
    warned = dict.fromkeys(warn for m in case.measurements for warn in (*m.warnings, *case.warnings))
    advice = [f"**{warn}**: {warn.advice}" for warn in warned]
    shown = table(HEADER[1:], [row[1:] for row in _rows(case)])
    return Section(text="\n\n".join([shown, NOTE, *advice]), pictures=(picture(case, setups),))


def picture(case: CaseResult, setups: Sequence[Measurement]) -> Picture:
    """Three plots that share their colours: all contenders over each other."""
    with figure(9.6, 8.4) as fig:
        legend_height = 0.028 * -(-len(setups) // 2)
        grid = fig.add_gridspec(
            2, 2, left=0.075, right=0.98, top=0.93 - legend_height, bottom=0.065, hspace=0.36, wspace=0.2, height_ratios=(1.1, 1)
        )
        nines, shape, order = fig.add_subplot(grid[0, 0]), fig.add_subplot(grid[0, 1]), fig.add_subplot(grid[1, :])
        for i, m in enumerate(setups):
            _nines(nines, sorted_ns(m) / 1e6, i)
        shape.set_title(_histogram(shape, [sorted_ns(m) / 1e6 for m in setups]))
        titles: dict[str, str] = {}
        for i, m in enumerate(setups):
            titles |= _in_order(order, m, i)
        _finish(nines, shape, order, setups)
        lines, labels = nines.get_legend_handles_labels()
        threads = f"{case.threads} thread{'s' if case.threads > 1 else ''}"
        fig.text(0.02, 0.975, f"Run times of {case.model} {case.shape}, {threads}", weight="bold", fontsize=11, va="top")
        fig.legend(lines, labels, loc="upper left", bbox_to_anchor=(0.012, 0.955), ncols=2, fontsize=8.5)
        alt = f"Run times of {case.model} {case.shape} with {threads}: " + "; ".join(
            f"{m.label} median {milliseconds(m.latency.p50_ns)} ms of {m.latency.n}" for m in setups if m.latency
        )
        return Picture(name=f"latency-{case.model}-{case.shape}-t{case.threads}", alt=alt, svg=svg(fig, titles), png=png(fig))


def _nines(axes: Any, values: Values, i: int) -> None:
    """Time over 1 / (1 - share of runs that took no longer), as HdrHistogram's plotter draws it. The slowest run stands
    where one of 2n would, because there is nothing beyond it to tell its share."""
    n = values.size
    share = np.arange(1, n + 1) / n
    share[-1] = 1 - 0.5 / n
    axes.plot(1 / (1 - share), values, color=_colour(i), ls=LINES[i % len(LINES)], lw=1.6, label="", gid=f"nines-{i}")


def _histogram(axes: Any, columns: Sequence[Values]) -> str:
    """Shares of runs; outlines, so that none hides another. Returns its title, which says what is not shown."""
    everything = np.concatenate(columns)
    low, high = everything.min(), max(np.quantile(values, CALLS_IT_NOISE) for values in columns)
    high = high if high > low else low * 1.01 + 1e-9
    wide = high > 5 * low
    bins = max(LEAST_BINS, min(MOST_BINS, everything.size // len(columns) // 2))
    edges = np.geomspace(low, high, bins + 1) if wide else np.linspace(low, high, bins + 1)
    for i, values in enumerate(columns):
        counts, _ = np.histogram(values, edges)
        axes.stairs(counts / values.size, edges, color=_colour(i), ls=LINES[i % len(LINES)], lw=1.4, gid=f"histogram-{i}")
        axes.stairs(counts / values.size, edges, color=_colour(i), alpha=0.12, fill=True)
    if wide:
        axes.set_xscale("log")
    beyond = int((everything > high).sum())
    return f"Histogram ({beyond} slower run{'s' if beyond > 1 else ''} not shown)" if beyond else "Histogram"


def _in_order(axes: Any, m: Measurement, i: int) -> dict[str, str]:
    """Runs as they were taken; outliers keep their height and get a cross."""
    if not m.samples_ns:
        return {}
    values = np.asarray(m.samples_ns, np.float64) / 1e6
    numbers = np.arange(1, values.size + 1)
    far = values > outer_fence_ns(np.sort(values))
    axes.plot(
        numbers[~far], values[~far], ls="", marker=MARKERS[i % len(MARKERS)], ms=4.5 if values.size < 100 else 2.6,
        color=_colour(i), alpha=0.65, markeredgewidth=0, gid=f"order-{i}",
    )  # fmt: skip
    if far.any():
        axes.plot(numbers[far], values[far], ls="", marker="x", ms=6, mew=1.4, color=_colour(i), gid=f"outliers-{i}")
    return {f"outliers-{i}": f"{int(far.sum())} outliers of {m.label}"}


def _finish(nines: Any, shape: Any, order: Any, setups: Sequence[Measurement]) -> None:
    most = max(sorted_ns(m).size for m in setups)
    ticks = [1, 2, 10, 100, 1_000, 10_000, 100_000]
    ticks = [tick for tick in ticks if tick <= 2 * most]
    nines.set_xscale("log")
    nines.set_xticks(ticks, [_percent(tick) for tick in ticks])
    nines.minorticks_off()
    nines.set(xlabel="percentile", ylabel="ms", title="Percentiles")
    shape.set(xlabel="ms", ylabel="share of runs")
    shape.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    order.locator_params(axis="x", integer=True)
    order.set(xlabel="run", ylabel="ms", title="In the order of measuring; crosses are outliers")
    spread = [sorted_ns(m) / 1e6 for m in setups]
    for axes in (nines, order):
        if max(v.max() for v in spread) > 8 * min(v.min() for v in spread):
            axes.set_yscale("log")
        axis = axes.yaxis
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(_few_labels(axis))
    shape.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    shape.xaxis.set_minor_formatter(_few_labels(shape.xaxis))
    for i, m in enumerate(setups):
        nines.plot([], [], color=_colour(i), ls=LINES[i % len(LINES)], marker=MARKERS[i % len(MARKERS)], ms=4, label=m.label)


def _few_labels(axis: Any) -> Any:
    """On a scale of less than two decades the powers of ten are not enough to read it by."""

    def text(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        mantissa = round(value / 10 ** np.floor(np.log10(value))) if value > 0 else 0
        return f"{value:g}" if high < 100 * low and mantissa in (2, 5) else ""

    return text


def _percent(one_of: int) -> str:
    """
    >>> _percent(1), _percent(2), _percent(1000)
    ('0', '50%', '99.9%')
    """
    return "0" if one_of == 1 else f"{100 - 100 / one_of:.6g}%"


def _colour(i: int) -> str:
    return SERIES[i % len(SERIES)]


REPORTS = [Report(name="latency", title="Distribution of run times", render=render)]
PARTS = [Part(name="latency", title="Run times", order=20, render=part)]
