from __future__ import annotations

import dataclasses
import random

import pytest

from xyntra_bench.results import Run
from xyntra_reports.history import Point, changes_table, picture, steps, trends


def points(*ratios: float, width: float = 0.01) -> list[Point]:
    return [
        Point(started=f"2026-01-{i:02}", revision=f"{i:012x}", ratio=r, low=r * (1 - width), high=r * (1 + width), p50_ns=1)
        for i, r in enumerate(ratios, start=1)
    ]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ((1.3,), ()),
        ((1.3, 1.31), ()),
        ((1.3, 1.0), (1,)),
        ((1.0, 1.01, 0.99, 1.2, 1.21, 1.19), (3,)),
        ((1.0, 1.0, 1.2, 1.2, 1.2, 0.9, 0.9), (2, 5)),
        ((1.2, 1.2, 0.7, 1.2, 1.2), (2, 3)),
    ],
)
def test_steps_are_where_the_level_changes(ratios: tuple[float, ...], expected: tuple[int, ...]) -> None:
    assert steps(points(*ratios)) == expected


def test_what_is_not_sure_is_no_step() -> None:
    assert steps(points(1.3, 1.0, width=0.01)) == (1,)
    assert steps(points(1.3, 1.0, width=0.4)) == ()


def test_a_step_below_the_minimum_effect_is_none_however_sure() -> None:
    ratios = [1.0] * 60 + [1.015] * 60
    assert steps(points(*ratios, width=0.001)) == ()


def test_noise_has_no_steps() -> None:
    rng = random.Random(0)
    found = [steps(points(*(1.2 * rng.gauss(1, 0.01) for _ in range(12)))) for _ in range(40)]
    assert sum(map(bool, found)) <= 2, "of 40 histories in which nothing happened"


@pytest.fixture
def earlier(run: Run) -> list[Run]:
    """Four runs; the last two are a quarter faster."""
    found = []
    for i, factor in enumerate((1.0, 1.0, 1.25, 1.25)):
        first, *rest = run.cases
        (m,) = first.contenders
        assert m.ratio is not None
        ratio = dataclasses.replace(m.ratio, middle=m.ratio.middle * factor, low=m.ratio.low * factor, high=m.ratio.high * factor)
        cases = (dataclasses.replace(first, contenders=(dataclasses.replace(m, ratio=ratio),)), *rest)
        environment = dataclasses.replace(run.environment, git_revision=f"{i}{'a' * 11}")
        found.append(dataclasses.replace(run, started=f"2026-05-0{i + 1}", cases=cases, environment=environment))
    return found


def test_the_history_of_a_model_names_the_revision_of_a_step(earlier: list[Run]) -> None:
    by_model = trends(earlier, earlier[-1])
    (trend,) = by_model["wins"]
    assert trend.steps == (2,) and trend.label == "XyntraEP" and trend.case == "b1 s128 t1"
    ((point, factor),) = trend.changes
    assert point.revision.startswith("2a") and factor == pytest.approx(1.25)
    told = changes_table(by_model["wins"])
    assert "1.25x at 2aaaaaaa" in told and "A step, which the plot rings, is" in told
    assert 'id="steps-1"' in picture("wins", by_model["wins"]).svg
    assert "wrong" not in by_model, "a result that is not accurate has no speed to follow"


def test_runs_made_otherwise_are_another_history(earlier: list[Run]) -> None:
    other = dataclasses.replace(earlier[0].environment, cpu="Another CPU")
    mixed = [dataclasses.replace(earlier[0], environment=other), dataclasses.replace(earlier[1], quick=False), *earlier[2:]]
    (trend,) = trends(mixed, earlier[-1])["wins"]
    assert len(trend.points) == 2 and trend.steps == ()
    assert trends(earlier[:1], earlier[0]) == {}, "one run is no history"
