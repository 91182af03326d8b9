"""Searches propose each point once; the Gaussian process finds the best of a smooth space sooner than chance does."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import pytest

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea import Integer, SearchSpace
from xyntra_ep.tracea.optimizer import search as search_module
from xyntra_ep.tracea.optimizer.interval import median_interval
from xyntra_ep.tracea.optimizer.search import Exhaustive, GaussianProcess, Random, Search
from xyntra_ep.tracea.optimizer.space import Point

GRID = SearchSpace().rows([4, 6, 8, 12, 16]).columns([16, 32, 48, 64]).unroll([1, 2, 4, 8]).threads(Integer(1, 4))


def valley(point: Point) -> float:
    """A cost with its least at rows 8, columns 48, unroll 4, and little of the fourth."""
    wanted = {"rows": 8, "columns": 48, "unroll": 4}
    return math.exp(sum(0.5 * math.log2(float(point[n]) / w) ** 2 for n, w in wanted.items())) + 0.01 * float(point["threads"])


@pytest.mark.parametrize("kind", [Exhaustive, Random, GaussianProcess])
def test_each_point_is_proposed_once_and_seeds_first(kind: Callable[..., Search]) -> None:
    space = SearchSpace().a([1, 2, 3]).b([1, 2, 3]).where(lambda p: p != {"a": 2, "b": 2}, "not there")
    seeds: list[Point] = [{"a": 3, "b": 1}, {"a": 2, "b": 2}]
    search = kind(space, seeds=seeds)
    seen: list[Point] = []
    while points := search.ask(2):
        for point in points:
            search.tell(point, float(point["a"]) + float(point["b"]))
        seen += points
    assert seen[0] == {"a": 3, "b": 1} and len(seen) == 8 and search.left == 0
    assert {tuple(p.items()) for p in seen} == {tuple(p.items()) for p in space.points()}
    assert search.best == ({"a": 1, "b": 1}, 2.0)


def test_what_is_told_is_not_proposed_again() -> None:
    search = Exhaustive(SearchSpace().a([1, 2, 3]))
    search.tell({"a": 2}, 5.0)
    assert search.ask(9) == [{"a": 1}, {"a": 3}] and search.ask(9) == []


def test_points_that_fail_are_never_the_best() -> None:
    search = GaussianProcess(GRID, seeds=[{"rows": 4, "columns": 16, "unroll": 1, "threads": 1}])
    for number in range(6):
        for point in search.ask(3):
            search.tell(point, None if number % 2 else valley(point))
    best = search.best
    assert best is not None and search.tried[tuple(sorted(best[0].items()))] is not None


def needed(kind: Callable[..., Search], seed: int) -> int:
    """Trials until a point within 2 % of the best."""
    search, best = kind(GRID, seed=seed), min(map(valley, GRID.points()))
    for count in range(4, 321, 4):
        for point in search.ask(4):
            search.tell(point, valley(point))
        assert search.best is not None
        if search.best[1] <= 1.02 * best:
            return count
    raise AssertionError("it is in the space")


def test_the_process_needs_fewer_trials_than_chance() -> None:
    by_process = [needed(GaussianProcess, seed) for seed in range(3)]
    by_chance = [needed(Random, seed) for seed in range(15)]
    assert statistics.median(by_process) <= 40 < statistics.median(by_chance)


def test_equal_seeds_give_equal_searches() -> None:
    def trail(seed: int) -> list[Point]:
        search = GaussianProcess(GRID, seed=seed)
        found: list[Point] = []
        for _ in range(3):
            points = search.ask(4)
            for point in points:
                search.tell(point, valley(point))
            found += points
        return found

    assert trail(1) == trail(1) != trail(2)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError, match=r"needs scikit-optimize. pip install 'xyntra-ep\[tune\]'"):
        GaussianProcess(GRID)


@pytest.mark.parametrize(("count", "left_out"), [(6, 0), (9, 1), (15, 3), (31, 9)])
def test_the_interval_of_a_median_is_that_of_the_tables(count: int, left_out: int) -> None:
    """Conover, Practical Nonparametric Statistics, table A3."""
    assert median_interval(list(range(count))) == (left_out, count - 1 - left_out)


def test_few_samples_say_nothing() -> None:
    assert median_interval([1.0] * 5) == (-math.inf, math.inf)
