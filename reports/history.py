"""Earlier runs beside the latest: the trend of each case, and the revisions at which it changed.

It compares speed-ups over the CPU provider of the same run, not times, so the state of the machine cancels out. Runs on other
processors, quick runs and other versions of ONNX Runtime are histories of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from xyntra_bench.plan import Scenario
from xyntra_bench.results import Run
from xyntra_reports._figure import LINES, MARKERS, MUTED, SERIES, figure, png, svg
from xyntra_reports._markdown import table
from xyntra_reports.registry import Picture

MIN_EFFECT = 0.02  # smaller steps are not worth a word
LEAST_SIGMA = 0.01  # of one run's ratio: what intervals do not know of, as where memory fell
# A step pays when it explains more than chance does: the 99 % point of chi-squared with one degree of freedom, and 2 ln n
# for the places where it might be (Yao, "Estimating the number of change-points via Schwarz' criterion", 1988).
STEP_COST = 6.63
Z95 = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run's speed-up of one contender in one case, with its 95 % interval."""

    started: str
    revision: str
    ratio: float
    low: float
    high: float
    p50_ns: int

    @property
    def when(self) -> str:
        return self.revision[:8] or self.started[:10]

    @property
    def sigma(self) -> float:
        """Of the logarithm."""
        width = math.log(self.high / self.low) if 0 < self.low < self.high else 0.0
        return max(width / (2 * Z95), LEAST_SIGMA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """`steps`: the positions of points with which a new level begins."""

    case: str
    label: str
    points: tuple[Point, ...]
    steps: tuple[int, ...]

    @property
    def changes(self) -> list[tuple[Point, float]]:
        """At which run, and by what factor the speed-up changed."""
        bounds = [0, *self.steps, len(self.points)]
        means = [math.exp(_mean(self.points[a:b])) for a, b in pairwise(bounds)]
        return [(self.points[at], means[i + 1] / means[i]) for i, at in enumerate(self.steps)]


Key = tuple[str, str, str]  # what belongs to one history: model, case, contender


def trends(runs: Sequence[Run], like: Run) -> Mapping[str, list[Trend]]:
    """By model, the trends over the runs made as `like` was, where there are at least two."""
    found: dict[Key, list[Point]] = {}
    for run in runs:
        if _conditions(run) == _conditions(like):
            for key, point in _points(run):
                found.setdefault(key, []).append(point)
    by_model: dict[str, list[Trend]] = {}
    for (model, case, label), points in found.items():
        if len(points) > 1:
            trend = Trend(case=case, label=label, points=tuple(points), steps=steps(points))
            by_model.setdefault(model, []).append(trend)
    return by_model


def _conditions(run: Run) -> tuple[object, ...]:
    return run.environment.cpu, run.target, run.quick, run.environment.packages.get("onnxruntime")


def _points(run: Run) -> Iterator[tuple[Key, Point]]:
    for case in run.cases:
        if case.scenario is not Scenario.SINGLE_STREAM:
            continue
        for m in case.contenders:
            if m.ratio and m.latency:
                yield (
                    (case.model, f"{case.shape} t{case.threads}", m.label),
                    Point(
                        started=run.started,
                        revision=run.environment.git_revision,
                        ratio=m.ratio.middle,
                        low=m.ratio.low,
                        high=m.ratio.high,
                        p50_ns=m.latency.p50_ns,
                    ),
                )


def steps(points: Sequence[Point]) -> tuple[int, ...]:
    """Where a new level begins: the division into levels whose deviations, in standard deviations, and steps cost least.

    Exact, by dynamic programming over where the last level begins. A step below the minimum effect is no step.
    """
    n = len(points)
    cost = STEP_COST + 2 * math.log(max(n, 1))
    best, last = [-cost], [0]
    for end in range(1, n + 1):
        options = [(best[start] + cost + _deviation(points[start:end]), start) for start in range(end)]
        value, start = min(options)
        best.append(value)
        last.append(start)
    found = []
    end = n
    while end > 0:
        end = last[end]
        if end > 0:
            found.append(end)
    return _worth_a_word(points, found[::-1])


def _worth_a_word(points: Sequence[Point], found: list[int]) -> tuple[int, ...]:
    while True:
        bounds = [0, *found, len(points)]
        means = [_mean(points[a:b]) for a, b in pairwise(bounds)]
        sizes = [abs(after - before) for before, after in pairwise(means)]
        if not sizes or min(sizes) >= math.log1p(MIN_EFFECT):
            return tuple(found)
        del found[sizes.index(min(sizes))]


def _mean(points: Sequence[Point]) -> float:
    """Of the logarithms, weighted by how sure they are."""
    weights = [p.sigma**-2 for p in points]
    return sum(w * math.log(p.ratio) for w, p in zip(weights, points, strict=True)) / sum(weights)


def _deviation(points: Sequence[Point]) -> float:
    mean = _mean(points)
    return sum(((math.log(p.ratio) - mean) / p.sigma) ** 2 for p in points)


# --------------------------------------------------------------------------------------------------- table and plot


def changes_table(found: Sequence[Trend]) -> str:
    """The latest value of each trend, and what it did before."""
    rows = []
    for trend in found:
        latest, first = trend.points[-1], trend.points[0]
        told = ", ".join(f"{factor:.2f}x at {point.when}" for point, factor in trend.changes) or "none"
        rows.append([trend.case, trend.label, str(len(trend.points)), f"{first.ratio:.2f}x", f"{latest.ratio:.2f}x", told])
    note = (
        "Speed-ups over the CPU provider in the same run, with their 95 % intervals, of runs on the same processor with the same "
        "ONNX Runtime. A step, which the plot rings, is a change that chance does not explain and that is above 2 %."
    )
    return f"{table(('case', 'provider', 'runs', 'first', 'latest', 'steps'), rows, left=2)}\n\n{note}"


def picture(case: str, found: Sequence[Trend]) -> Picture:
    """Speed-ups of a case's contenders over its runs; where a level begins there is a ring."""
    shown = list(found)
    names = list(dict.fromkeys((p.started, p.when) for trend in shown for p in trend.points))
    names.sort()
    position = {started: i for i, (started, _) in enumerate(names)}
    with figure(9.6, 3.6 + 0.22 * -(-len(shown) // 2)) as fig:
        legend = 0.22 * -(-len(shown) // 2) / fig.get_figheight()
        axes = fig.add_axes((0.075, 0.14, 0.905, 0.72 - legend))
        for i, trend in enumerate(shown):
            _trend(axes, trend, position, i + 1)  # the first colour is the CPU provider's, as in the other plots
        axes.axhline(1.0, color=MUTED, lw=0.8)
        axes.set_xticks(range(len(names)), [when for _, when in names])
        axes.set_ylabel("speed-up over the CPU provider")
        axes.set_xlabel("revision")
        fig.text(0.02, 0.975, f"History of {case}; rings are steps", weight="bold", fontsize=11, va="top")
        fig.legend(loc="upper left", bbox_to_anchor=(0.012, 0.93), ncols=2, fontsize=8.5)
        alt = f"Speed-up of {case} over {len(names)} stored runs"
        return Picture(name=f"history-{case}", alt=alt, svg=svg(fig), png=png(fig))


def _trend(axes: Any, trend: Trend, position: Mapping[str, int], i: int) -> None:
    colour, x = SERIES[i % len(SERIES)], [position[p.started] for p in trend.points]
    y = [p.ratio for p in trend.points]
    around = [[max(p.ratio - p.low, 0) for p in trend.points], [max(p.high - p.ratio, 0) for p in trend.points]]
    axes.errorbar(
        x, y, yerr=around, color=colour, ls=LINES[i // len(SERIES) % len(LINES)], marker=MARKERS[i % len(MARKERS)], ms=5, lw=1.4,
        capsize=2, label=trend.label,
    )  # fmt: skip
    at = list(trend.steps)
    axes.scatter(
        [x[k] for k in at], [y[k] for k in at], s=170, facecolors="none", edgecolors=colour, linewidths=1.5, gid=f"steps-{i}"
    )
