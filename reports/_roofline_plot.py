"""The drawing of rooflines: kernels of a run, and models, as points under the measured roofs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Inside, Measurement, Run
from xyntra_reports._figure import INK, MARKERS, MUTED, PAPER, SERIES, figure, png, si, svg
from xyntra_reports._kernels import KIND_ORDER, Group, Roofs, groups, profiled, roofs_for, shortened
from xyntra_reports._markdown import cases_of
from xyntra_reports.registry import Picture

Spot = tuple[float, float]
NAMED = 6  # kernels that the plot names
LEADER = {"arrowstyle": "-", "lw": 0.6, "color": MUTED}
NAME_SIZE = 8.5  # of letters, in 1/72 inch
ROOM = 14.0  # on the screen, between a name and a point
SMALLEST, LARGEST = 24.0, 420.0  # areas of points


def picture(case: CaseResult, m: Measurement, inside: Inside, roofs: Roofs, number: int = 0) -> Picture:
    found = [g for g in groups(inside, roofs) if g.flops]
    with figure(9.6, 5.0) as fig:
        axes = fig.add_axes((0.075, 0.115, 0.535, 0.79))
        x_range, y_top = _limits(found, roofs)
        low = min([g.gflops for g in found] + [roofs.peak("fp32") / 100]) / 2
        axes.set(xscale="log", yscale="log", xlim=x_range, ylim=(low, y_top))
        peaks = _peaks(roofs, {g.precision for g in found})
        names = _roofs(axes, roofs, x_range, peaks, [(g.intensity, g.gflops) for g in found])
        titles = _points(axes, found, inside)
        titles |= _model(axes, found, inside)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: si(value))
            axis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel("flop / byte")
        axes.set_ylabel("GFLOP/s")
        threads = f"{case.threads} thread{'s' if case.threads > 1 else ''}"
        axes.set_title(f"{case.model} {case.shape}, {threads}: {m.label}")
        _names(fig, axes, found, inside, names)
        name = f"roofline-{case.model}-{case.shape}-t{case.threads}-{number}"
        alt = f"Roofline of {case.model} {case.shape} with {threads}, {m.label}; the table of kernels has the same in numbers"
        return Picture(name=name, alt=alt, svg=svg(fig, titles), png=png(fig))


def overview(run: Run, threads: int) -> Picture | None:
    """Every model as a column of points, one for each contender: the work of a run over the time it took it. The work is that
    of XyntraEP's kernels in fp32 where it ran so, and counts alike for all."""
    roofs = roofs_for(run, threads)
    models = [found for case in cases_of(run, Scenario.SINGLE_STREAM) if case.threads == threads and (found := _work(case))]
    if not roofs or not models:
        return None
    labels = list(dict.fromkeys(m.label for case, _, _ in models for m in _on_cpu(case)))
    with figure(9.6, 5.4) as fig:
        axes = fig.add_axes((0.075, 0.11, 0.60, 0.80))
        points = [(flops / moved, flops / _p50_ns(m)) for case, flops, moved in models for m in _on_cpu(case)]
        precisions = {m.contender.precision for case, _, _ in models for m in _on_cpu(case)}
        top = max(map(roofs.peak, precisions))
        intensities = [x for x, _ in points]
        x_range = (min(*intensities, 0.5) / 2, max(*intensities, top / roofs.memory_gbs) * 2)
        low = min([y for _, y in points] + [roofs.peak("fp32") / 30]) / 2
        axes.set(xscale="log", yscale="log", xlim=x_range, ylim=(low, top * 3))
        peaks = _peaks(roofs, precisions)
        names = _roofs(axes, roofs, x_range, peaks, points)
        titles = {}
        fig.text(0.70, 0.91, "Models", fontsize=9.5, weight="bold", va="top")
        placed = [*map(axes.transData.transform, points), *names]
        for i, (case, flops, moved) in enumerate(models):
            x, heights = flops / moved, [flops / _p50_ns(m) for m in _on_cpu(case)]
            axes.plot([x, x], [min(heights), max(heights)], color=MUTED, lw=0.7, zorder=2)
            for m, y in zip(_on_cpu(case), heights, strict=True):
                k, gid = labels.index(m.label), f"model-{i}-{labels.index(m.label)}"
                axes.scatter(
                    [x], [y], s=42, color=SERIES[k % len(SERIES)], marker=MARKERS[k % len(MARKERS)], edgecolors=PAPER,
                    linewidths=0.7, zorder=3, gid=gid,
                )  # fmt: skip
                titles[gid] = f"{case.model} {case.shape}, {m.label}: {y:.3g} GFLOP/s"
            at = (x, max(heights))
            axes.annotate(
                str(i + 1), at, _free_side(axes, at, placed), textcoords="offset points", fontsize=9, weight="bold", ha="center",
                va="center", color=INK, zorder=6, arrowprops=LEADER,
            )  # fmt: skip
            y = 0.865 - 0.036 * i
            fig.text(0.70, y, str(i + 1), fontsize=8.5, weight="bold", va="top")
            fig.text(0.73, y, shortened(f"{case.model} {case.shape}", 34), fontsize=8.5, va="top")
        for k, label in enumerate(labels):
            bottom = 0.05 + 0.036 * (len(labels) - k)
            fig.add_artist(_marker(0.705, bottom, MARKERS[k % len(MARKERS)], SERIES[k % len(SERIES)]))
            fig.text(0.73, bottom, shortened(label, 34), fontsize=8.5, va="center")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(lambda value, _: si(value))
            axis.set_minor_formatter(lambda value, _: "")
        axes.set_xlabel("flop / byte")
        axes.set_ylabel("GFLOP/s")
        counted = f"{threads} thread{'s' if threads > 1 else ''}"
        axes.set_title(f"Whole runs with {counted}")
        alt = f"{len(models)} models under the roofs of the machine with {counted}"
        return Picture(name=f"roofline-models-t{threads}", alt=alt, svg=svg(fig, titles), png=png(fig))


