"""The time of PyTorch's work by the device's own events, without the Python code that queues it.

A device records an event when it reaches it. An idle device reaches it at once, so everything that the host does until the first
kernel is launched would count as device time: 50 to 150 microseconds for a compiled module, milliseconds for an eager one.
Therefore a kernel that only sleeps is queued first, for as long as the host has needed to queue the work. A timed run of XyntraEP
begins with a pause too (native/cuda/cuda_queue.cc).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

CYCLES_A_NS = 2.0  # more than GPUs make: rather a longer sleep than a shorter one
MARGIN = 2.0  # times what the host needed before
LEAST_NS, MOST_NS = 500_000, 200_000_000


class Stopwatch:
    """``event``: `torch.cuda.Event`; ``sleep``: `torch.cuda._sleep`, which takes cycles of the device's clock."""

    def __init__(self, event: Any, sleep: Callable[[int], object]) -> None:
        self._event, self._sleep, self._queued_ns = event, sleep, 0

    @classmethod
    def of(cls, torch: Any) -> Stopwatch:
        return cls(torch.cuda.Event, torch.cuda._sleep)

    def time(self, work: Callable[[], Any]) -> tuple[Any, Callable[[], float]]:
        """What ``work`` returns, and its nanoseconds once the device has done it."""
        begin, end = self._event(enable_timing=True), self._event(enable_timing=True)
        sleep_ns = min(max(LEAST_NS, MARGIN * self._queued_ns), MOST_NS)
        self._sleep(int(sleep_ns * CYCLES_A_NS))
        begin.record()
        started = time.perf_counter_ns()
        made = work()
        queued_ns = time.perf_counter_ns() - started
        end.record()
        # What waits for the device itself (a full queue, a copy to the host) has waited for the sleep, too: it is no measure.
        if queued_ns < sleep_ns or not self._queued_ns:
            self._queued_ns = queued_ns
        return made, lambda: float(begin.elapsed_time(end) * 1e6)
