"""Searches compared, for `bench run tune`: how many trials does the Gaussian process need, and how many does chance, to find a
kernel that is nearly the best there is?

Every configuration of each kernel is measured once, as the tuner measures it. Both searches are then replayed on these times with
many seeds, so that they differ in nothing but what they ask for.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from xyntra_bench.errors import BenchError
from xyntra_bench.tuning.search_results import KIND_GP, KIND_RANDOM, NEAR, KernelSearch

ROUNDS = 5
BATCH = 4  # that a search asks for at once, as the tuner does
_COMPILED = 16  # configurations that are compiled and measured together
SEEDS = 9
LIMIT = 96  # trials of a replayed search
_BETWEEN_BYTES = 64 << 20  # that are read between two runs: nothing of the kernel is left in the caches


def kernels_like(pattern: str) -> tuple[Any, ...]:
    """Shapes (`xyntra_ep/tracea/interface/tuning/shapes.py`) by their names. Raises BenchError where there is none."""
    from xyntra_ep.tracea.interface.tuning.shapes import SHAPES

    found = tuple(shape for shape in SHAPES if fnmatch.fnmatch(shape.name, pattern))
    if not found:
        raise BenchError(f"'{pattern}': no kernel of that name. there are {', '.join(shape.name for shape in SHAPES)}")
    return found


def search_kernel(kernel: Any, *, seeds: int = SEEDS, rounds: int = ROUNDS) -> KernelSearch:
    """Measure all configurations of a kernel, a shape of `kernels_like`, on one thread, and replay the searches. Raises
    BenchError where the machine has no choice for it."""
    from xyntra_ep.errors import XyntraError
    from xyntra_ep.provider import registration
    from xyntra_ep.tracea import Context
    from xyntra_ep.tracea.interface.tuning.trial import Trial
    from xyntra_ep.tracea.optimizer.space import key_of
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    with tempfile.TemporaryDirectory(prefix="xyntra-searches-") as folder:
        context = Context(cache_dir=Path(folder), hash128=hash128_of(registration.library()))
        try:
            problem = dataclasses.replace(kernel.problem(), between_bytes=_BETWEEN_BYTES)
            trial = Trial(problem, context, 1)
            candidates = [c for c in trial.candidates() if c.point != trial.default.point]
            ratios: dict[Any, float | None] = {key_of(trial.default.point): 1.0}
            for i in range(0, len(candidates), _COMPILED):
                for measured in trial.measure(candidates[i : i + _COMPILED], rounds):
                    ratios[key_of(measured.candidate.point)] = None if measured.problem else measured.ratio
        except XyntraError as error:
            raise BenchError(f"{kernel.name}: {error}") from error
        known = [ratio for ratio in ratios.values() if ratio is not None]
        best = min(known)
        chosen = next(c for c in (trial.default, *candidates) if ratios[key_of(c.point)] == best)
        estimated = [(trial.estimate(c), ratios[key_of(c.point)]) for c in (trial.default, *candidates)]
        curves, needed = _replayed(trial.space, trial.default.point, ratios, seeds)
        facts = problem.facts
        return KernelSearch(
            name=kernel.name,
            op=facts.op,
            flops=facts.flops,
            bytes=facts.bytes,
            points=len(ratios),
            failed=len(ratios) - len(known),
            default=str(trial.default),
            best=str(chosen),
            default_ratio=1.0 / best,
            rank_correlation=rank_correlation([(e, r) for e, r in estimated if r is not None]),
            top5=min((r for _, r in sorted(estimated, key=lambda row: row[0])[:5] if r is not None), default=math.inf) / best,
            near=sum(ratio <= NEAR * best for ratio in known),
            curves=curves,
            needed=needed,
            times={
                str(c): (round(trial.estimate(c), 1), *([] if (r := ratios[key_of(c.point)]) is None else [round(r, 4)]))
                for c in (trial.default, *candidates)
            },
        )


def machine_facts() -> Mapping[str, float]:
    """Of the machine as kernels see it."""
    from xyntra_ep.tracea import Context
    from xyntra_ep.tracea.optimizer.cost_model import MachineFacts

    return {name: float(value) for name, value in dataclasses.asdict(MachineFacts.of(Context().caps)).items()}


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float:
    """Spearman's, with ties at their mean rank; 0 where either side has one value only."""
    from scipy.stats import spearmanr

    estimates, measured = zip(*pairs, strict=True)
    if len(set(estimates)) < 2 or len(set(measured)) < 2:
        return 0.0
    return round(float(spearmanr(estimates, measured).statistic), 3)


def _replayed(
    space: Any, default: Any, ratios: Mapping[Any, float | None], seeds: int
) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[int, ...]]]:
    """`trails` by kind of search."""
    from xyntra_ep.tracea.optimizer.search import GaussianProcess, Random

    kinds: Mapping[str, Callable[[int], Any]] = {
        KIND_GP: lambda seed: GaussianProcess(space, seeds=[default], seed=seed),
        KIND_RANDOM: lambda seed: Random(space, seeds=[default], seed=seed),
    }
    found = {kind: trails(make, ratios, seeds) for kind, make in kinds.items()}
    return {kind: curve for kind, (curve, _) in found.items()}, {kind: needed for kind, (_, needed) in found.items()}


def trails(
    make: Callable[[int], Any], ratios: Mapping[Any, float | None], seeds: int, until: float = 0.0
) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Searches that ``make`` makes of each seed, on known times: the best so far over the best there is, the median over seeds,
    trial by trial; and of each seed how many trials it took to come within `NEAR` of the best, 0 where it did not. A search
    ends where it is within ``until`` of the best."""
    best = min(ratio for ratio in ratios.values() if ratio is not None)
    found = [_trail(make(seed), ratios, best, until) for seed in range(seeds)]
    length = min(map(len, found))
    curve = tuple(round(statistics.median(t[i] for t in found), 4) for i in range(length))
    return curve, tuple(next((i for i, at in enumerate(t, start=1) if at <= NEAR), 0) for t in found)


def _trail(search: Any, ratios: Mapping[Any, float | None], best: float, until: float) -> list[float]:
    """The best so far after each trial."""
    from xyntra_ep.tracea.optimizer.space import key_of

    found: list[float] = []
    while len(found) < LIMIT and not (found and found[-1] <= until) and (points := search.ask(BATCH)):
        for point in points:
            ratio = ratios[key_of(point)]
            search.tell(point, ratio)
            now = ratio / best if ratio is not None else found[-1] if found else 1e9
            found.append(min(now, found[-1]) if found else now)
    return found
