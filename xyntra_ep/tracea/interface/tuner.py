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

import itertools
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from xyntra_ep.errors import InvariantError, UnsupportedError
from xyntra_ep.tracea.core_ir.dims import assuming
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Product, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.doctor.decision import refusal
from xyntra_ep.tracea.doctor.variants import AnyVariant, cpu_variants
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, compile_islands, write_plan
from xyntra_ep.tracea.interface.problem import Problem, named_problem
from xyntra_ep.tracea.interface.trial_jobs import TrialJobs, island_of
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, BuildContext, Config
from xyntra_ep.tracea.optimizer.interval import median_interval
from xyntra_ep.tracea.optimizer.search import GaussianProcess, Search
from xyntra_ep.tracea.optimizer.space import Categorical, Point, SearchSpace
from xyntra_ep.tracea.optimizer.tuning_cache import Choice, TrialResult, TuningResult
from xyntra_ep.tracea.planning.plan import PlanError
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime.plan_store import forget_plans

_VARIANT = "variant"
_BATCH = 4  # points that are compiled at once
_ROUNDS, _FINAL_ROUNDS = 3, 9
_ROUND_NS = 20e6  # of runs of a point in a round
_LEAST_RUNS, _MOST_RUNS = 3, 50
_SLOW = 4.0  # estimated to take so many times as long as the default: not tried
_IN_VAIN = 24  # points in a row that were no better, after which the search ends
_INTERPRETED = 4e9  # flops that the interpreter is given; of larger ops what is chosen without tuning is the reference
# max |a - b| / max |b|, as `trials.py` has it
_MAX_ERR = {Product.F32: 1e-4, Product.TF32: 3e-3, Product.BF16: 2e-2, Product.F16: 2e-2, Product.INT8W: 2e-2}

MakeSearch = Callable[[SearchSpace, Sequence[Point], int], Search]


