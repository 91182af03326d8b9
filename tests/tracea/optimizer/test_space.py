"""Spaces know all points that may be tried, and no others."""

from __future__ import annotations

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea import Categorical, Integer, Real, SearchSpace
from xyntra_ep.tracea.optimizer.space import ListedSpace, Point


def test_the_words_and_the_types_say_the_same() -> None:
    words = SearchSpace().tile_m([64, 128]).stages([2, 3])
    typed = SearchSpace({"tile_m": Categorical((64, 128)), "stages": Categorical((2, 3))})
    assert words.dimensions == typed.dimensions and words.points() == typed.points()
    assert SearchSpace().unroll(Integer(1, 3)).points() == [{"unroll": 1}, {"unroll": 2}, {"unroll": 3}]


def test_constraints_leave_points_out_and_say_why() -> None:
    space = SearchSpace().m([64, 128]).n([64, 128]).where(lambda p: p["m"] * p["n"] <= 8192, "shared memory")  # type: ignore[operator]
    assert {"m": 128, "n": 128} not in space.points() and len(space.points()) == 3
    assert space.refusal({"m": 128, "n": 128}) == "shared memory" and space.refusal({"m": 64, "n": 128}) == ""
    assert space.refusal({"m": 64}) == "it wants m, n"
    assert space.refusal({"m": 65, "n": 64}) == "m cannot be 65"


def test_of_a_space_with_real_numbers_there_is_a_sample() -> None:
    space = SearchSpace({"share": Real(0.1, 10.0, logarithmic=True), "kind": Categorical(("a", "b"))})
    points = space.points(200, seed=3)
    assert len(points) == 200 and points == space.points(200, seed=3) != space.points(200, seed=4)
    shares = [float(p["share"]) for p in points]
    assert all(0.1 <= share <= 10.0 for share in shares)
    assert 60 < sum(share < 1.0 for share in shares) < 140, "as many below the geometric middle as above"
    assert space.refusal({"share": 11.0, "kind": "a"}) == "share is from 0.1 to 10.0"


def test_a_large_space_is_sampled_without_repeats() -> None:
    space = SearchSpace().a(Integer(1, 300)).b(Integer(1, 300)).where(lambda p: p["a"] < p["b"], "ordered")  # type: ignore[operator]
    points = space.points(500)
    assert len({(p["a"], p["b"]) for p in points}) == 500
    assert all(not space.refusal(p) for p in points)


def test_coordinates_put_near_what_is_alike() -> None:
    space = SearchSpace({"tile": Categorical((16, 32, 256)), "kind": Categorical(("x", "y")), "n": Integer(0, 4)})
    a, b, c = (space.coordinates({"tile": tile, "kind": "x", "n": 2}) for tile in (16, 32, 256))
    assert a[0] == 0.0 and c[0] == 1.0 and b[0] - a[0] < c[0] - b[0]
    assert a[1:] == [1.0, 0.0, 0.5]
    assert SearchSpace().one([7]).coordinates({"one": 7}) == [0.0]


def test_a_dimension_needs_values() -> None:
    with pytest.raises(ConfigError, match="tile has no values"):
        SearchSpace().tile([])


def test_listed_points_have_the_axes_that_they_need() -> None:
    points: list[Point] = [{"kind": "a", "a.rows": 2}, {"kind": "a", "a.rows": 8}, {"kind": "b"}]
    space = ListedSpace({"kind": Categorical(("a", "b")), "a.rows": Categorical((2, 8))}, points)
    assert space.points() == points and space.points(2) == points[:2]
    odd: Point = {"kind": "b", "a.rows": 2}
    assert [bool(space.refusal(p)) for p in (*points, odd)] == [False, False, False, True]
    assert [space.coordinates(p) for p in points] == [[1, 0, 0], [1, 0, 1], [0, 1, 0]], "b is as near to 2 rows as can be"
