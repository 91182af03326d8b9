"""Measures what an op may be computed by, in a process of its own, in turn with what is chosen without tuning."""

from __future__ import annotations

import itertools
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import assuming
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.doctor.decision import refusal
from xyntra_ep.tracea.doctor.variants import AnyVariant, cpu_variants
from xyntra_ep.tracea.interface.alone import Alone, compiled, difference, outputs
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, write_plan
from xyntra_ep.tracea.interface.trial_jobs import Answer, TrialJobs
from xyntra_ep.tracea.interface.tuning.problem import Problem
from xyntra_ep.tracea.kernels.variant import FALLBACK_RANK, Config
from xyntra_ep.tracea.optimizer.cost_model import MachineFacts, Option, learned
from xyntra_ep.tracea.optimizer.interval import median_interval
from xyntra_ep.tracea.optimizer.space import Categorical, ListedSpace, Point, SearchSpace
from xyntra_ep.tracea.optimizer.tuning_cache import TrialResult

_VARIANT = "variant"
_ROUND_NS = 20e6  # of runs of a point in a round
_LEAST_RUNS, _MOST_RUNS = 3, 50
_LONGEST_ROUND_NS = 2e9  # even where these are fewer runs: a job may take `trial_jobs.LIMIT_S`
_SLOW = 4.0  # estimated to take so many times as long as the default: not tried
_INTERPRETED = 4e9  # flops that the interpreter is given; of larger ops what is chosen without tuning is the reference
_TIMED = "kernels_ns"  # of what a trial times


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A point: what an op may be computed by."""

    variant: AnyVariant
    config: Config

    def __str__(self) -> str:
        return " ".join([self.variant.name, *(f"{name}={value}" for name, value in self.config.items())])

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


class Trial:
    """Measures candidates for one problem, in turn with the default."""

    def __init__(self, problem: Problem, context: Context, threads: int) -> None:
        """Raises UnsupportedError where no variant admits the op."""
        if context.device is not None:  # where nothing is read between runs
            problem = replace(problem, between_bytes=0)
        self._problem, self._context, self._threads = problem, context, threads
        self._build = context.build_context(problem.program, problem.constants)
        table = context.device.variants if context.device is not None else cpu_variants()
        self._table = table
        with assuming(problem.program.assumed):
            untuned = context.untuned.estimate(problem.op, problem.program, problem.constants)
            self.default = Candidate(variant=untuned.chosen, config=untuned.config)
            self._variants = {
                v.name: v
                for v in table.get(type(problem.op), ())
                if v.admits(problem.op, self._build) is None and self._is_fast(v)
            }
        self._inputs, self._constants = problem.data(ValueKind.INPUT), problem.data(ValueKind.CONST)
        self._wanted: list[Array] | None = None  # it and what follows: until the default was tried
        self._run_ns: float | None = None

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
        """Variants, and for each its axes: a point has those of its variant, and no others."""
        op, build = self._problem.op, self._build
        dimensions = {_VARIANT: Categorical(tuple(self._variants))}
        with assuming(self._problem.program.assumed):
            axes = {name: [*variant.space(op, build)] for name, variant in self._variants.items()}
        for name, of_variant in axes.items():
            for axis in of_variant:
                dimensions[f"{name}.{axis.name}"] = Categorical((*axis.values,))
        return ListedSpace(dimensions, [candidate.point for candidate in self.candidates()])

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
                    candidate = Candidate(variant=variant, config=config)
                    refused = self._problem.more_than_covers(axes, config) or variant.refuses(op, config, build)
                    if candidate.point == self.default.point or not refused:
                        yield candidate

    def estimate(self, candidate: Candidate) -> float:
        """What it is taken to cost without measuring it, in nanoseconds on one core, or on the device."""
        with assuming(self._problem.program.assumed):
            return candidate.variant.cost_ns(self._problem.op, candidate.config, self._build)

    def ranked(self, most: int) -> list[Point]:
        """What the learned cost model takes for the fastest; nothing where estimates are better, or on a device."""
        op = self._problem.facts
        if self._context.device is not None or op.kind not in learned().better_for:
            return []
        known = [*self.candidates()]
        options = [Option(variant=c.variant.name, config=c.config, estimate_ns=self.estimate(c)) for c in known]
        return [known[i].point for i in learned().ranked(op, MachineFacts.of(self._context.caps), options)[:most]]

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
        if self._wanted is None:
            self._try_default()
        with self._done([self.default, *candidates], rounds) as (jobs, ended):
            base, *answers = [
                answer if answer.problem else replace(answer, problem=self._difference(jobs, number)) for number, answer in ended
            ]
        if base.problem:
            raise self._unmeasured(base.problem)
        return [_measured(c, answer, base) for c, answer in zip(candidates, answers, strict=True)]

    def _try_default(self) -> None:
        """Once, for what is to be computed, and how long that takes: an estimate may be wrong by orders of magnitude, as for a
        device that nobody has measured."""
        with self._done([self.default], 1) as (jobs, [(number, answer)]):
            if answer.problem:
                raise self._unmeasured(answer.problem)
            self._wanted = self._reference(jobs, number)
        self._run_ns = answer.ns[_TIMED]

    def _unmeasured(self, why: str) -> UnsupportedError:
        return UnsupportedError(f"what is chosen without tuning cannot be measured: {why}", where=self._problem.name)

    @contextmanager
    def _done(self, candidates: Sequence[Candidate], rounds: int) -> Iterator[tuple[TrialJobs, list[tuple[int, Answer]]]]:
        """The number of each candidate's job, and how it ended, while its outputs are there."""
        problem = self._problem
        made = self._compiled(candidates)
        with tempfile.TemporaryDirectory(dir=self._context.root.tmp) as folder:
            jobs = TrialJobs(Path(folder), self._context.device_identity, rounds=rounds)
            ended: list[tuple[int, Answer]] = []  # where there is no job, with the reason
            given: int | None = None
            for i, (alone, result) in enumerate(made):
                if result.failures:
                    ended.append((-1, Answer(problem=f"cannot be made: {result.failures[0].reason}")))
                    continue
                number = jobs.run(
                    write_plan("", result, alone.context),
                    self._inputs if given is None else given,
                    problem.bytes_of(ValueKind.OUTPUT),
                    constants=self._constants,
                    order=[problem.program.constants.index(name) for name in _constants(result)],
                    about=(f"candidate {i}",),
                    timed=self._runs,
                    threads=self._threads,
                    between_bytes=problem.between_bytes,
                )
                given = number if given is None else given
                ended.append((number, Answer(problem="")))
            answers = jobs.carry_out()
            yield jobs, [(number, answers[number] if number >= 0 else answer) for number, answer in ended]

    @property
    def _runs(self) -> int:
        """In a round of a point, whose time goes to the kernel and to what is read between."""
        if self._run_ns is None:
            return 1
        between_ns = self._problem.between_bytes / self._context.caps.dram_gbs
        wanted = max(_LEAST_RUNS, int(_ROUND_NS / max(self._run_ns + between_ns, 1.0)))
        return max(1, min(_MOST_RUNS, wanted, int(_LONGEST_ROUND_NS / max(self._run_ns, 1.0))))

    def _compiled(self, candidates: Sequence[Candidate]) -> list[tuple[Alone, CompileResult]]:
        """The plan of each candidate by itself."""
        kind = type(self._problem.op)
        made = [
            Alone(
                name=str(candidate),
                program=self._problem.program,
                context=self._context.choosing({**self._table, kind: (_only(candidate),)}),
            )
            for candidate in candidates
        ]
        return list(zip(made, compiled(made, self._context), strict=True))

    def _reference(self, jobs: TrialJobs, number: int) -> list[Array]:
        """What is to be computed: by the interpreter, or where that would take long by the default's kernels."""
        problem = self._problem
        if problem.flops > _INTERPRETED:
            return outputs(jobs, number, problem.program, [problem.extents(v) for v in problem.values(ValueKind.OUTPUT)])
        wanted = interpret(problem.program, self._inputs, self._constants)
        if why := difference(jobs, number, problem.program, wanted, problem.product):
            raise UnsupportedError(f"what is chosen without tuning {why}", where=problem.name)
        return wanted

    def _difference(self, jobs: TrialJobs, number: int) -> str:
        assert self._wanted is not None
        return difference(jobs, number, self._problem.program, self._wanted, self._problem.product)


def _measured(candidate: Candidate, answer: Answer, base: Answer) -> Measured:
    """``base``: the answer of the default."""
    if answer.problem:
        return Measured(candidate=candidate, problem=answer.problem)
    rounds = zip(answer.rounds[_TIMED], base.rounds[_TIMED], strict=True)
    ratios = tuple(max(ns, 1.0) / max(base_ns, 1.0) for ns, base_ns in rounds)
    return Measured(candidate=candidate, ratios=ratios, ns=answer.ns[_TIMED], default_ns=base.ns[_TIMED])


def _constants(result: CompileResult) -> Sequence[str]:
    [entry] = result.islands
    return entry.constants if entry is not None else ()


def _only(candidate: Candidate) -> AnyVariant:
    config = dict(candidate.config)
    return replace(candidate.variant, default=lambda op, context: config)
