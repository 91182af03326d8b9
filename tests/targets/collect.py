"""Tries every variant of every target as far as this machine can: runs it, simulates it, or compiles it.

The samples are those of a device's trials (`interface/samples.py`), and three kinds of ops that only the processor has.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.gpu.run import check_on_metal, check_simulated
from tests.support.machine import runnable
from tests.support.programs.recurrences import recurrence
from tests.support.run_program import check_program
from tests.targets.evidence import Evidence, State
from tests.tracea.kernels import block_programs, low_rank_programs
from tests.tracea.kernels.block_programs import BlockCase
from tests.tracea.kernels.low_rank_programs import LowRankCase
from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.backends.metal import APPLE_GPU
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Product, ValueKind
from xyntra_ep.tracea.doctor.variants import cpu_variants
from xyntra_ep.tracea.interface import trials
from xyntra_ep.tracea.interface.alone import Alone, compiled
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.devices import device_backends, known_target
from xyntra_ep.tracea.interface.samples import SAMPLES
from xyntra_ep.tracea.interface.trial_jobs import values_of
from xyntra_ep.tracea.interface.trials import Trial
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

# Devices that need not be here, by target: kernels are compiled for them.
ELSEWHERE = {"cuda": ("a100", "h200"), "hip": ("gfx90a", "gfx942", "gfx1100")}
MAX_ERR = {Product.F32: 1e-4, Product.TF32: 3e-3} | dict.fromkeys((Product.BF16, Product.F16), 2e-2)
GPU_RUNS = Path(__file__).resolve().parents[2] / "reports" / "gpu"


def _evidence(target: str, trial: Trial, state: State, where: str, why: str = "") -> Evidence:
    op = type(trial.program.ops[0]).__name__
    name = trial.variant.name
    return Evidence(target=target, op=op, variant=name, state=State.FAILED if why else state, where=where, why=why)


def _given(trial: Trial) -> list[Any]:
    extents = trial.sample.extents
    return [random_like(extents(v), v.dtype, i) for i, v in enumerate(values_of(trial.program, ValueKind.INPUT))]


def on_the_processor() -> Iterator[Evidence]:
    """Each variant that admits a sample, with the widest instructions that are here."""
    from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR

    caps = runnable(AVX512, AVX2, SCALAR)[0]
    where = f"{caps.isa}, {platform.machine()}"
    programs = [block_programs.build(BlockCase(m=5, k=64, n=24))]
    lstm = recurrence("lstm", 19, steps=3, rows=2)
    inputs, constants = (
        [random_like(tuple(evaluate(n, {}) for n in v.shape), v.dtype, i) for i, v in enumerate(values_of(lstm, kind))]
        for kind in (ValueKind.INPUT, ValueKind.CONST)
    )
    programs.append((lstm, inputs, constants))
    programs.append(low_rank_programs.build(LowRankCase(m=5, k=21, n=53, rank=4, constant_b=False, constant=False)))
    for sample in SAMPLES:
        if sample.product is Product.F32:
            program = sample.program()
            given = [random_like(sample.extents(v), v.dtype, i) for i, v in enumerate(values_of(program, ValueKind.INPUT))]
            programs.append((program, given, []))
    for program, inputs, constants in programs:
        op = program.ops[0]
        for variant in cpu_variants().get(type(op), ()):
            if variant.admits(op, BuildContext(caps=caps, program=program)) is not None:
                continue
            why = _failure(partial(check_program, program, inputs, constants, caps, MAX_ERR[Product.F32], variants=[variant]))
            state = State.FAILED if why else State.RUN
            yield Evidence(target="cpu", op=type(op).__name__, variant=variant.name, state=state, where=where, why=why)


def on_devices(cache: Path) -> Iterator[Evidence]:
    """By the trials of each device that works here."""
    from xyntra_ep.provider import registration

    for backend in device_backends():
        found = backend.survey()
        if found.missing:
            continue
        target = backend.target(found)
        target = replace(target, gpu=replace(target.gpu, is_cpu=False))  # kernels for GPUs, too, that a session would not choose
        context = Context(cache_dir=cache, hash128=hash128_of(registration.library()), device=target)
        shown = trials.try_all(target, context)
        told: set[str] = set()
        for trial in trials.trials(target):
            if trial.variant.name not in told:
                told.add(trial.variant.name)
                yield _evidence(backend.name, trial, State.RUN, target.name, shown.failed.get(trial.variant.name, ""))


def _once(made: Iterable[Trial]) -> list[Trial]:
    """One of each variant and precision: the tests have them all."""
    found: dict[tuple[str, Product], Trial] = {}
    for trial in made:
        found.setdefault((trial.variant.name, trial.sample.product), trial)
    return [*found.values()]


def simulated() -> Iterator[Evidence]:
    """The IR of CUDA's and HIP's kernels by the simulation, for the last GPU of each, where it knows what they are made of."""
    for name, gpus in ELSEWHERE.items():
        target = known_target(gpus[-1])
        yield from _each(name, _once(trials.trials(target)), f"{target.gpu.name} by the simulation", _simulate, target.gpu)


def on_the_host() -> Iterator[Evidence]:
    """Metal's text, by a shim."""
    yield from _each("metal", _metal_trials(), "text run on a processor", _on_metal, APPLE_GPU)