def gaussian_process(space: SearchSpace, seeds: Sequence[Point], seed: int) -> Search:
    return GaussianProcess(space, seeds=seeds, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a search ends, at the latest."""

    seconds: float = math.inf
    trials: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A point: what an op may be computed by."""

    variant: AnyVariant
    config: Config

    @property
    def point(self) -> Point:
        return {_VARIANT: self.variant.name, **{f"{self.variant.name}.{name}": v for name, v in self.config.items()}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A candidate's times over the default's, one of each round; none where ``problem`` says why."""

    candidate: Candidate
    ratios: tuple[float, ...] = ()
    ns: float = 0.0
    default_ns: float = 0.0
    problem: str = ""

    @property
    def ratio(self) -> float:
        """The median."""
        return statistics.median(self.ratios)

    @property
    def at_most(self) -> float:
        """The upper end of the ratio's confidence interval."""
        return median_interval(self.ratios)[1]


Heard = Callable[[Measured], None]


class AutoTuner:
    """Tunes ops for the machine, or the device, of a context. ``threads``: that share an op's work, as a session's would; the
    machine's cores where it is not given. ``search``: how points are chosen."""

    def __init__(
        self, context: Context, *, threads: int | None = None, search: MakeSearch = gaussian_process, seed: int = 0
    ) -> None:
        self.context = context
        self.threads = (threads or max(1, context.caps.cores)) if context.device is None else 1
        self._search = search
        self._seed = seed

    def optimize(self, problem: Problem, budget: Budget | None = None, heard: Heard = lambda measured: None) -> TuningResult:
        """The best that was found within ``budget``, kept in the context's tuning cache on disk; a search goes on where an
        earlier one stopped. ``heard`` is told of each point. Raises UnsupportedError where nothing computes the op, or what is
        chosen without tuning fails."""
        budget = budget or Budget()
        end = time.monotonic() + budget.seconds
        trial = Trial(problem, self.context, self.threads)
        question = self.context.question(problem.op, problem.constants, self.threads)
        before = self.context.tuning.find(question)
        default = Choice(variant=trial.default.variant.name, config=trial.default.config)
        search = self._search(trial.space, [trial.default.point], self._seed)
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
            self._keep(
                _with_trials(TuningResult(question=question, default=default, best=before.best if before else None), tried)
            )
            raise

    def _kept(
        self, trial: Trial, search: Search, tried: Sequence[Measured], result: TuningResult, before: TuningResult | None
    ) -> TuningResult:
        """The fastest, if it still is in more rounds."""
        assert search.best is not None
        chosen = trial.candidate(search.best[0])
        found = _with_trials(result, tried)
        if not tried and before is not None:  # nothing new
            return before
        if chosen.point != trial.default.point:
            [final] = trial.measure([chosen], _FINAL_ROUNDS)
            if not final.problem and final.at_most < 1.0:
                best = Choice(variant=chosen.variant.name, config=chosen.config, ns=final.ns)
                found = replace(found, best=best, default=replace(found.default, ns=final.default_ns))
        self._keep(found)
        return found

    def _keep(self, result: TuningResult) -> None:
        """With what is on disk. Plans that were made without it go."""
        tuning, root = self.context.tuning, self.context.root
        chosen = tuning.find(result.question)
        tuning.add(result)
        tuning.save(root.path, root.tmp)
        if (chosen.best if chosen is not None else None) != result.best:
            forget_plans(root)


def _with_trials(result: TuningResult, tried: Sequence[Measured]) -> TuningResult:
    rows = tuple(
        TrialResult(
            variant=m.candidate.variant.name, config=m.candidate.config, ratio=None if m.problem else m.ratio, problem=m.problem
        )
        for m in tried
    )
    ns = statistics.median(times) if (times := [m.default_ns for m in tried if m.default_ns]) else 0.0
    return replace(result, trials=rows, default=replace(result.default, ns=ns))


class Trial:
    """Measures candidates for one problem, in turn with the default."""

    def __init__(self, problem: Problem, context: Context, threads: int) -> None:
        """Raises UnsupportedError where no variant admits the op."""
        self._problem, self._context, self._threads = problem, context, threads
        self._build = BuildContext(
            caps=context.caps,
            program=problem.program,
            gpu=context.device.gpu if context.device is not None else None,
            constants=problem.constants,
        )
        table = context.device.variants if context.device is not None else cpu_variants()
        self._table = table
        with assuming(problem.program.assumed):
            untuned = context.untuned.estimate(problem.op, problem.program, problem.constants)
            self.default = Candidate(variant=untuned.chosen, config=untuned.config)
            self._expected_ns = untuned.cost_ns
            self._variants = {
                v.name: v
                for v in table.get(type(problem.op), ())
                if v.admits(problem.op, self._build) is None and self._is_fast(v)
            }
        self._wanted: list[Array] | None = None

    def _is_fast(self, variant: AnyVariant) -> bool:
        """Whether it may be the fastest at all."""
        if variant is self.default.variant:
            return True
        op = self._problem.op
        if variant.rank >= FALLBACK_RANK:
            return False
        cost, best = (v.cost_ns(op, v.default(op, self._build), self._build) for v in (variant, self.default.variant))
        return cost <= _SLOW * best

    @property
    def space(self) -> SearchSpace:
        """Variants, and for each its axes; those of others stand at one value, so that a point is there once."""
        op, build = self._problem.op, self._build
        dimensions = {_VARIANT: Categorical(tuple(self._variants))}
        with assuming(self._problem.program.assumed):
            axes = {name: [*variant.space(op, build)] for name, variant in self._variants.items()}
        for name, of_variant in axes.items():
            for axis in of_variant:
                dimensions[f"{name}.{axis.name}"] = Categorical((*axis.values,))
        return CandidateSpace(self, dimensions)

    def candidate(self, point: Point) -> Candidate:
        variant = self._variants[str(point[_VARIANT])]
        prefix = f"{variant.name}."
        config = {name.removeprefix(prefix): int(v) for name, v in point.items() if name.startswith(prefix)}
        return Candidate(variant=variant, config=config)

    def candidates(self) -> Iterator[Candidate]:
        """All that may be tried."""
        op, build = self._problem.op, self._build
        with assuming(self._problem.program.assumed):
            for variant in self._variants.values():
                axes = [*variant.space(op, build)]
                for values in itertools.product(*(axis.values for axis in axes)):
                    config = {axis.name: value for axis, value in zip(axes, values, strict=True)}
                    if config == self.default.config or not variant.refuses(op, config, build):
                        yield Candidate(variant=variant, config=config)

    def point(self, known: TrialResult) -> Point | None:
        """Of an earlier trial; None where its variant or its configuration is no longer to be had."""
        variant = self._variants.get(known.variant)
        if variant is None:
            return None
        with assuming(self._problem.program.assumed):
            wrong = refusal(known.config, variant, self._problem.op, self._build)
        return None if wrong else Candidate(variant=variant, config=known.config).point

    def measure(self, candidates: Sequence[Candidate], rounds: int) -> list[Measured]:
        """Each candidate. Raises UnsupportedError where the default fails."""
        problem, context = self._problem, self._context
        compiled = self._compiled([self.default, *candidates])
        inputs, constants = problem.data(ValueKind.INPUT), problem.data(ValueKind.CONST)
        sizes = problem.bytes_of(ValueKind.OUTPUT)
        with tempfile.TemporaryDirectory(dir=context.root.tmp) as folder:
            jobs = TrialJobs(Path(folder), context.device_identity, rounds=rounds)
            numbers: dict[int, int] = {}
            first: int | None = None
            for i, (result, alone) in enumerate(compiled):
                if result.failures:
                    continue
                numbers[i] = jobs.run(
                    write_plan("", result, alone),
                    inputs if first is None else first,
                    sizes,
                    constants=constants,
                    order=[problem.program.constants.index(name) for name in _constants(result)],
                    about=(f"candidate {i}",),
                    timed=self._runs,
                    threads=self._threads,
                    between_bytes=problem.between_bytes,
                )
                first = numbers[i] if first is None else first
            answers = jobs.carry_out()
            name = "kernels_ns"
            if compiled[0][0].failures or answers[numbers[0]].problem:
                why = compiled[0][0].failures[0].reason if compiled[0][0].failures else answers[numbers[0]].problem
                raise UnsupportedError(f"what is chosen without tuning cannot be measured: {why}", where=problem.name)
            base = answers[numbers[0]].rounds[name]
            if self._wanted is None:
                self._wanted = self._reference(jobs, numbers[0], inputs, constants)
            found = []
            for i, candidate in enumerate(candidates, start=1):
                result = compiled[i][0]
                if result.failures:
                    found.append(Measured(candidate=candidate, problem=f"cannot be made: {result.failures[0].reason}"))
                    continue
                answer = answers[numbers[i]]
                problem_found = answer.problem or self._difference(jobs, numbers[i])
                if problem_found:
                    found.append(Measured(candidate=candidate, problem=problem_found))
                    continue
                ratios = tuple(max(a, 1.0) / max(b, 1.0) for a, b in zip(answer.rounds[name], base, strict=True))
                found.append(Measured(candidate=candidate, ratios=ratios, ns=answer.ns[name], default_ns=statistics.median(base)))
            return found

    @property
    def _runs(self) -> int:
        """In a round of a point, whose time goes to the kernel and to what is read between."""
        between_ns = self._problem.between_bytes / self._context.caps.dram_gbs
        return max(_LEAST_RUNS, min(_MOST_RUNS, int(_ROUND_NS / max(self._expected_ns + between_ns, 1.0))))

    def _compiled(self, candidates: Sequence[Candidate]) -> list[tuple[CompileResult, Context]]:
        """The plan of each candidate by itself; all kernels are compiled at once before."""
        contexts = [self._context.choosing({**self._table, type(self._problem.op): (_only(c),)}) for c in candidates]
        islands = [island_of(self._problem.program, f"candidate {i}") for i in range(len(candidates))]
        sources: dict[str, Any] = {}
        for context in contexts:
            for source in _sources(self._problem, context):
                sources.setdefault(source.text, source)
        self._context.kernels.compile_many([*sources.values()])
        return [(compile_islands([island], context), context) for island, context in zip(islands, contexts, strict=True)]

    def _reference(self, jobs: TrialJobs, number: int, inputs: Sequence[Array], constants: Sequence[Array]) -> list[Array]:
        """What is to be computed: by the interpreter, or where that would take long by the default's kernels."""
        if self._problem.flops <= _INTERPRETED:
            wanted = interpret(self._problem.program, inputs, constants)
            if why := self._difference_from(jobs, number, wanted):
                raise UnsupportedError(f"what is chosen without tuning {why}", where=self._problem.name)
            return wanted
        return self._outputs(jobs, number)

    def _outputs(self, jobs: TrialJobs, number: int) -> list[Array]:
        return [
            to_float64(np.frombuffer(jobs.output(number, i), value.dtype.numpy), value.dtype).reshape(
                self._problem.extents(value)
            )
            for i, value in enumerate(self._problem.values(ValueKind.OUTPUT))
        ]

    def _difference(self, jobs: TrialJobs, number: int) -> str:
        assert self._wanted is not None
        return self._difference_from(jobs, number, self._wanted)

    def _difference_from(self, jobs: TrialJobs, number: int, wanted: Sequence[Array]) -> str:
        """Why an output is not what it should be."""
        product = getattr(self._problem.op, "product", Product.F32)
        for value, got, right in zip(self._problem.values(ValueKind.OUTPUT), self._outputs(jobs, number), wanted, strict=True):
            most = _MAX_ERR[product] if value.dtype.is_float else 0.0
            finite = np.isfinite(right)
            if not np.array_equal(finite, np.isfinite(got)):
                return "computes something else: NaN or infinity elsewhere"
            scale = float(np.abs(right[finite]).max(initial=0.0)) or 1.0
            error = float(np.abs(got[finite] - right[finite]).max(initial=0.0)) / scale
            if not error <= most:
                return f"computes something else: error {error:.2g}, {most:g} allowed"
        return ""


class CandidateSpace(SearchSpace):
    """The candidates of a trial: a point has the axes of its variant, and no others."""

    def __init__(self, trial: Trial, dimensions: Mapping[str, Categorical]) -> None:
        super().__init__(dimensions)
        self._points = [c.point for c in trial.candidates()]
        self._defaults = {name: d.values[0] for name, d in dimensions.items()}

    def points(self, most: int = 4096, seed: int = 0) -> list[Point]:
        return self._points[:most]

    def refusal(self, point: Point) -> str:
        return "" if point in self._points else "it is no candidate"

    def coordinates(self, point: Point) -> list[float]:
        return super().coordinates({**self._defaults, **point})


def _constants(result: CompileResult) -> Sequence[str]:
    [entry] = result.islands
    return entry.constants if entry is not None else ()


def _only(candidate: Candidate) -> AnyVariant:
    config = dict(candidate.config)
    return replace(candidate.variant, default=lambda op, context: config)


def _sources(problem: Problem, context: Context) -> list[Any]:
    """The kernels of a candidate's plan, as `compile_islands` looks for them."""
    try:
        return [s.distinct() for s in plan_program(problem.program, context.caps, builder=context.builder).kernels]
    except (PlanError, InvariantError):
        return []  # compile_islands tells it


def tune(op: str, *, context: Context | None = None, budget: Budget | None = None, **sizes: Any) -> TuningResult:
    """Tune an op of `plan_kernel` for this machine.

    ``sizes`` as `plan_kernel` takes them, with ``precision``. Raises ConfigError for what does not exist.
    """
    return AutoTuner(context or Context()).optimize(named_problem(op, **sizes), budget)
