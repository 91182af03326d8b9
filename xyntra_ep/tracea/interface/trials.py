"""Are our kernels right on this device? Every variant is tried once, with small ragged sizes, against float64.

What a device is said to be able to do, and what its driver then does, are two things. So before a device is used for the first
time, each variant computes a sample in a process of its own, through the same plan, launches and copies as a session; one that
fails, hangs, ends the process or computes something else is not chosen on that device, and its reason is told as that of any
variant that was not. Results are kept for the device, its driver, its compiler and this release.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dtypes import to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret, random_like
from xyntra_ep.tracea.core_ir.ops import Product, Program, Value, ValueKind
from xyntra_ep.tracea.doctor.variants import AnyVariant, gpu_variants
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.devices import LIBRARY, DeviceTarget
from xyntra_ep.tracea.interface.islands import CompileResult, Island, compile_islands, write_plan
from xyntra_ep.tracea.interface.samples import SAMPLES, Sample
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.planning.manifest import TensorEntry
from xyntra_ep.tracea.planning.plan import PlanError
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.runtime import trial_child
from xyntra_ep.tracea.runtime.cache_root import TRIALS, atomic_write
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.process import run_all
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR

_LIMIT_S = 60.0  # for what is left to try
_AGAIN_S = 86400.0  # after which failures that may pass are tried again
_WRONG = "computes something else"
_MOST_ENDED = 4  # processes; a device that ends more of them is not worth the wait
# max |a - b| / max |b|: what separates rounding from an element in the wrong place.
_MAX_ERR = {Product.F32: 1e-4, Product.TF32: 3e-3, Product.BF16: 2e-2, Product.F16: 2e-2}

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A sample by one variant."""

    variant: AnyVariant
    sample: Sample
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``failed``: why variants are not to be used, by name; ``tried``: the names of all."""

    tried: tuple[str, ...]
    failed: Mapping[str, str]

    @property
    def is_useless(self) -> bool:
        """Nothing is right."""
        return len(self.failed) == len(self.tried)

    @property
    def lasting(self) -> bool:
        """What failed computes something else; what ended, hung or could not be made may have had another reason than itself."""
        return all(why.startswith(_WRONG) for why in self.failed.values())

    def __str__(self) -> str:
        right = len(self.tried) - len(self.failed)
        lines = [f"{right} of {len(self.tried)} kernel variants compute what they should"]
        return "; ".join(lines + [f"{name}: {why}" for name, why in self.failed.items()])


def on_record(target: DeviceTarget, context: Context) -> Outcome | None:
    """What trials on the device have shown, if any were made. ``context``: whose cache is used."""
    found = _stored(context).get(_key(target))
    if not isinstance(found, dict) or not all(isinstance(why, str) for why in found.values()):
        return None
    shown = _outcome(found)
    return shown if shown.lasting or time.time() - (context.root.path / TRIALS).stat().st_mtime < _AGAIN_S else None


def try_all(target: DeviceTarget, context: Context) -> Outcome:
    """Make the trials, whatever is on record, and keep what they show. It takes some seconds. ``context`` needs the native hash
    function."""
    found = _tried(list(trials(target)), context.on(target))
    rows = _stored(context) | {_key(target): found}
    atomic_write(context.root.path / TRIALS, json.dumps(rows, indent=1, sort_keys=True).encode(), context.root.tmp)
    return _outcome(found)


def trials(target: DeviceTarget) -> Iterator[Trial]:
    """Every variant with every sample that it admits."""
    for sample in SAMPLES:
        program = sample.program()
        op = program.ops[0]
        for variant in gpu_variants().get(type(op), ()):
            if variant.admits(op, BuildContext(caps=SCALAR, program=program, gpu=target.gpu)) is None:
                yield Trial(variant=variant, sample=sample, program=program)


def _outcome(found: Mapping[str, str]) -> Outcome:
    return Outcome(tried=tuple(found), failed={name: why for name, why in found.items() if why})


def _key(target: DeviceTarget) -> str:
    from xyntra_ep import __version__

    return " / ".join((target.identity, target.compiler.salt(target.flags).replace("\0", " "), f"xyntra-ep {__version__}"))


def _stored(context: Context) -> dict[str, Any]:
    try:
        rows = json.loads((context.root.path / TRIALS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}


def _tried(made: Sequence[Trial], context: Context) -> dict[str, str]:
    """Why each variant is not to be used, empty where it is right."""
    found: dict[str, str] = {trial.variant.name: "" for trial in made}

    def fail(trial: Trial, why: str) -> None:
        found[trial.variant.name] = found[trial.variant.name] or why

    with tempfile.TemporaryDirectory(dir=context.root.tmp) as name:
        folder = Path(name)
        ready: list[Trial] = []
        for trial, result, alone in _compiled(made, context):
            if result.failures:
                fail(trial, f"cannot be made: {result.failures[0].reason}")
                continue
            atomic_write(folder / f"{len(ready)}.plan", write_plan("", result, alone), folder)  # that nobody else may write
            ready.append(trial)
        wanted = _write_inputs(folder, ready)
        for number, why in _run(folder, len(ready)).items():
            fail(ready[number], why or _difference(folder, number, ready[number], wanted[number]))
    return found


def _compiled(made: Sequence[Trial], context: Context) -> Iterator[tuple[Trial, CompileResult, Context]]:
    """Each trial's plan. All kernels are compiled at once before, many at a time."""
    alone = [_alone(trial, context) for trial in made]
    sources: dict[str, KernelSource] = {}
    for trial, chosen in zip(made, alone, strict=True):
        try:
            planned = plan_program(trial.program, chosen.caps, builder=chosen.builder)
        except (PlanError, InvariantError):
            continue  # compile_islands tells it
        sources |= {source.text: source.distinct() for source in planned.kernels}  # as compile_islands looks for them
    context.kernels.compile_many(list(sources.values()))
    for trial, chosen in zip(made, alone, strict=True):
        yield trial, compile_islands([_island(trial)], chosen), chosen


