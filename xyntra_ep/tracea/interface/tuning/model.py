"""Which ops of a plan are worth tuning, and the order in which they get their time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dims import assuming, evaluate, typical
from xyntra_ep.tracea.core_ir.work import sized_work
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, step_costs
from xyntra_ep.tracea.interface.tuning.problem import Problem, problem_of
from xyntra_ep.tracea.interface.tuning.trial import Measured
from xyntra_ep.tracea.interface.tuning.tuner import AutoTuner, Budget
from xyntra_ep.tracea.optimizer.tuning_cache import TuningResult, expected_sizes
from xyntra_ep.tracea.planning.constants import constant_ops, live_ops
from xyntra_ep.tracea.planning.plan import PlannedProgram

SESSION_S = 60.0  # that a session which is to tune its kernels takes for it
_SMALL = 0.005  # of a model's time: what is less is left alone
_LEAST_S = 2.0  # for a search: with less, nothing comes of it
_LARGEST_BETWEEN = 2  # times the last cache: what is beyond makes nothing colder


@dataclass(slots=True, kw_only=True)
class TunedKernel:
    """An op of a model, ``count`` times in it, with the ``share`` of the estimated time of all. ``result``: None where
    ``problem`` says why it was not tuned. ``floor_ns``: what the machine would take at its ceilings."""

    label: str
    count: int
    share: float
    floor_ns: float
    result: TuningResult | None = None
    problem: str = ""


@dataclass(slots=True, kw_only=True)
class TuningRequest:
    """What a session is asked to tune, and what came of it. ``hear`` is told of each trial: the kernel, the trial, how many
    kernels are done, and how many there are. ``again``: the search goes on for kernels that have an answer. ``stoppable``: Ctrl-C
    ends the tuning and not the program; ``stopped``: it did. ``left_out``: keys of islands that are declined, to see what the
    model takes without them; with it no earlier verdict counts, and plans are not kept."""

    budget: Budget = field(default_factory=lambda: Budget(seconds=SESSION_S))
    threads: int | None = None
    hear: Callable[[TunedKernel, Measured, int, int], None] = lambda kernel, measured, done, total: None
    again: bool = False
    stoppable: bool = False
    kernels: list[TunedKernel] = field(default_factory=list)
    stopped: bool = False
    left_out: frozenset[str] | None = None


_request: ContextVar[TuningRequest | None] = ContextVar("xyntra_tuning", default=None)


@contextmanager
def asked(request: TuningRequest) -> Iterator[None]:
    """Sessions that this thread creates meanwhile with `tune=session` are tuned as ``request`` says, and tell it."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def request_at_hand() -> TuningRequest:
    """Of this thread; one of usual limits where nobody asked."""
    found = _request.get()
    return found if found is not None else TuningRequest()


@dataclass(slots=True, kw_only=True)
class _Wanted:
    """Ops with one question. ``ns``: what they are estimated to take together."""

    problem: Problem
    kernel: TunedKernel
    ns: float = 0.0


def tune_islands(result: CompileResult, context: Context, request: TuningRequest) -> bool:
    """Tune the ops that ``result`` spends its time in, the longest first; whether anything is chosen otherwise now. Raises
    UnsupportedError where the search is not installed."""
    tuner = AutoTuner(context, threads=request.threads)
    wanted = _wanted(result, context, tuner.threads)
    request.kernels += [w.kernel for w in wanted]
    end = time.monotonic() + request.budget.seconds
    if not request.again:
        wanted = [w for w in wanted if not w.kernel.result]
    left_ns = sum(w.ns for w in wanted)
    for number, w in enumerate(wanted):
        left_s = end - time.monotonic()
        if left_s < _LEAST_S:
            w.kernel.problem = "the time was over"
            continue
        share = w.ns / left_ns if left_ns else 1.0
        left_ns -= w.ns
        budget = replace(request.budget, seconds=max(_LEAST_S, left_s * share) if math.isfinite(left_s) else left_s)

        def heard(measured: Measured, kernel: TunedKernel = w.kernel, done: int = number) -> None:
            request.hear(kernel, measured, done, len(wanted))

        try:
            w.kernel.result = tuner.optimize(w.problem, budget, heard)
        except UnsupportedError as error:
            if error.hint:  # the search itself cannot be had
                raise
            w.kernel.problem = str(error)
            continue
        except KeyboardInterrupt:
            if not request.stoppable:
                raise
            request.stopped = True
            w.kernel.problem = "was stopped"
            break
    return tuner.choices() != context.tuning.choices()


def _wanted(result: CompileResult, context: Context, threads: int) -> list[_Wanted]:
    """One for each question, the longest first."""
    found: dict[str, _Wanted] = {}
    entries = [entry for entry in result.islands if entry is not None]
    total_bytes = sum(_bytes_of_run(entry.alternatives[0].planned) for entry in entries)
    for entry in entries:
        planned = entry.alternatives[0].planned
        program = planned.program
        once, known = constant_ops(program, live_ops(program))
        ns: dict[int, float] = {}
        with assuming(program.assumed):
            for step in step_costs(entry):
                ns[step.op] = ns.get(step.op, 0.0) + typical(step.cost_ns) * typical(step.times)
        for number, _ in planned.decisions:
            if number in once or number not in ns:
                continue
            op = program.ops[number]
            question = context.question(op, known, threads, expected_sizes((op,), program.assumed))
            key = question.key
            if key not in found:
                known_result = context.tuning.find(question)
                try:
                    problem = problem_of(program, number, known)
                except UnsupportedError:
                    continue  # nothing is known of its sizes, or it cannot be by itself: what is chosen for it is an estimate
                kernel = TunedKernel(label=_label(problem), count=0, share=0.0, floor_ns=0.0, result=known_result)
                with assuming(program.assumed):
                    work = sized_work(op, known)
                    flops, size = typical(work.flops), typical(work.bytes)
                kernel.floor_ns = _floor_ns(flops, size, context, threads)
                between = min(
                    max(0, total_bytes - size), _LARGEST_BETWEEN * max(context.machine.l3_bytes, context.machine.l2_bytes)
                )
                found[key] = _Wanted(problem=replace(problem, between_bytes=between), kernel=kernel)
            found[key].ns += ns[number]
            found[key].kernel.count += 1
    total_ns = sum(w.ns for w in found.values()) or 1.0
    for w in found.values():
        w.kernel.share = w.ns / total_ns
    return sorted((w for w in found.values() if w.kernel.share >= _SMALL), key=lambda w: -w.ns)


def _label(problem: Problem) -> str:
    """With the shapes that its inputs usually have."""
    read = problem.op.inputs[: max(1, problem.op.reads_directly)]
    shapes = ["x".join(str(evaluate(size, problem.sizes)) for size in o.shape) for o in read]
    return " ".join([problem.name, *shapes])


def _bytes_of_run(planned: PlannedProgram) -> int:
    """What a run reads and writes at least."""
    program = planned.program
    times = planned.times_of_op()
    with assuming(program.assumed):
        return sum(typical(sized_work(program.ops[i]).bytes) * typical(times.get(i, 1)) for i, _ in planned.decisions)


def _floor_ns(flops: float, size_bytes: float, context: Context, threads: int) -> float:
    """By the roofline: arithmetic on all threads, or bytes from memory, whichever is longer."""
    if context.device is not None:
        return 0.0
    return max(flops / (context.caps.fma_gflops * threads), size_bytes / context.caps.dram_gbs)
