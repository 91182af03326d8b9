"""Searches: which points of a space to try next, by what those before took.

    search = GaussianProcess(space, seeds=[default])      or Random(space), Exhaustive(space)
    for point in search.ask(4): search.tell(point, nanoseconds)       None: the point failed

A search proposes no point twice, and none when all have been tried.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.optimizer.space import Point, SearchSpace, key_of

_NEEDS = "skopt"  # scikit-optimize: the package's extra `tune`
_FAILED = math.log(2.0)  # above the worst that did not fail: a wrong kernel's neighbours are not what to try
_XI = 0.01  # of expected improvement, in logarithms: a percent is worth a trial


class Search:
    """``seeds`` are proposed first; those that may not be tried are left out."""

    def __init__(self, space: SearchSpace, *, seeds: Sequence[Point] = (), seed: int = 0) -> None:
        self.space = space
        self.tried: dict[tuple[Any, ...], float | None] = {}
        self._points = {key_of(p): p for p in [*(s for s in seeds if not space.refusal(s)), *space.points(seed=seed)]}
        self._seeds = [key_of(s) for s in seeds if key_of(s) in self._points]
        self._asked: set[tuple[Any, ...]] = set()
        self._rng = random.Random(seed)

    @property
    def left(self) -> int:
        """How many points have not been proposed."""
        return len(self._points) - len(self._asked)

    def ask(self, count: int) -> list[Point]:
        """The next points, fewer where there are no more."""
        chosen = [key for key in self._seeds if key not in self._asked][:count]
        self._asked.update(chosen)
        if len(chosen) < count:
            more = self._choose(count - len(chosen), [key for key in self._points if key not in self._asked])
            self._asked.update(more)
            chosen += more
        return [self._points[key] for key in chosen]

    def tell(self, point: Point, cost: float | None) -> None:
        """What a point took, in any unit; None where it failed. Points that were not asked for count, too."""
        key = key_of(point)
        self._asked.add(key)
        self._points.setdefault(key, point)
        self.tried[key] = cost

    def ranked(self) -> list[tuple[Point, float]]:
        """The points that did not fail, the cheapest first."""
        done = [(cost, i, key) for i, (key, cost) in enumerate(self.tried.items()) if cost is not None]
        return [(self._points[key], cost) for cost, _, key in sorted(done)]

    @property
    def best(self) -> tuple[Point, float] | None:
        """The cheapest of the points that did not fail."""
        return next(iter(self.ranked()), None)

    def _choose(self, count: int, left: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        raise NotImplementedError


class Exhaustive(Search):
    """All points, in order."""

    def _choose(self, count: int, left: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return left[:count]


class Random(Search):
    """The baseline."""

    def _choose(self, count: int, left: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return self._rng.sample(left, min(count, len(left)))


class GaussianProcess(Search):
    """Bayesian optimisation: a Gaussian process (Matern 5/2, anisotropic, with noise) over the logarithm of cost, and of the
    points that are left the one with the largest expected improvement (Jones, Schonlau, Welch 1998). Further points of a batch
    are chosen as if the first had taken what the process expects (the "kriging believer" of Ginsbourger, Le Riche, Carraro 2010).

    The process and the acquisition function are scikit-optimize's; its `Optimizer` is not used, because it proposes points again
    and knows no constraints between dimensions of which all points can be listed.
    """

    def __init__(self, space: SearchSpace, *, seeds: Sequence[Point] = (), seed: int = 0, first: int = 4) -> None:
        """``first``: so many random points come before the process. Raises UnsupportedError without scikit-optimize."""
        if find_spec(_NEEDS) is None:
            raise UnsupportedError("the search needs scikit-optimize", where="tune", hint="pip install 'xyntra-ep[tune]'")
        super().__init__(space, seeds=seeds, seed=seed)
        self._first = first
        self._seed = seed

    def _choose(self, count: int, left: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        done = [cost for cost in self.tried.values() if cost is not None]
        if len(self.tried) < self._first or len(done) < 2:
            return self._rng.sample(left, min(count, len(left)))
        worst = math.log(max(done)) + _FAILED
        known = [np.array(self.space.coordinates(self._points[key])) for key in self.tried]
        costs = [worst if cost is None else math.log(cost) for cost in self.tried.values()]
        open_ = {key: np.array(self.space.coordinates(self._points[key])) for key in left}
        chosen: list[tuple[Any, ...]] = []
        model = self._fitted(np.array(known), np.array(costs))
        while open_ and len(chosen) < count:
            at = np.array(list(open_.values()))
            gain = _expected_improvement(at, model, min(costs))
            key = list(open_)[int(np.argmax(gain))]
            chosen.append(key)
            place = open_.pop(key)
            known.append(place)
            costs.append(float(model.predict(place[None])[0]))
            if len(chosen) < count:
                model = self._fitted(np.array(known), np.array(costs), model)
        return chosen

    def _fitted(self, at: Any, costs: Any, like: Any = None) -> Any:
        """The process through these points; ``like``: with the length scales of one that was fitted, which takes the time."""
        from skopt.learning import GaussianProcessRegressor
        from skopt.learning.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        if like is None:
            scales = np.ones(at.shape[1])
            kernel = ConstantKernel(1.0, (0.01, 1000.0)) * Matern(
                length_scale=scales, length_scale_bounds=[(0.05, 20.0)] * len(scales), nu=2.5
            ) + WhiteKernel(1e-3, (1e-6, 0.1))
            model = GaussianProcessRegressor(kernel=kernel, normalize_y=True, n_restarts_optimizer=1, random_state=self._seed)
        else:
            model = GaussianProcessRegressor(kernel=like.kernel_, normalize_y=True, optimizer=None, random_state=self._seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of length scales at their bounds: a dimension that does not matter has none
            model.fit(at, costs)
        return model


def _expected_improvement(at: Any, model: Any, best: float) -> Any:
    from skopt.acquisition import gaussian_ei

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gaussian_ei(at, model, y_opt=best, xi=_XI)