def _on_cpu(case: CaseResult) -> list[Measurement]:
    """Those that were measured there: the roofs of a device are others."""
    return [m for m in case.measurements if m.latency and m.device_ns is None]


def _p50_ns(m: Measurement) -> int:
    assert m.latency
    return m.latency.p50_ns


def _work(case: CaseResult) -> tuple[CaseResult, int, int] | None:
    """Operations and bytes of a run; None where no contender told them."""
    told = sorted(
        (found for found in profiled(case) if not found[1].device), key=lambda found: found[0].contender.precision != "fp32"
    )
    if not told:
        return None
    kernels = told[0][1].kernels
    flops, moved = sum(k.flops for k in kernels), sum(k.bytes for k in kernels)
    return (case, flops, moved) if flops and moved else None


def _limits(found: Sequence[Group], roofs: Roofs) -> tuple[tuple[float, float], float]:
    intensities = [g.intensity for g in found] or [1.0]
    top = max(roofs.peak(g.precision) for g in found) if found else roofs.peak("fp32")
    ridge = top / roofs.memory_gbs
    return (min(*intensities, 0.25) / 2, max(*intensities, ridge, 16.0) * 2), top * 3


def _peaks(roofs: Roofs, precisions: set[str]) -> list[tuple[str, float]]:
    """Of fp32, and of what products are computed in where that is faster."""
    faster = [name for name in roofs.peaks if name in precisions and roofs.peaks[name] > roofs.peak("fp32")]
    return [("fp32", roofs.peak("fp32")), *((name, roofs.peaks[name]) for name in faster)]


