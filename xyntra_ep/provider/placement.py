"""Where the kernels of a session run, and why there."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from xyntra_ep import knobs
from xyntra_ep import options as options_module
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Options
from xyntra_ep.tracea.backends import BACKENDS, DeviceTarget
from xyntra_ep.tracea.doctor.policy import Policy
from xyntra_ep.tracea.interface import trials
from xyntra_ep.tracea.interface.automatic import automatic
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.device_costs import ASSUMED, DeviceCosts
from xyntra_ep.tracea.interface.devices import with_tensors
from xyntra_ep.tracea.runtime.kernel_files import Hash128


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """``device``: None is the CPU. ``costs``: of runs on it. ``reason``: empty where the options say it. ``may_move``: a session
    whose device fails it before it was created may be planned for the CPU instead. ``lasting``: whether the next process would
    come to the same."""

    device: DeviceTarget | None = None
    costs: DeviceCosts = ASSUMED
    reason: str = ""
    may_move: bool = False
    lasting: bool = True


def place(options: Options, device_id: str | None, hash128: Hash128) -> Placement:
    """What the options ask for. ``device_id``: of the device that the session's tensors are on. A device that they name is
    one on which our kernels are right; what nobody asked for is to be `confirmed` when it is known that the graph gains there.

    Raises ConfigError where it cannot be had."""
    placement = _asked(options, device_id)
    return placement if placement.may_move else _judged(placement, options, hash128)


def confirmed(placement: Placement, options: Options, hash128: Hash128) -> Placement:
    """``placement`` with what trials have measured, or on the CPU where the device that nobody asked for fails one."""
    try:
        return _judged(placement, options, hash128)
    except Exception as error:  # whatever it is, the CPU can have the session
        return _without(f"trying our kernels failed: {type(error).__name__}: {error}")


def _without(why: str) -> Placement:
    return Placement(reason=why, lasting=False)


def _judged(placement: Placement, options: Options, hash128: Hash128) -> Placement:
    device = placement.device
    if device is None or device.gpu.is_cpu or not knobs.current().trials:
        return placement
    context = Context(cache_dir=options.cache_dir, hash128=hash128)
    shown = trials.on_record(device, context) or trials.try_all(device, context)
    if not shown.failed:
        return replace(placement, costs=shown.costs or ASSUMED)
    if placement.may_move:  # nobody asked for this device
        why = f"{device.name} does not compute as it should: {shown}"
        return Placement(reason=why, lasting=placement.lasting and shown.lasting)
    if shown.is_useless:
        why = f"backend={device.backend} cannot be had: {device.name} does not compute as it should: {shown}"
        raise ConfigError(why, where=options_module.PROVIDER, hint="xyntra doctor --measure tries again")
    lasting = placement.lasting and shown.lasting
    return replace(placement, device=replace(device, failed=dict(shown.failed)), lasting=lasting)


def _asked(options: Options, device_id: str | None) -> Placement:
    if device_id is not None:
        try:
            ordinal = knobs.parse_int(device_id, least=0)
        except ValueError as error:
            raise ConfigError(
                f"{options_module.DEVICE_ID}={device_id!r} is not valid", where=options_module.PROVIDER, hint=f"it {error}"
            ) from None
        return Placement(device=with_tensors(ordinal, options.backend if options.backend in BACKENDS else None))
    if options.backend in BACKENDS:
        return Placement(device=BACKENDS[options.backend].target())
    policy = Policy.of(options)
    if math.isinf(policy.device_doubt):
        return Placement(reason=f"policy={policy.goal}")
    return _choose(options)


def _choose(options: Options) -> Placement:
    def cpu_gflops() -> float:
        caps = Context(cache_dir=options.cache_dir).caps
        return caps.fma_gflops * caps.cores

    def measured(device: DeviceTarget) -> DeviceCosts | None:
        shown = trials.on_record(device, Context(cache_dir=options.cache_dir)) if knobs.current().trials else None
        return shown.costs if shown is not None else None

    try:
        choice = automatic(cpu_gflops, measured)
    except Exception as error:  # a driver or package that is not as it should be must not cost the CPU's kernels, too
        return _without(f"looking for a GPU failed: {type(error).__name__}: {error}")
    may_move = choice.device is not None
    return Placement(device=choice.device, costs=choice.costs, reason=choice.reason, may_move=may_move, lasting=choice.lasting)
