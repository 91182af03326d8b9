"""Fits the learned cost model to stored runs of `bench run tune`, for `bench learn`, and judges it on what it has not seen.

Each kernel is judged by a model that was fitted to the other kernels (`unseen shape`), and where runs are of several instruction
sets by one that was fitted to all others' runs (`unseen machine`). The model that is written is fitted to everything.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from xyntra_bench.errors import BenchError
from xyntra_bench.tuning.learned_results import TOP, LearnedKernel, Ranking
from xyntra_bench.tuning.search_results import KIND_GP, NEAR, KernelSearch, SearchRun
from xyntra_bench.tuning.searches import SEEDS, rank_correlation, trails

SEEDED = 3  # configurations that a search takes from the ranking, before the process
# Few with large leaves: there are some thousand configurations, and of few kernels.
_TREES: Mapping[str, Any] = {"n_estimators": 20, "min_samples_leaf": 15, "max_features": 0.5, "random_state": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A kernel on a machine: its options that did not fail, and the logarithms of their times over the mean."""

    search: KernelSearch
    isa: str
    op: Any  # cost_model.OpFacts
    machine: Any  # cost_model.MachineFacts
    options: Sequence[Any]  # cost_model.Option
    times: Sequence[float]

    @property
    def estimates(self) -> list[float]:
        return [option.estimate_ns for option in self.options]


def learned(runs: Sequence[SearchRun], *, seeds: int = SEEDS) -> tuple[list[LearnedKernel], Any]:
    """What models are worth that have not seen a kernel, and the `CostModel` that has seen all. Raises BenchError where there is
    too little to learn from, or scikit-learn is missing."""
    samples = [sample for run in runs for sample in samples_of(run)]
    if len({s.search.name for s in samples}) < 2:
        raise BenchError("there are fewer than two kernels to learn from. measure more by `bench run tune`")
    if find_spec("sklearn") is None:
        raise BenchError("scikit-learn is missing. pip install 'xyntra-ep[tune]'")
    kernels = judged(samples, seeds=seeds)
    return kernels, fitted(samples, better_for(kernels))


def samples_of(run: SearchRun) -> list[Sample]:
    from xyntra_ep.tracea.optimizer.cost_model import MachineFacts, OpFacts

    machine = MachineFacts(**dict[str, Any](run.machine))
    found = []
    for search in run.kernels:
        measured = {name: time for name, time in search.times.items() if len(time) > 1}
        logs = [math.log(ratio) for _, ratio in measured.values()]
        mean = statistics.fmean(logs)
        found.append(
            Sample(
                search=search,
                isa=run.kernels_isa,
                op=OpFacts(op=search.op, flops=search.flops, bytes=search.bytes),
                machine=machine,
                options=[_option(name, time[0]) for name, time in measured.items()],
                times=[log - mean for log in logs],
            )
        )
    return found


def _option(candidate: str, estimate_ns: float) -> Any:
    """`candidate`: a variant and its configuration, as a trial's candidate is written."""
    from xyntra_ep.tracea.optimizer.cost_model import Option

    variant, *axes = candidate.split(" ")
    config = {name: int(value) for name, _, value in (axis.partition("=") for axis in axes)}
    return Option(variant=variant, config=config, estimate_ns=estimate_ns)


def fitted(samples: Sequence[Sample], better_for: Sequence[str] = ()) -> Any:
    """A `CostModel`. Each kernel counts as much as another, however many configurations it has."""
    import numpy as np
    from sklearn.ensemble import ExtraTreesRegressor

    from xyntra_ep.tracea.optimizer.cost_model import CostModel, Tree, Vocabulary, centred_logs, features

    options = [option for sample in samples for option in sample.options]
    known = Vocabulary(
        variants=tuple(sorted({o.variant for o in options})), axes=tuple(sorted({axis for o in options for axis in o.config}))
    )
    rows = np.vstack([features(s.op, s.machine, s.options, known) for s in samples])
    weights = np.concatenate([np.full(len(s.times), len(options) / len(samples) / len(s.times)) for s in samples])
    forest = ExtraTreesRegressor(**_TREES)
    forest.fit(rows, np.concatenate([np.array(s.times) - centred_logs(s.estimates) for s in samples]), sample_weight=weights)
    trees = []
    for grown in forest.estimators_:
        tree = grown.tree_
        trees.append(
            Tree(
                feature=np.maximum(tree.feature, -1),
                threshold=np.where(tree.feature >= 0, tree.threshold, 0.0),
                left=np.maximum(tree.children_left, 0),
                right=np.maximum(tree.children_right, 0),
                value=tree.value[:, 0, 0],
            )
        )
    return CostModel(known=known, trees=tuple(trees), better_for=frozenset(better_for))


