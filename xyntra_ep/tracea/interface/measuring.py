"""What runs cost on a device, measured there as sessions have them: in plans of their own, through the same native code."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import PRODUCT_OF, ValueKind
from xyntra_ep.tracea.core_ir.work import sized_work
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import DeviceCosts, Times
from xyntra_ep.tracea.interface.islands import compile_islands, step_costs, write_plan
from xyntra_ep.tracea.interface.samples import Sample, named
from xyntra_ep.tracea.interface.trial_jobs import Answer, TrialJobs, island_of, values_of

_RUNS, _LARGE_RUNS = 201, 11  # of which the median counts
_COPIES = (4 << 10, 256 << 10, 4 << 20, 32 << 20)  # bytes; the smallest is as in a run that moves next to nothing
_ALL = ("measuring",)  # one problem, and nothing is known
_NOTHING = Sample(name="next to nothing", build=named("add", n=4))
# What is bound by computing, in 16 bits too, and by the memory: the larger part of a model is one of these.
_PRODUCT = Sample(name="a large product", build=named("gemm", m=1024, n=1024, k=1024))
_SUM = Sample(name="a large sum", build=named("add", n=1 << 22))


def measure(target: DeviceTarget, context: Context) -> DeviceCosts | None:
    """Takes about a second. ``context`` needs the native hash function. None where the device does not do it."""
    context = context.on(target)
    half = (replace(_PRODUCT, product=PRODUCT_OF[dtype]) for dtype in sorted(target.gpu.halves)[:1])  # as fast as the other one
    large = (_PRODUCT, _SUM, *half)
    with tempfile.TemporaryDirectory(dir=context.root.tmp) as folder:
        jobs = TrialJobs(Path(folder), target.identity)
        estimates = [_add(jobs, sample, context) for sample in (_NOTHING, *large)]
        if not all(estimates):
            return None
        for size in _COPIES:
            jobs.copy(size, about=_ALL, timed=_LARGE_RUNS if size == _COPIES[-1] else _RUNS)
        answers = jobs.carry_out()
    if any(answer.problem for answer in answers):
        return None
    nothing, *runs = answers[: len(estimates)]
    taken = [max(1.0, answer.ns["kernels_ns"]) for answer in runs]
    return DeviceCosts(
        run_ns=nothing.ns["all_ns"],
        there_ns=_times(answers[len(estimates) :], "there_ns"),
        back_ns=_times(answers[len(estimates) :], "back_ns"),
        kernels=max(ns / estimate for ns, estimate in zip(taken, estimates[1:], strict=True)),
        gflops=evaluate(sized_work(_PRODUCT.program().ops[0]).flops, {}) / taken[0],
        is_measured=True,
    )


def _add(jobs: TrialJobs, sample: Sample, context: Context) -> float:
    """What the sample's kernels are estimated to take; 0 where there are none."""
    program = sample.program()
    result = compile_islands([island_of(program, sample.name)], context)
    [entry] = result.islands
    if entry is None:
        return 0.0
    inputs = [random_like(sample.extents(v), v.dtype, i) for i, v in enumerate(values_of(program, ValueKind.INPUT))]
    sizes = [math.prod(sample.extents(v)) * v.dtype.bytes for v in values_of(program, ValueKind.OUTPUT)]
    timed = _RUNS if sample is _NOTHING else _LARGE_RUNS
    jobs.run(write_plan("", result, context), inputs, sizes, about=_ALL, timed=timed)
    return sum(evaluate(step.cost_ns, {}) for step in step_costs(entry))


def _times(copies: list[Answer], way: str) -> Times:
    """Beyond what the smallest copy takes, which is part of any run; a larger copy never takes less than a smaller one."""
    least, *more = (answer.ns[way] for answer in copies)
    beyond = accumulate((max(1.0, ns - least) for ns in more), max)
    return tuple(zip(_COPIES[1:], beyond, strict=True))
