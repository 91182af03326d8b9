"""What the machine did while a case was measured: others' work, the clock, the quota."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from bench.environment import clock_mhz, control_groups, load_1m, text


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """None stands where the system does not tell."""

    wall_s: float
    cpu_s: float
    foreign_cores: float | None
    throttled_s: float | None
    clock_before_mhz: float | None
    clock_after_mhz: float | None
    load_before: float | None
    load_after: float | None

    @property
    def clock_changed(self) -> float:
        """As a part of what it was."""
        if not self.clock_before_mhz or not self.clock_after_mhz:
            return 0.0
        return abs(self.clock_after_mhz / self.clock_before_mhz - 1)


class MachineWatch:
    """From when it is made to when it is asked. How many cores others kept busy is reckoned from all processors' time:
    the load average cannot tell, because it counts us too."""

    def __init__(self) -> None:
        self._wall_s, self._busy_s, self._own_s = time.monotonic(), _machine_busy_s(), _own_busy_s()
        self._throttled_s, self._clock_mhz, self._load = throttled_s(), clock_mhz(), load_1m()

    def seen(self) -> Machine:
        wall_s = time.monotonic() - self._wall_s
        own_s = _own_busy_s() - self._own_s
        busy_s, throttled = _machine_busy_s(), throttled_s()
        foreign = None
        if self._busy_s is not None and busy_s is not None and wall_s > 0:
            foreign = round(max(busy_s - self._busy_s - own_s, 0.0) / wall_s, 2)
        if self._throttled_s is not None and throttled is not None:
            throttled = round(throttled - self._throttled_s, 3)
        return Machine(
            wall_s=round(wall_s, 2),
            cpu_s=round(own_s, 2),
            foreign_cores=foreign,
            throttled_s=throttled,
            clock_before_mhz=self._clock_mhz,
            clock_after_mhz=clock_mhz(),
            load_before=self._load,
            load_after=load_1m(),
        )


def throttled_s() -> float | None:
    """How long the quota has kept this process's control group waiting so far."""
    for folder in control_groups():
        for line in text(folder / "cpu.stat").splitlines():
            name, _, value = line.partition(" ")
            if name == "throttled_usec":
                return int(value) / 1e6
    return None


def _own_busy_s() -> float:
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def _machine_busy_s() -> float | None:
    """Of all processors: user, nice, system, irq, softirq and steal; not idle, not waiting for disks."""
    fields = text("/proc/stat").partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in fields[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