def _metal_trials() -> list[Trial]:
    from tests.tracea.kernels.gpu.test_languages import all_trials

    return _once(all_trials())


def _each(target: str, made: Sequence[Trial], where: str, check: Callable[[Trial, Gpu], None], gpu: Gpu) -> Iterator[Evidence]:
    for trial in made:
        units = replace(gpu, units=trial.sample.units) if trial.sample.units else gpu
        why = _failure(partial(check, trial, units))
        if "no meaning for" not in why:
            yield _evidence(target, trial, State.SIMULATED, where, why)


def _simulate(trial: Trial, gpu: Gpu) -> None:
    check_simulated(trial.program, _given(trial), [], MAX_ERR[trial.sample.product], variants=[trial.variant], gpu=gpu)


def _on_metal(trial: Trial, gpu: Gpu) -> None:
    check_on_metal(trial.program, _given(trial), [], MAX_ERR[trial.sample.product], variants=[trial.variant], gpu=gpu)


def _failure(check: Callable[[], object]) -> str:
    try:
        with np.errstate(all="ignore"):
            check()
    except (AssertionError, XyntraError) as error:
        return str(error).splitlines()[0][:200] or type(error).__name__
    return ""


def compiled_elsewhere(cache: Path) -> Iterator[Evidence]:
    """By NVIDIA's and AMD's compilers."""
    from xyntra_ep.provider import registration

    for name, gpus in ELSEWHERE.items():
        for gpu in gpus:
            target = known_target(gpu)
            context = Context(cache_dir=cache, hash128=hash128_of(registration.library()), device=target)
            made = _once(trials.trials(target))
            chosen = [context.choosing({type(t.program.ops[0]): (t.variant,)}) for t in made]
            alone = [Alone(name=t.variant.name, program=t.program, context=c) for t, c in zip(made, chosen, strict=True)]
            where = f"{target.gpu.target} by {Path(target.compiler.name).name}"
            for trial, result in zip(made, compiled(alone, context), strict=True):
                why = result.failures[0].reason if result.failures else ""
                yield _evidence(name, trial, State.COMPILED, where, why)


def in_stored_runs() -> Iterator[Evidence]:
    """What `bench device` has run on GPUs, with right results: reports/gpu."""
    ops = {variant.name: op.__name__ for op, variants in _gpu_table().items() for variant in variants}
    for path in sorted(GPU_RUNS.glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        names = [gpu["name"] for gpu in run["environment"].get("gpus", ())]
        for point in run.get("points", ()):
            if point["error"] is not None and point["error"] < 2e-2 and not point.get("failure"):
                for variant in point["variants"]:
                    if variant in ops:
                        yield Evidence(target="cuda", op=ops[variant], variant=variant, state=State.RUN, where=names[0])


def _gpu_table() -> Any:
    from xyntra_ep.tracea.doctor.variants import gpu_variants

    return gpu_variants()


def everything(cache: Path) -> list[Evidence]:
    return [
        *on_the_processor(),
        *on_devices(cache / "devices"),
        *simulated(),
        *on_the_host(),
        *compiled_elsewhere(cache / "compiled"),
        *in_stored_runs(),
    ]
