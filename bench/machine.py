"""What the machine did while a case was measured: the work of other processes, the clock, the quota."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from xyntra_bench.environment import clock_mhz, control_groups, fastest_clock_mhz, load_1m, text

# What still counts as quiet: of the processors' time, what other processes and the hypervisor may take, and the least that is
# worth a word on a small machine; and by how much the clock may change.
FOREIGN_SHARE, LEAST_FOREIGN_CORES = 0.05, 0.1
STOLEN_SHARE = 0.02
CLOCK_CHANGE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """None stands where the system does not tell."""

    wall_s: float
    cpu_s: float
    cores: int
    foreign_cores: float | None  # the stolen ones included
    stolen_cores: float | None
    throttled_s: float | None
    clock_before_mhz: float | None
    clock_after_mhz: float | None
    clock_low_mhz: float | None
    clock_high_mhz: float | None
    load_before: float | None
    load_after: float | None
    load_high: float | None

    @property
    def loaded(self) -> bool:
        """By other processes."""
        theirs = (self.foreign_cores or 0.0) - (self.stolen_cores or 0.0)
        return theirs > max(FOREIGN_SHARE * self.cores, LEAST_FOREIGN_CORES)

    @property
    def robbed(self) -> bool:
        """By the hypervisor."""
        return (self.stolen_cores or 0.0) > STOLEN_SHARE * self.cores

    @property
    def clock_changed(self) -> float:
        """Between rounds, as a part of what it was: around a case processors may sleep."""
        if not self.clock_low_mhz or not self.clock_high_mhz:
            return 0.0
        return self.clock_high_mhz / self.clock_low_mhz - 1


class MachineWatch:
    """From when it is made to when it is asked. How many cores others kept busy is reckoned from all processors' time:
    the load average cannot tell, because it counts us too."""

    def __init__(self) -> None:
        self._wall_s, self._times, self._own_s = time.monotonic(), _machine_times_s(), _own_busy_s()
        self._throttled_s, self._clock_mhz, self._load = throttled_s(), clock_mhz(), load_1m()
        self._clocks_mhz: list[float] = []
        self._loads: list[float] = []

    def sample(self) -> None:
        """Reads the clock and the load right after a round, while the processors that it ran on are still awake."""
        clock, load = fastest_clock_mhz(), load_1m()
        self._clocks_mhz += [clock] if clock is not None else []
        self._loads += [load] if load is not None else []

    def seen(self) -> Machine:
        wall_s = time.monotonic() - self._wall_s
        own_s = _own_busy_s() - self._own_s
        times, throttled = _machine_times_s(), throttled_s()
        foreign = stolen = None
        if self._times is not None and times is not None and wall_s > 0:
            busy_s, stolen_s = (now - before for now, before in zip(times, self._times, strict=True))
            foreign, stolen = round(max(busy_s - own_s, 0.0) / wall_s, 2), round(stolen_s / wall_s, 3)
        if self._throttled_s is not None and throttled is not None:
            throttled = round(throttled - self._throttled_s, 3)
        return Machine(
            wall_s=round(wall_s, 2),
            cpu_s=round(own_s, 2),
            cores=os.cpu_count() or 1,
            foreign_cores=foreign,
            stolen_cores=stolen,
            throttled_s=throttled,
            clock_before_mhz=self._clock_mhz,
            clock_after_mhz=clock_mhz(),
            clock_low_mhz=min(self._clocks_mhz, default=None),
            clock_high_mhz=max(self._clocks_mhz, default=None),
            load_before=self._load,
            load_after=load_1m(),
            load_high=max(self._loads, default=None),
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


def _machine_times_s() -> tuple[float, float] | None:
    """Of all processors: user, nice, system, irq, softirq and steal, not idle and not waiting for disks; and steal alone."""
    fields = text("/proc/stat").partition("\n")[0].split()
    if len(fields) < 9 or fields[0] != "cpu":
        return None
    user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in fields[1:9])
    ticks = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + softirq + steal) / ticks, steal / ticks