def _alone(trial: Trial, context: Context) -> Context:
    """What decides for the trial's variant, at the size that the sample takes the device for."""
    device = context.device
    assert device is not None
    if trial.sample.units:
        device = replace(device, gpu=replace(device.gpu, units=trial.sample.units))
    return context.on(device).choosing({type(trial.program.ops[0]): (trial.variant,)})


def _island(trial: Trial) -> Island:
    inputs, outputs = (
        [
            TensorEntry(name=f"{kind.value}{value.index}", elem_type=value.dtype.ort, rank=len(value.shape))
            for value in _values(trial.program, kind)
        ]
        for kind in (ValueKind.INPUT, ValueKind.OUTPUT)
    )
    name = f"{trial.variant.name}: {trial.sample.name}, {trial.sample.product}"
    return Island(name=name, nodes=(0,), inputs=tuple(inputs), outputs=tuple(outputs), alternatives=(trial.program,))


def _values(program: Program, kind: ValueKind) -> list[Value]:
    return sorted((v for v in program.values if v.kind is kind), key=lambda v: v.index)


def _write_inputs(folder: Path, ready: Sequence[Trial]) -> list[list[Array]]:
    """Normal numbers, or small integers, for each trial; what its outputs should be, in float64."""
    wanted, shapes = [], []
    for number, trial in enumerate(ready):
        extents = trial.sample.extents
        inputs, outputs = (_values(trial.program, kind) for kind in (ValueKind.INPUT, ValueKind.OUTPUT))
        stored = [random_like(extents(v), v.dtype, 100 * number + i) for i, v in enumerate(inputs)]
        for i, array in enumerate(stored):
            (folder / f"{number}.in.{i}").write_bytes(array.tobytes())
        sizes = [math.prod(extents(v)) * v.dtype.bytes for v in outputs]
        shapes.append({"inputs": [extents(v) for v in inputs], "outputs": sizes})
        wanted.append(interpret(trial.program, stored))
    (folder / trial_child.SHAPES).write_text(json.dumps(shapes), encoding="utf-8")
    return wanted


def _run(folder: Path, count: int) -> dict[int, str]:
    """What went wrong with each plan, empty where it came to its end. After one that ends the process the rest has a new one."""
    found: dict[int, str] = {}
    ended = 0
    while (left := [n for n in range(count) if n not in found]) and ended < _MOST_ENDED:
        command = [sys.executable, trial_child.__file__, str(LIBRARY), str(folder), *map(str, left)]
        [result] = run_all([command], folder=folder, parallel=1, timeout_s=_LIMIT_S)
        said = result.said(trial_child.MARK)
        found |= {fact["tried"]: fact["problem"] for fact in said if "tried" in fact}
        trying = [fact["trying"] for fact in said if "trying" in fact and fact["trying"] not in found]
        if trying or not said:
            found[trying[-1] if trying else left[0]] = f"the process that tried it {result.problem or 'ended early'}"
        ended += 1
    return {n: found.get(n, "was not tried: those before it ended their processes") for n in range(count)}


def _difference(folder: Path, number: int, trial: Trial, wanted: Sequence[Array]) -> str:
    """Why an output is not what it should be."""
    for i, (value, right) in enumerate(zip(_values(trial.program, ValueKind.OUTPUT), wanted, strict=True)):
        stored = np.frombuffer((folder / f"{number}.out.{i}").read_bytes(), value.dtype.numpy)
        got = to_float64(stored, value.dtype).reshape(right.shape)
        most = _MAX_ERR[trial.sample.product] if value.dtype.is_float else 0.0
        error = float(np.abs(got - right).max() / (np.abs(right).max() or 1))
        if not error <= most:
            return f"{_WRONG}: error {error:.2g}, {most:g} allowed"
    return ""
