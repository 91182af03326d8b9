"""The tuner: tries the variants and configurations of an op, and keeps what is the fastest.

    tuner = AutoTuner(Context())
    tuner.optimize(named_problem("gemm", m=128, n=768, k=3072)).best        a variant, its configuration, its time

Points of the search are a variant with a configuration of it. A batch of them is compiled, many at a time, and then done and
timed in a process of its own, in turn with what is chosen without tuning: the ratio of a round's two times is what counts, so
that a machine that is slower for a while is slower for both. A point that does not compile, fails, hangs, ends the process or
computes something else loses, with the reason. The fastest is measured again, in more rounds, and is kept only where the
confidence interval of its ratio is below 1.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.keep import keep
from xyntra_ep.tracea.interface.tuning.problem import Problem, named_problem
from xyntra_ep.tracea.interface.tuning.trial import Measured, Trial
from xyntra_ep.tracea.optimizer.hero_tables import heroes
from xyntra_ep.tracea.optimizer.search import GaussianProcess, Search
from xyntra_ep.tracea.optimizer.space import Point, SearchSpace
from xyntra_ep.tracea.optimizer.tuning_cache import (
    Choice,
    Question,
    TrialResult,
    TuningCache,
    TuningResult,
    expected_sizes,
)

_BATCH = 4  # points that are compiled at once
_ROUNDS, _FINAL_ROUNDS = 3, 9
_FINALISTS = 3  # that are measured in more rounds
_NEIGHBOURS = 3  # of an op, whose results are tried first
_RANKED = 3  # by the learned cost model, which are tried next
_IN_VAIN = 24  # points in a row that were no better, after which the search ends

MakeSearch = Callable[[SearchSpace, Sequence[Point], int], Search]


def gaussian_process(space: SearchSpace, seeds: Sequence[Point], seed: int) -> Search:
    return GaussianProcess(space, seeds=seeds, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a search ends, at the latest."""

    seconds: float = math.inf
    trials: int = 200


Heard = Callable[[Measured], None]


class AutoTuner:
    """Tunes ops for the machine, or the device, of a context. ``threads``: that share an op's work, as a session's would; as many
    as the context's policy judges by where it is not given. ``search``: how points are chosen."""

    def __init__(
        self, context: Context, *, threads: int | None = None, search: MakeSearch = gaussian_process, seed: int = 0
    ) -> None:
        self.context = context
        self.threads = (threads or context.policy.threads(context.caps.cores)[0]) if context.device is None else 1
        self._tuning = TuningCache.load(context.root.path, context.machine_class, trials=True)
        self._search = search
        self._seed = seed

    def optimize(self, problem: Problem, budget: Budget | None = None, heard: Heard = lambda measured: None) -> TuningResult:
        """The best that was found within ``budget``, kept in the context's tuning cache on disk; a search goes on where an
        earlier one stopped. ``heard`` is told of each point. Raises UnsupportedError where nothing computes the op, or what is
        chosen without tuning fails."""
        budget = budget or Budget()
        end = time.monotonic() + budget.seconds
        trial = Trial(problem, self.context, self.threads)
        expected = expected_sizes((problem.op,), problem.program.assumed)
        question = self.context.question(problem.op, problem.constants, self.threads, expected)
        before = self._tuning.find(question)
        default = Choice(variant=trial.default.variant.name, config=trial.default.config)
        search = self._search(
            trial.space, [trial.default.point, *self._neighbours(question, trial), *trial.ranked(_RANKED)], self._seed
        )
        for known in before.trials if before is not None else ():
            point = trial.point(known)
            if point is not None:
                search.tell(point, known.ratio)
        tried: list[Measured] = []
        in_vain = 0
        try:
            search.tell(trial.default.point, 1.0)
            best = search.best
            while len(tried) < budget.trials and time.monotonic() < end and in_vain < _IN_VAIN:
                points = search.ask(min(_BATCH, budget.trials - len(tried)))
                if not points:
                    break
                for measured in trial.measure([trial.candidate(p) for p in points], _ROUNDS):
                    search.tell(measured.candidate.point, None if measured.problem else measured.ratio)
                    tried.append(measured)
                    heard(measured)
                better = search.best != best
                best, in_vain = search.best, 0 if better else in_vain + len(points)
            return self._kept(trial, search, tried, TuningResult(question=question, default=default), before)
        except KeyboardInterrupt:
            if tried:
                so_far = before or TuningResult(question=question, default=default)
                self._keep(replace(so_far, trials=_rows(tried)))
            raise

    def choices(self) -> Mapping[str, object]:
        """All that decides about plans, by now."""
        return self._tuning.choices()

    def _neighbours(self, question: Question, trial: Trial) -> Iterator[Point]:
        """What is best where only sizes differ, by what was found here and by what comes with the package."""
        known = (self._tuning, heroes(self.context.machine_class))
        for choice in (choice for table in known for choice in table.like(question, _NEIGHBOURS)):
            point = trial.point(TrialResult(variant=choice.variant, config=choice.config))
            if point is not None:
                yield point

    def _kept(
        self, trial: Trial, search: Search, tried: Sequence[Measured], result: TuningResult, before: TuningResult | None
    ) -> TuningResult:
        """The fastest, by more rounds of those that seemed to be: of many that are measured a little, one seems faster than it
        is."""
        if not tried and before is not None:  # nothing new
            return before
        ns = statistics.median(times) if (times := [m.default_ns for m in tried if m.default_ns]) else 0.0
        found = replace(result, trials=_rows(tried), default=replace(result.default, ns=ns))
        fast = [trial.candidate(point) for point, ratio in search.ranked()[:_FINALISTS] if ratio < 1.0]
        finals = trial.measure([c for c in fast if c.point != trial.default.point], _FINAL_ROUNDS) if fast else []
        sure = [final for final in finals if not final.problem and final.at_most < 1.0]
        if sure:
            final = min(sure, key=lambda m: m.ratio)
            best = Choice(variant=final.candidate.variant.name, config=final.candidate.config, ns=final.ns)
            found = replace(found, best=best, default=replace(found.default, ns=final.default_ns))
        self._keep(found)
        return found

    def _keep(self, result: TuningResult) -> None:
        self._tuning.add(result)
        keep(self._tuning, self.context.root)


def _rows(tried: Sequence[Measured]) -> tuple[TrialResult, ...]:
    return tuple(
        TrialResult(
            variant=m.candidate.variant.name, config=m.candidate.config, ratio=None if m.problem else m.ratio, problem=m.problem
        )
        for m in tried
    )


def tune(op: str, *, context: Context | None = None, budget: Budget | None = None, **sizes: Any) -> TuningResult:
    """Tune an op of `plan_kernel` for this machine.

    ``sizes`` as `plan_kernel` takes them, with ``precision``. Raises ConfigError for what does not exist.
    """
    return AutoTuner(context or Context()).optimize(named_problem(op, **sizes), budget)
