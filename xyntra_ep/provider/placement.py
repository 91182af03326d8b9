"""Where the kernels of a session run, and why there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from xyntra_ep import knobs
from xyntra_ep import options as options_module
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Options
from xyntra_ep.tracea.interface import trials
from xyntra_ep.tracea.interface.automatic import automatic
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.devices import TARGETS, WITH_TENSORS, DeviceTarget
from xyntra_ep.tracea.runtime.kernel_cache import Hash128


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """``device``: None is the CPU. ``reason``: empty where the options say it. ``may_move``: a session whose device fails it
    before it was created may be planned for the CPU instead. ``lasting``: whether the next process would come to the same."""

    device: DeviceTarget | None = None
    reason: str = ""
    may_move: bool = False
    lasting: bool = True


def place(options: Options, device_id: str | None, hash128: Hash128) -> Placement:
    """What the options ask for, if our kernels are right there. ``device_id``: of the CUDA device that the session's tensors are
    on.

    Raises ConfigError where it cannot be had."""
    placement = _asked(options, device_id)
    device = placement.device
    if device is None or device.gpu.is_cpu or not knobs.current().trials:
        return placement
    context = Context(cache_dir=options.cache_dir, hash128=hash128)
    shown = trials.on_record(device, context) or trials.try_all(device, context)
    if not shown.failed:
        return placement
    if placement.may_move:  # nobody asked for this device
        return Placement(reason=f"{device.name} does not compute as it should: {shown}")
    if shown.is_useless:
        why = f"backend={device.backend} cannot be had: {device.name} does not compute as it should: {shown}"
        raise ConfigError(why, where=options_module.PROVIDER, hint="xyntra doctor --measure tries again")
    return replace(placement, device=replace(device, failed=dict(shown.failed)))


def _asked(options: Options, device_id: str | None) -> Placement:
    if device_id is not None:
        return Placement(device=_with_tensors(options, int(device_id)))
    choose = _CHOOSING.get(options.backend.value)
    if choose is not None:
        return choose(options)
    make_target = TARGETS.get(options.backend.value)
    return Placement(device=make_target() if make_target is not None else None)


def _choose(options: Options) -> Placement:
    def cpu_gflops() -> float:
        caps = Context(cache_dir=options.cache_dir).caps
        return caps.fma_gflops * caps.cores

    choice = automatic(cpu_gflops)
    return Placement(device=choice.device, reason=choice.reason, may_move=choice.device is not None, lasting=choice.lasting)


_CHOOSING: Mapping[str, Callable[[Options], Placement]] = {"auto": _choose}


def _with_tensors(options: Options, device_id: int) -> DeviceTarget:
    make_target = WITH_TENSORS.get(options.backend.value)
    if make_target is None:
        raise ConfigError(
            f"backend={options.backend} cannot use tensors in the memory of a CUDA device",
            where="XyntraEP",
            hint="leave device_id out, or say backend=cuda",
        )
    return make_target(device_id)
