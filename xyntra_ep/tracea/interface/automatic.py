"""Which device computes when nobody names one: what the machine shows decides, and the CPU where nothing better is sure to work.

A driver is asked only where files show a GPU, so a machine without one pays for a look at three folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.interface.device_costs import ASSUMED, DeviceCosts
from xyntra_ep.tracea.interface.devices import LIBRARY, DeviceTarget, cuda_target, opencl_target
from xyntra_ep.tracea.runtime import cuda, opencl
from xyntra_ep.tracea.runtime.opencl import OpenClDevice, OpenClSurvey

_LIMIT_S = 20.0  # for a driver's answer: a session waits for it
_BETTER = 4.0  # times the processor's rate, of a GPU that was not tried: what may be between its best and our kernels there


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """``device``: None is the CPU. ``costs``: of runs on it. ``lasting``: whether the next process would choose the same.
    ``passed``: the backends that were asked before, and why they are not it."""

    device: DeviceTarget | None = None
    costs: DeviceCosts = ASSUMED
    reason: str
    lasting: bool = True
    passed: tuple[tuple[str, str], ...] = ()


Measured = Callable[[DeviceTarget], DeviceCosts | None]


def automatic(cpu_gflops: Callable[[], float], measured: Measured = lambda device: None) -> Choice:
    """The first CUDA device that works; else a GPU of OpenCL that is faster than the processor (``cpu_gflops``: all cores), much
    faster where that is by its clock alone; else the CPU. Never an OpenCL device that is the processor itself. ``measured``: what
    trials have found out about a device."""
    why: list[str] = []
    no_cuda, no_opencl = "there is no CUDA device", "there is no GPU with a driver of OpenCL"
    lasting = True
    if cuda.at_hand(LIBRARY):
        gpus = cuda.survey(LIBRARY, _LIMIT_S)
        lasting = gpus.lasting
        try:
            device = cuda_target(gpus)
            return Choice(device=device, costs=measured(device) or ASSUMED, reason=f"{device.name} works")
        except ConfigError as error:
            no_cuda = error.what.removeprefix("backend=cuda cannot be had: ")
            why.append(no_cuda)
    if opencl.gpu_at_hand():
        found, slow = opencl.survey(_LIMIT_S), cpu_gflops()
        lasting = lasting and found.lasting
        rated = [_Rated.of(device, measured) for device in found.working]
        fast = [one for one in rated if one.gflops > one.better * slow]
        if fast:
            best = max(fast, key=lambda one: one.gflops)
            reason = f"{best.target.name} works, {best} against {slow:.0f}"
            return Choice(device=best.target, costs=best.costs, reason=reason, passed=(("backend cuda", no_cuda),))
        no_opencl = "; ".join(one.slower(slow) for one in rated) or found.missing
        why.append(no_opencl)
    passed = (("backend cuda", no_cuda), ("backend opencl", no_opencl))
    return Choice(reason="; ".join(why) or "there is no GPU", lasting=lasting, passed=passed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rated:
    """A device of OpenCL and its rate: of our kernels, where that was measured, else by its clock."""

    device: OpenClDevice
    target: DeviceTarget
    costs: DeviceCosts

    @classmethod
    def of(cls, device: OpenClDevice, measured: Measured) -> _Rated:
        target = opencl_target(OpenClSurvey(devices=(device,)))
        costs = None if device.is_cpu else measured(target)
        return cls(device=device, target=target, costs=costs or ASSUMED)

    @property
    def gflops(self) -> float:
        return self.costs.gflops if self.costs.is_measured else self.device.gflops

    @property
    def better(self) -> float:
        """Times the processor's rate that it has to have."""
        return 1.0 if self.costs.is_measured else _BETTER

    def __str__(self) -> str:
        return f"{self.gflops:.0f} GFLOP/s {'measured' if self.costs.is_measured else 'by its clock'}"

    def slower(self, cpu_gflops: float) -> str:
        """Why it is not taken."""
        if self.device.is_cpu:
            return f"{self.device.name} is the processor"
        rate = str(self) if self.gflops else "a rate that is not known"
        return f"{self.device.name} has {rate} against the processor's {cpu_gflops:.0f}"
