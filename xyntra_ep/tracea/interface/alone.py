"""Ops by themselves: each as a plan of its own, and whether what it computed is right. Trials of a device and tuning do that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.ops import Product, Program, ValueKind
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, compile_islands
from xyntra_ep.tracea.interface.trial_jobs import TrialJobs, island_of, values_of
from xyntra_ep.tracea.planning.plan import PlanError
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime.kernel_source import KernelSource

WRONG = "computes something else"
# max |a - b| / max |b|: what separates rounding from an element in the wrong place.
_MAX_ERR = {Product.F32: 1e-4, Product.TF32: 3e-3} | dict.fromkeys((Product.BF16, Product.F16, Product.INT8, Product.INT8W), 2e-2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """A program that is an island by itself; ``context`` decides for what computes it."""

    name: str
    program: Program
    context: Context


def compiled(made: Sequence[Alone], context: Context) -> list[CompileResult]:
    """The plan of each. All kernels are compiled at once before, many at a time, by ``context``."""
    sources: dict[str, KernelSource] = {}
    for alone in made:
        try:
            planned = plan_program(alone.program, alone.context.caps, builder=alone.context.builder)
        except (PlanError, InvariantError):
            continue  # compile_islands tells it
        sources |= {source.text: source.distinct() for source in planned.kernels}  # as compile_islands looks for them
    context.kernels.compile_many([*sources.values()])
    return [compile_islands([island_of(alone.program, alone.name)], alone.context) for alone in made]


def outputs(jobs: TrialJobs, number: int, program: Program, shapes: Sequence[Sequence[int]]) -> list[Array]:
    """What a run has written, in float64 (int64, bool)."""
    return [
        to_float64(np.frombuffer(jobs.output(number, i), value.dtype.numpy), value.dtype).reshape(shape)
        for i, (value, shape) in enumerate(zip(values_of(program, ValueKind.OUTPUT), shapes, strict=True))
    ]


def difference(jobs: TrialJobs, number: int, program: Program, wanted: Sequence[Array], product: Product) -> str:
    """Why an output is not what it should be, computed in ``product``; empty where all are."""
    got = outputs(jobs, number, program, [right.shape for right in wanted])
    for value, ours, right in zip(values_of(program, ValueKind.OUTPUT), got, wanted, strict=True):
        most = _MAX_ERR[product] if value.dtype.is_float else 0.0
        ours, right = _numbers(ours), _numbers(_stored(right, value.dtype))
        finite = np.isfinite(right)
        odd = int((~finite & ~((ours == right) | (np.isnan(ours) & np.isnan(right)))).sum())
        if odd:
            return f"{WRONG}: {odd} of NaN and infinity are wrong"
        error = float(np.abs(ours[finite] - right[finite]).max(initial=0.0) / (np.abs(right[finite]).max(initial=0.0) or 1.0))
        if not error <= most:
            return f"{WRONG}: error {error:.2g}, {most:g} allowed"
    return ""


def _stored(array: Array, dtype: DType) -> Array:
    """As memory has it: what is too large for the type is infinite there."""
    with np.errstate(over="ignore"):
        return to_float64(from_float64(array, dtype), dtype)


def _numbers(array: Array) -> Array:
    """Which can be subtracted, as bools cannot."""
    return array.astype(np.int64) if array.dtype == np.bool_ else array
