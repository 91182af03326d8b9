"""Search spaces: what a kernel may be made with, typed, and what must hold between its sizes.

    SearchSpace({"rows": Categorical((4, 6, 8)), "unroll": Integer(1, 4), "share": Real(0.1, 0.9)})
        .where(lambda p: p["rows"] % 2 == 0, "rows in pairs")
    SearchSpace().tile_m([64, 128]).tile_n([64, 128]).stages([2, 3])           the same in words, of categories

A point is a value for each name. Of a space without real numbers all points are known, so that a search proposes none twice and
none that a constraint refuses.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xyntra_ep.errors import ConfigError

Value = int | float | str
Point = Mapping[str, Value]
Predicate = Callable[[Point], object]
_MOST_POINTS = 4096  # that are looked at: of a larger space a sample
_TRIES = 20  # of a random point, for each that is wanted, where constraints refuse most


@dataclass(frozen=True, slots=True)
class Categorical:
    """One of ``values``. Numbers are near each other as their logarithms are; other values are all equally far apart."""

    values: tuple[Value, ...]

    def all(self) -> tuple[Value, ...] | None:
        return self.values

    def random(self, rng: random.Random) -> Value:
        return rng.choice(self.values)

    def coordinates(self, value: Value) -> list[float]:
        if all(isinstance(v, int | float) for v in self.values):
            low, high = (math.log2(1 + abs(float(v))) for v in (min(self.values, key=_size), max(self.values, key=_size)))
            return [(math.log2(1 + abs(float(value))) - low) / (high - low) if high > low else 0.0]
        return [float(value == v) for v in self.values]


def _size(value: Value) -> float:
    return abs(float(value))


@dataclass(frozen=True, slots=True)
class Integer:
    """From ``low`` to ``high``, both included."""

    low: int
    high: int

    def all(self) -> tuple[Value, ...] | None:
        return tuple(range(self.low, self.high + 1))

    def random(self, rng: random.Random) -> Value:
        return rng.randint(self.low, self.high)

    def coordinates(self, value: Value) -> list[float]:
        return [(float(value) - self.low) / max(1, self.high - self.low)]


@dataclass(frozen=True, slots=True)
class Real:
    """From ``low`` to ``high``; ``logarithmic``: as many near 1 as near 10 near 100."""

    low: float
    high: float
    logarithmic: bool = False

    def all(self) -> tuple[Value, ...] | None:
        return None

    def random(self, rng: random.Random) -> Value:
        return self._of(rng.random())

    def coordinates(self, value: Value) -> list[float]:
        low, high, at = (math.log(x) if self.logarithmic else x for x in (self.low, self.high, float(value)))
        return [(at - low) / (high - low) if high > low else 0.0]

    def _of(self, share: float) -> float:
        if self.logarithmic:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + (self.high - self.low) * share


Dimension = Categorical | Integer | Real


@dataclass(frozen=True, slots=True)
class Constraint:
    """``holds`` of a point that may be tried; ``what``: what it says, for people."""

    holds: Predicate
    what: str


class SearchSpace:
    """Dimensions by name, and constraints. Immutable: `where` and the names of dimensions give a new one.

    >>> space = SearchSpace().tile_m([64, 128]).stages([2, 3]).where(lambda p: p["tile_m"] * p["stages"] < 384, "shared memory")
    >>> [dict(point) for point in space.points()]
    [{'tile_m': 64, 'stages': 2}, {'tile_m': 64, 'stages': 3}, {'tile_m': 128, 'stages': 2}]
    """

    def __init__(self, dimensions: Mapping[str, Dimension] | None = None, constraints: Sequence[Constraint] = ()) -> None:
        """Raises ConfigError for a dimension without values."""
        self.dimensions = dict(dimensions or {})
        self.constraints = tuple(constraints)
        for name, dimension in self.dimensions.items():
            if (values := dimension.all()) is not None and not values:
                raise ConfigError(f"{name} has no values", where="SearchSpace", hint="give one at least")

    def __getattr__(self, name: str) -> Callable[[Sequence[Value] | Dimension], SearchSpace]:
        if name.startswith("_"):
            raise AttributeError(name)

        def extended(values: Sequence[Value] | Dimension) -> SearchSpace:
            dimension = values if isinstance(values, Dimension) else Categorical(tuple(values))
            return SearchSpace({**self.dimensions, name: dimension}, self.constraints)

        return extended

    def where(self, holds: Predicate, what: str) -> SearchSpace:
        """The same with one constraint more."""
        return SearchSpace(self.dimensions, (*self.constraints, Constraint(holds, what)))

    def refusal(self, point: Point) -> str:
        """What a point violates; empty for one that may be tried."""
        if point.keys() != self.dimensions.keys():
            return f"it wants {', '.join(self.dimensions) or 'nothing'}"
        for name, dimension in self.dimensions.items():
            if (values := dimension.all()) is not None and point[name] not in values:
                return f"{name} cannot be {point[name]}"
            if isinstance(dimension, Real) and not dimension.low <= float(point[name]) <= dimension.high:
                return f"{name} is from {dimension.low} to {dimension.high}"
        return next((c.what for c in self.constraints if not c.holds(point)), "")

    def points(self, most: int = _MOST_POINTS, seed: int = 0) -> list[Point]:
        """All points that may be tried, in order; of a space that has more than ``most``, or real numbers, a random sample."""
        every = [dimension.all() for dimension in self.dimensions.values()]
        known = [values for values in every if values is not None]
        if len(known) == len(every) and math.prod(map(len, known)) <= _MOST_POINTS:
            found = [p for p in self._product(known) if not self.refusal(p)]
            return found if len(found) <= most else random.Random(seed).sample(found, most)
        return list(itertools.islice(self._random(random.Random(seed), most * _TRIES), most))

    def _product(self, values: Sequence[Sequence[Value]]) -> Iterator[Point]:
        return (dict(zip(self.dimensions, chosen, strict=True)) for chosen in itertools.product(*values))

    def _random(self, rng: random.Random, tries: int) -> Iterator[Point]:
        seen: set[tuple[Value, ...]] = set()
        for _ in range(tries):
            point = {name: dimension.random(rng) for name, dimension in self.dimensions.items()}
            key = tuple(point.values())
            if key not in seen and not self.refusal(point):
                seen.add(key)
                yield point

    def coordinates(self, point: Point) -> list[float]:
        """Where a point lies, in numbers from 0 to 1: near points should make kernels of nearly the same speed."""
        return [x for name, dimension in self.dimensions.items() for x in dimension.coordinates(point[name])]

    def __repr__(self) -> str:
        constraints = "".join(f", {c.what}" for c in self.constraints)
        return f"SearchSpace({self.dimensions}{constraints})"


class ListedSpace(SearchSpace):
    """Points that are given, each with some of ``dimensions``: where it has none, it counts as at the first value."""

    def __init__(self, dimensions: Mapping[str, Categorical], points: Sequence[Point]) -> None:
        super().__init__(dimensions)
        self._points = list(points)
        self._defaults = {name: d.values[0] for name, d in dimensions.items()}

    def points(self, most: int = _MOST_POINTS, seed: int = 0) -> list[Point]:
        return self._points[:most]

    def refusal(self, point: Point) -> str:
        return "" if point in self._points else "it is not listed"

    def coordinates(self, point: Point) -> list[float]:
        return super().coordinates({**self._defaults, **point})


def key_of(point: Point) -> tuple[tuple[str, Any], ...]:
    """Equal for equal points."""
    return tuple(sorted(point.items()))
