"""Where the kernels of a session run, and why there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Options
from xyntra_ep.tracea.interface.automatic import automatic
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.devices import TARGETS, WITH_TENSORS, DeviceTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """``device``: None is the CPU. ``reason``: empty where the options say it. ``may_move``: a session whose device fails it
    before it was created may be planned for the CPU instead. ``lasting``: whether the next process would come to the same."""

    device: DeviceTarget | None = None
    reason: str = ""
    may_move: bool = False
    lasting: bool = True


def place(options: Options, device_id: str | None) -> Placement:
    """What the options ask for. ``device_id``: of the CUDA device that the session's tensors are on.

    Raises ConfigError where it cannot be had."""
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
