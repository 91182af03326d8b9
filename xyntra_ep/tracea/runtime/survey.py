"""A search for devices, and its result."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.process import Outcome, run_all


class Surveyed(Protocol):
    """``problem``: why the device cannot be used, empty when it can."""

    @property
    def problem(self) -> str: ...


D = TypeVar("D", bound=Surveyed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey(Generic[D]):
    """``missing``: what prevents any use of the devices, with ``remedy``; empty when one works. ``lasting``: whether the next
    process would find the same; not where nobody answered."""

    devices: tuple[D, ...] = ()
    missing: str = ""
    remedy: str = ""
    lasting: bool = True

    @property
    def working(self) -> tuple[D, ...]:
        return tuple(d for d in self.devices if not d.problem)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDevice:
    """A GPU as its driver describes it. ``identity`` tells it, and its driver's version, from others; ``ordinal``: its number;
    ``architecture`` as compilers call it; ``problem``: why it cannot be used, empty when it can."""

    identity: str
    ordinal: int
    name: str
    architecture: str
    driver: str
    multiprocessors: int
    max_threads: int
    shared_bytes: int
    clock_khz: int
    memory_clock_khz: int
    memory_bus_bits: int
    l2_bytes: int
    memory_bytes: int
    problem: str = ""


def asked(library: Path, prefix: str, limit_s: float) -> Outcome:
    """What a process of its own has said (`children/devices_child.py`): a driver may hang or take the process along when it is
    asked. ``library``: libxyntra_ep.so, which asks; ``prefix``: with what the identities of such devices begin."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, devices_child.__file__, str(library), prefix]
        [outcome] = run_all([command], folder=Path(folder), parallel=1, timeout_s=limit_s)
    return outcome
