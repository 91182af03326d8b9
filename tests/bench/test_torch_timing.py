"""What the host needs to queue work is no part of the device's time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from xyntra_bench import torch_timing
from xyntra_bench.torch_timing import CYCLES_A_NS, LEAST_NS, MOST_NS, Stopwatch


class Device:
    """With clocks of nanoseconds: what the host queues is done one after the other, none before it is queued."""

    def __init__(self) -> None:
        self.host_ns = 0
        self.free_ns = 0
        self.slept: list[float] = []

    def do(self, ns: float) -> None:
        self.free_ns = max(self.free_ns, self.host_ns) + int(ns)

    def sleep(self, cycles: int) -> None:
        self.slept.append(cycles / CYCLES_A_NS)
        self.do(cycles / CYCLES_A_NS)

    def event(self, enable_timing: bool) -> Any:
        device = self

        class Event:
            at_ns = 0

            def record(self) -> None:
                device.do(0)
                self.at_ns = device.free_ns

            def elapsed_time(self, end: Event) -> float:
                return (end.at_ns - self.at_ns) / 1e6

        assert enable_timing
        return Event()

    def work(self, queuing_ns: int, taking_ns: int) -> Callable[[], str]:
        def run() -> str:
            self.host_ns += queuing_ns
            self.do(taking_ns)
            return "made"

        return run


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    monkeypatch.setattr(torch_timing, "time", type("Clock", (), {"perf_counter_ns": staticmethod(lambda: made.host_ns)}))
    return made


@pytest.mark.parametrize("queuing_ns", [100_000, 5_000_000, 60_000_000])
def test_only_the_work_counts(device: Device, queuing_ns: int) -> None:
    watch, taken = Stopwatch(device.event, device.sleep), []
    for _ in range(4):
        made, ns = watch.time(device.work(queuing_ns, 30_000))
        device.host_ns = max(device.host_ns, device.free_ns)  # waited for
        taken.append(round(ns()))
        assert made == "made"
    assert taken[-2:] == [30_000] * 2, "the first ones show how long a sleep it takes"


def test_a_sleep_has_bounds(device: Device) -> None:
    watch = Stopwatch(device.event, device.sleep)
    for queuing_ns in (0, 0, 10**9, 10**9):
        watch.time(device.work(queuing_ns, 1))
    assert device.slept[0] == LEAST_NS and max(device.slept) <= MOST_NS
