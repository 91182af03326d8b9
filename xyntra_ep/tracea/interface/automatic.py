"""Which device computes when nobody names one: what the machine shows decides, and the CPU where nothing better is sure to work.

A driver is asked only where files show a GPU, so a machine without one pays for a look at three folders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.interface.device_costs import ASSUMED, DeviceCosts
from xyntra_ep.tracea.interface.devices import device_backends

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
    """Of the backends in their order, the first with a device that works and gains; else the CPU.

    Where a backend's devices do not always gain, the device has to be faster than the processor (``cpu_gflops``: all cores), much
    faster where its rate is that of its clock alone. The processor behind a driver of its own is never chosen. ``measured``: what
    trials have found out about a device."""
    why: list[str] = []
    passed: list[tuple[str, str]] = []
    lasting = True
    for backend in device_backends():
        not_it = backend.nothing
        if backend.at_hand():
            found = backend.survey(_LIMIT_S)
            if backend.always_gains and not found.missing:
                device = backend.target(found)
                costs = measured(device) or ASSUMED
                return Choice(device=device, costs=costs, reason=f"{device.name} works", passed=tuple(passed))
            lasting = lasting and found.lasting
            rated = [] if found.missing else [_Rated.of(backend.open(device), measured) for device in found.working]
            slow = cpu_gflops() if rated else 0.0
            if fast := [one for one in rated if one.gflops > one.better * slow]:
                best = max(fast, key=lambda one: one.gflops)
                reason = f"{best.target.name} works, {best} against {slow:.0f}"
                return Choice(device=best.target, costs=best.costs, reason=reason, passed=tuple(passed))
            not_it = "; ".join(one.slower(slow) for one in rated) or found.missing
            why.append(not_it)
        passed.append((f"backend {backend.name}", not_it))
    return Choice(reason="; ".join(why) or "there is no GPU", lasting=lasting, passed=tuple(passed))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rated:
    """A device and its rate: of our kernels, where that was measured, else by its clock."""

    target: DeviceTarget
    costs: DeviceCosts

    @classmethod
    def of(cls, target: DeviceTarget, measured: Measured) -> _Rated:
        costs = None if target.gpu.is_cpu else measured(target)
        return cls(target=target, costs=costs or ASSUMED)

    @property
    def gflops(self) -> float:
        return self.costs.gflops if self.costs.is_measured else self.target.clock_gflops

    @property
    def better(self) -> float:
        """Times the processor's rate that it has to have."""
        return 1.0 if self.costs.is_measured else _BETTER

    def __str__(self) -> str:
        return f"{self.gflops:.0f} GFLOP/s {'measured' if self.costs.is_measured else 'by its clock'}"

    def slower(self, cpu_gflops: float) -> str:
        """Why it is not taken."""
        if self.target.gpu.is_cpu:
            return f"{self.target.name} is the processor"
        rate = str(self) if self.gflops else "a rate that is not known"
        return f"{self.target.name} has {rate} against the processor's {cpu_gflops:.0f}"
