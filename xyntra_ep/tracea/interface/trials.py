"""Are our kernels right on this device? Every variant is tried once, with small ragged sizes, against float64.

What a device is said to be able to do, and what its driver then does, are two things. So before a device is used for the first
time, each variant computes a sample in a process of its own, through the same plan, launches and copies as a session; one that
fails, hangs, ends the process or computes something else is not chosen on that device, and its reason is told as that of any
variant that was not. What one does to its process is no other's to pay for, and one that hangs does so once
(`trial_jobs.py`). What a run costs beside its kernels is measured then, too (`measuring.py`). Both are kept for the device, its
driver, its compiler and this release.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.core_ir.interpreter import interpret, random_like
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind
from xyntra_ep.tracea.doctor.variants import AnyVariant, gpu_variants
from xyntra_ep.tracea.interface import device_costs
from xyntra_ep.tracea.interface.alone import WRONG, Alone, compiled, difference
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import DeviceCosts
from xyntra_ep.tracea.interface.islands import write_plan
from xyntra_ep.tracea.interface.measuring import measure
from xyntra_ep.tracea.interface.samples import SAMPLES, Sample
from xyntra_ep.tracea.interface.trial_jobs import TrialJobs, values_of
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.runtime.cache_root import TRIALS, atomic_write
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.trusted_file import read_trusted

_AGAIN_S = 86400.0  # after which failures that may pass are tried again

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A sample by one variant."""

    variant: AnyVariant
    sample: Sample
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """``failed``: why variants are not to be used, by name; ``tried``: the names of all; ``costs``: of runs, None where they
    could not be measured."""

    tried: tuple[str, ...]
    failed: Mapping[str, str]
    costs: DeviceCosts | None = None

    @property
    def is_useless(self) -> bool:
        """Nothing is right."""
        return len(self.failed) == len(self.tried)

    @property
    def lasting(self) -> bool:
        """What failed computes something else; what ended, hung or could not be made may have had another reason than itself."""
        return all(why.startswith(WRONG) for why in self.failed.values())

    def __str__(self) -> str:
        right = len(self.tried) - len(self.failed)
        lines = [f"{right} of {len(self.tried)} kernel variants compute what they should"]
        return "; ".join(lines + [f"{name}: {why}" for name, why in self.failed.items()])


def on_record(target: DeviceTarget, context: Context) -> Outcome | None:
    """What trials on the device have shown, if any were made. ``context``: whose cache is used."""
    row = _rows(context).get(_key(target))
    if not isinstance(row, dict):
        return None
    found = row.get("variants")
    if not isinstance(found, dict) or not all(isinstance(why, str) for why in found.values()):
        return None
    shown = _outcome(found, device_costs.read(row.get("costs")))
    return shown if shown.lasting or time.time() - (context.root.path / TRIALS).stat().st_mtime < _AGAIN_S else None


def try_all(target: DeviceTarget, context: Context) -> Outcome:
    """Make the trials, whatever is on record, and keep what they show. It takes some seconds. ``context`` needs the native hash
    function."""
    found = _tried(list(trials(target)), context.on(target))
    costs = measure(replace(target, failed={name: why for name, why in found.items() if why}), context)
    row = {"variants": found, "costs": device_costs.stored(costs) if costs is not None else None}
    rows = _rows(context) | {_key(target): row}
    atomic_write(context.root.path / TRIALS, json.dumps(rows, indent=1, sort_keys=True).encode(), context.root.tmp)
    return _outcome(found, costs)


def trials(target: DeviceTarget) -> Iterator[Trial]:
    """Every variant with every sample that it admits."""
    for sample in SAMPLES:
        program = sample.program()
        op = program.ops[0]
        for variant in gpu_variants().get(type(op), ()):
            if variant.admits(op, BuildContext(caps=SCALAR, program=program, gpu=target.gpu)) is None:
                yield Trial(variant=variant, sample=sample, program=program)


def _outcome(found: Mapping[str, str], costs: DeviceCosts | None) -> Outcome:
    return Outcome(tried=tuple(found), failed={name: why for name, why in found.items() if why}, costs=costs)


def _key(target: DeviceTarget) -> str:
    from xyntra_ep import __version__

    return " / ".join((target.identity, target.compiler.salt(target.flags).replace("\0", " "), f"xyntra-ep {__version__}"))


def _rows(context: Context) -> dict[str, Any]:
    try:
        rows = json.loads(read_trusted(context.root.path / TRIALS))
    except (OSError, ValueError):
        return {}
    return rows if isinstance(rows, dict) else {}


def _tried(made: Sequence[Trial], context: Context) -> dict[str, str]:
    """Why each variant is not to be used, empty where it is right."""
    found: dict[str, str] = {trial.variant.name: "" for trial in made}

    def fail(trial: Trial, why: str) -> None:
        found[trial.variant.name] = found[trial.variant.name] or why

    with tempfile.TemporaryDirectory(dir=context.root.tmp) as folder:
        jobs = TrialJobs(Path(folder), _device(context).identity)
        ready: list[tuple[Trial, list[Array]]] = []
        ordered = sorted(made, key=_risk)
        alone = [_alone(trial, context) for trial in ordered]
        for trial, by_itself, result in zip(ordered, alone, compiled(alone, context), strict=True):
            if result.failures:
                fail(trial, f"cannot be made: {result.failures[0].reason}")
                continue
            extents = trial.sample.extents
            inputs, outputs = (values_of(trial.program, kind) for kind in (ValueKind.INPUT, ValueKind.OUTPUT))
            stored = [random_like(extents(v), v.dtype, 100 * len(ready) + i) for i, v in enumerate(inputs)]
            sizes = [math.prod(extents(v)) * v.dtype.bytes for v in outputs]
            jobs.run(write_plan("", result, by_itself.context), stored, sizes, about=(trial.variant.name, *trial.variant.parts))
            ready.append((trial, interpret(trial.program, stored)))
        for number, answer in enumerate(jobs.carry_out()):
            trial, wanted = ready[number]
            fail(trial, answer.problem or difference(jobs, number, trial.program, wanted, trial.sample.product))
    return found


def _risk(trial: Trial) -> tuple[bool, bool]:
    """What may hang is tried last, and what launches others' kernels behind these."""
    return trial.variant.may_hang, bool(trial.variant.parts)


def _alone(trial: Trial, context: Context) -> Alone:
    """With what decides for the trial's variant, at the size that the sample takes the device for."""
    device = _device(context)
    if trial.sample.units:
        device = replace(device, gpu=replace(device.gpu, units=trial.sample.units))
    chosen = context.on(device).choosing({type(trial.program.ops[0]): (trial.variant,)})
    name = f"{trial.variant.name}: {trial.sample.name}, {trial.sample.product}"
    return Alone(name=name, program=trial.program, context=chosen)


def _device(context: Context) -> DeviceTarget:
    assert context.device is not None
    return context.device