def judged(samples: Sequence[Sample], *, seeds: int = SEEDS) -> list[LearnedKernel]:
    """Each kernel by models that have not seen it."""
    names = list(dict.fromkeys(s.search.name for s in samples))
    by_shape = {name: fitted([s for s in samples if s.search.name != name]) for name in names}
    isas = list(dict.fromkeys(s.isa for s in samples))
    by_isa = {isa: fitted([s for s in samples if s.isa != isa]) for isa in isas} if len(isas) > 1 else {}
    return [_judged(s, by_shape[s.search.name], by_isa.get(s.isa), seeds) for s in samples]


def _judged(sample: Sample, unseen_shape: Any, unseen_machine: Any, seeds: int) -> LearnedKernel:
    search = sample.search
    order = unseen_shape.ranked(sample.op, sample.machine, sample.options)
    return LearnedKernel(
        name=search.name,
        isa=sample.isa,
        kind=sample.op.kind,
        points=len(sample.options),
        estimate=_ranking(sample.estimates, sample.times),
        unseen_shape=_ranking(unseen_shape.predict(sample.op, sample.machine, sample.options), sample.times),
        unseen_machine=(
            _ranking(unseen_machine.predict(sample.op, sample.machine, sample.options), sample.times)
            if unseen_machine is not None
            else None
        ),
        needed=search.needed[KIND_GP],
        needed_seeded=_replayed(sample, order[:SEEDED], seeds),
    )


def _ranking(predicted: Sequence[float], times: Sequence[float]) -> Ranking:
    """`times`: logarithms."""
    order = sorted(range(len(times)), key=lambda i: predicted[i])
    best = min(times)
    return Ranking(
        correlation=rank_correlation(list(zip(predicted, times, strict=True))),
        top=round(math.exp(min(times[i] for i in order[:TOP]) - best), 4),
        first=round(math.exp(times[order[0]] - best), 4),
    )


def _replayed(sample: Sample, first: Sequence[int], seeds: int) -> tuple[int, ...]:
    """The trials that searches need which begin with the default and then the ranking's ``first``."""
    from xyntra_ep.tracea.optimizer.search import GaussianProcess
    from xyntra_ep.tracea.optimizer.space import Categorical, ListedSpace, key_of

    search = sample.search
    points = {name: _point(_option(name, time[0])) for name, time in search.times.items()}
    axes: dict[str, dict[Any, None]] = {}
    for point in points.values():
        for axis, value in point.items():
            axes.setdefault(axis, {})[value] = None
    space = ListedSpace({axis: Categorical((*values,)) for axis, values in axes.items()}, list(points.values()))
    ratios = {key_of(points[name]): time[1] if len(time) > 1 else None for name, time in search.times.items()}
    names = [name for name, time in search.times.items() if len(time) > 1]
    begin = [points[search.default], *(points[names[i]] for i in first)]
    _, needed = trails(lambda seed: GaussianProcess(space, seeds=begin, seed=seed), ratios, seeds, NEAR)
    return needed


def _point(option: Any) -> Mapping[str, Any]:
    """As the tuner writes it: an axis belongs to its variant."""
    return {"variant": option.variant, **{f"{option.variant}.{axis}": value for axis, value in option.config.items()}}


def better_for(kernels: Sequence[LearnedKernel]) -> list[str]:
    """The kinds of ops on which rankings of unseen shapes are better than the estimates': by the geometric mean of what the best
    of the first few costs, and by their correlation."""
    found = []
    for kind in dict.fromkeys(k.kind for k in kernels):
        of_kind = [k for k in kernels if k.kind == kind]
        ours, theirs = ([getattr(k, which) for k in of_kind] for which in ("unseen_shape", "estimate"))
        regret = [statistics.fmean(math.log(r.top) for r in rankings) for rankings in (ours, theirs)]
        correlation = [statistics.fmean(r.correlation for r in rankings) for rankings in (ours, theirs)]
        if regret[0] < regret[1] and correlation[0] > correlation[1]:
            found.append(kind)
    return found