def _roofs(
    axes: Any, roofs: Roofs, x_range: tuple[float, float], peaks: Sequence[tuple[str, float]], points: Sequence[Spot]
) -> list[Spot]:
    """Bandwidths rise until they meet the highest peak; each line is named where the points leave room. Returns the spots that
    the names cover, on the screen."""
    top = max(rate for _, rate in peaks)
    for i, (name, gbs, _) in enumerate(reversed(roofs.levels)):
        end = min(top / gbs, x_range[1])
        axes.plot(
            [x_range[0], end],
            [x_range[0] * gbs, end * gbs],
            color=MUTED,
            lw=1.1,
            ls=("-", "--", "-.", ":")[i],
            gid=f"roof-{name}",
        )
    shown = [axes.transData.transform(point) for point in points]
    covered = _name_levels(axes, roofs, x_range, top, shown)
    lowest = max(rate for _, rate, _ in roofs.levels)
    for name, rate in peaks:
        left = max(rate / lowest, x_range[0])
        axes.plot([left, x_range[1]], [rate, rate], color=INK, lw=1.3, gid=f"roof-{name}")
        up = 3 if rate == top else -4  # below another peak, points stand above the line
        text = f"{name} {si(rate)} GFLOP/s"
        ends = [x_range[1] * (left / x_range[1]) ** (step / 6) for step in range(5)]
        x, spots = _roomiest(axes, [(end, rate) for end in ends], (-1.0, 0.0), 3 * up, len(text), [*shown, *covered])
        axes.annotate(
            text, (x, rate), (-2, up), textcoords="offset points", ha="right", va="bottom" if up > 0 else "top", color=INK,
            fontsize=NAME_SIZE,
        )  # fmt: skip
        covered += spots
    return covered


def _name_levels(axes: Any, roofs: Roofs, x_range: tuple[float, float], top: float, shown: Sequence[Spot]) -> list[Spot]:
    """Along the lines, at the left ends if there is room; equal ones share a name."""
    origin, along = (axes.transData.transform(point) for point in ((1.0, 1.0), (10.0, 10.0)))
    turn = math.atan2(along[1] - origin[1], along[0] - origin[0])
    off = (-2 * math.sin(turn), 2 * math.cos(turn))
    merged: list[tuple[list[str], float]] = []
    for name, gbs, _ in roofs.levels:
        if merged and merged[-1][1] / gbs < 1.25:
            merged[-1][0].append(name)
        else:
            merged.append(([name], gbs))
    covered: list[Spot] = []
    for names, gbs in merged:
        text = f"{', '.join(names)} {gbs:.0f} GB/s"
        first, last = max(x_range[0], axes.get_ylim()[0] / gbs) * 1.12, min(top / gbs, x_range[1])
        starts = [first * (last / first) ** (step / 8) for step in range(6)]
        ahead = (math.cos(turn), math.sin(turn))
        x, spots = _roomiest(axes, [(x, x * gbs) for x in starts], ahead, 6, len(text), [*shown, *covered])
        axes.annotate(
            text, (x, x * gbs), off, textcoords="offset points", color=MUTED, fontsize=NAME_SIZE - 0.5,
            rotation=math.degrees(turn), rotation_mode="anchor", va="bottom",
        )  # fmt: skip
        covered += spots
    return covered


def _roomiest(
    axes: Any, anchors: Sequence[Spot], ahead: Spot, aside: float, letters: int, taken: Sequence[Spot]
) -> tuple[float, list[Spot]]:
    """The x of the first anchor from which a name keeps `ROOM` from what is there, else of the one that keeps most; and the
    spots that the name covers. It runs in the direction `ahead`, `aside` to its left, in 1/72 inch."""
    scale = axes.figure.dpi / 72

    def spots(anchor: Spot) -> list[Spot]:
        at = axes.transData.transform(anchor)
        reach = [step * NAME_SIZE * scale for step in range(round(0.55 * letters) + 1)]
        turned = aside * scale * (1 if ahead[0] > 0 else -1)
        return [(at[0] + ahead[0] * r - ahead[1] * turned, at[1] + ahead[1] * r + ahead[0] * turned) for r in reach]

    def room(anchor: Spot) -> float:
        return min((math.dist(spot, other) for spot in spots(anchor) for other in taken), default=ROOM)

    chosen = max(anchors, key=lambda anchor: min(room(anchor), ROOM))  # the first of equals
    return chosen[0], spots(chosen)


def _points(axes: Any, found: Sequence[Group], inside: Inside) -> dict[str, str]:
    titles = {}
    for i, g in enumerate(found):
        kind = KIND_ORDER.index(g.kind)
        share = g.ns / max(inside.run_ns, 1)
        axes.scatter(
            [g.intensity],
            [g.gflops],
            s=SMALLEST + LARGEST * share,
            color=SERIES[kind % len(SERIES)],
            marker=MARKERS[kind % len(MARKERS)],
            alpha=0.85,
            edgecolors=PAPER,
            linewidths=0.8,
            zorder=3,
            gid=f"kernel-{i}",
        )
        roofed = "" if g.of_roof is None else f", {g.of_roof:.0%} of its roof ({g.bound})"
        titles[f"kernel-{i}"] = (
            f"{', '.join(g.nodes) or g.name}: {g.ops}; {g.variant}; {share:.1%} of the run, {g.gflops:.3g} GFLOP/s{roofed}"
        )
    return titles


