"""Which device computes when nobody names one: what the machine shows decides, and the CPU where nothing better is sure to work.

A driver is asked only where files show a GPU, so a machine without one pays for a look at three folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.interface.devices import LIBRARY, DeviceTarget, cuda_target, opencl_target
from xyntra_ep.tracea.runtime import cuda, opencl
from xyntra_ep.tracea.runtime.opencl import OpenClDevice, OpenClSurvey

_LIMIT_S = 20.0  # for a driver's answer: a session waits for it
_BETTER = 4.0  # times the processor's rate: what is between a GPU's best and our kernels there, and the way to it and back


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``device``: None is the CPU. ``lasting``: whether the next process would choose the same. ``passed``: the backends that
    were asked before, and why they are not it."""

    device: DeviceTarget | None = None
    reason: str
    lasting: bool = True
    passed: tuple[tuple[str, str], ...] = ()


def automatic(cpu_gflops: Callable[[], float]) -> Choice:
    """The first CUDA device that works; else a GPU of OpenCL that is much faster than the processor (``cpu_gflops``: all cores);
    else the CPU. Never an OpenCL device that is the processor itself."""
    why: list[str] = []
    no_cuda, no_opencl = "there is no CUDA device", "there is no GPU with a driver of OpenCL"
    lasting = True
    if cuda.at_hand(LIBRARY):
        gpus = cuda.survey(LIBRARY, _LIMIT_S)
        lasting = gpus.lasting
        try:
            device = cuda_target(gpus)
            return Choice(device=device, reason=f"{device.name} works")
        except ConfigError as error:
            no_cuda = error.what.removeprefix("backend=cuda cannot be had: ")
            why.append(no_cuda)
    if opencl.gpu_at_hand():
        found, slow = opencl.survey(_LIMIT_S), cpu_gflops()
        lasting = lasting and found.lasting
        fast = tuple(device for device in found.working if device.gflops > _BETTER * slow)
        if fast:
            best = max(fast, key=lambda device: device.gflops)
            device = opencl_target(OpenClSurvey(devices=(best,)))
            reason = f"{device.name} works, {best.gflops:.0f} GFLOP/s against {slow:.0f}"
            return Choice(device=device, reason=reason, passed=(("backend cuda", no_cuda),))
        no_opencl = "; ".join(_slower(device, slow) for device in found.working) or found.missing
        why.append(no_opencl)
    passed = (("backend cuda", no_cuda), ("backend opencl", no_opencl))
    return Choice(reason="; ".join(why) or "there is no GPU", lasting=lasting, passed=passed)


def _slower(device: OpenClDevice, cpu_gflops: float) -> str:
    if device.is_cpu:
        return f"{device.name} is the processor"
    rate = f"{device.gflops:.0f} GFLOP/s" if device.gflops else "a rate that is not known"
    return f"{device.name} has {rate} against the processor's {cpu_gflops:.0f}"