def _model(axes: Any, found: Sequence[Group], inside: Inside) -> dict[str, str]:
    """All the work of the run over all of its time."""
    flops, moved = sum(g.flops for g in found), sum(g.bytes for g in found)
    if not flops or not moved:
        return {}
    gflops = flops / max(inside.run_ns, 1)
    axes.scatter([flops / moved], [gflops], s=150, marker="*", color=INK, edgecolors=PAPER, linewidths=0.8, zorder=4, gid="model")
    return {"model": f"the whole run: {gflops:.3g} GFLOP/s"}


def _names(fig: Any, axes: Any, found: Sequence[Group], inside: Inside, taken: Sequence[Spot]) -> None:
    """Numbers at the hottest points, and beside the plot what they are; below, what the markers mean."""
    placed = [axes.transData.transform((g.intensity, g.gflops)) for g in found]  # what a number must not cover
    placed += taken
    y = 0.90
    fig.text(0.635, y, "Hottest kernels", fontsize=9.5, weight="bold", va="top")
    for number, g in enumerate(found[:NAMED], start=1):
        at = (g.intensity, g.gflops)
        axes.annotate(
            str(number), at, _free_side(axes, at, placed), textcoords="offset points", fontsize=9, weight="bold",
            ha="center", va="center", color=INK, zorder=6, arrowprops=LEADER,
        )  # fmt: skip
        y -= 0.036 if number == 1 else 0.0
        y -= 0.018
        roofed = "" if g.of_roof is None else f", {g.of_roof:.0%} of {g.bound} roof"
        fig.text(0.635, y, str(number), fontsize=9, weight="bold", va="top")
        fig.text(0.66, y, shortened(g.name, 48), fontsize=8.2, va="top")
        fig.text(0.66, y - 0.034, f"{shortened(g.ops, 46)}", fontsize=7.6, va="top", color=MUTED)
        fig.text(0.66, y - 0.066, f"{g.ns / max(inside.run_ns, 1):.0%} of the run{roofed}", fontsize=7.6, va="top", color=MUTED)
        y -= 0.092
    for i, (kind, marker, colour) in enumerate(_legend(found)):
        left, bottom = 0.645 + 0.12 * (i % 3), 0.135 - 0.04 * (i // 3)
        fig.add_artist(_marker(left, bottom, marker, colour))
        fig.text(left + 0.012, bottom, kind, fontsize=8, va="center")


def _legend(found: Sequence[Group]) -> Iterator[tuple[str, str, str]]:
    present = {g.kind for g in found}
    for i, kind in enumerate(KIND_ORDER):
        if kind in present:
            yield kind, MARKERS[i % len(MARKERS)], SERIES[i % len(SERIES)]
    yield "whole run", "*", INK


def _marker(x: float, y: float, marker: str, colour: str) -> Any:
    from matplotlib.lines import Line2D

    return Line2D([x], [y], marker=marker, color=colour, markersize=6, linestyle="")


def _free_side(axes: Any, point: tuple[float, float], placed: list[Any]) -> tuple[float, float]:
    """Where round a point its number stands furthest from other points and numbers, as an offset in 1/72 inch."""
    at = axes.transData.transform(point)
    offsets = [(r * math.cos(turn * math.pi / 6), r * math.sin(turn * math.pi / 6)) for r in (17, 26) for turn in range(12)]
    scale = axes.figure.dpi / 72

    def room(offset: tuple[float, float]) -> float:
        spot = (at[0] + offset[0] * scale, at[1] + offset[1] * scale)
        return min(min(math.dist(spot, other) for other in placed), 16.0)

    chosen = max(offsets, key=room)  # the first of equals: the nearest
    placed.append((at[0] + chosen[0] * scale, at[1] + chosen[1] * scale))
    return chosen
