"""OpenCL devices through pyopencl: which there are, and whether they work.

A driver may be installed and still not compile (the PoCL wheel of pip on a processor that its LLVM does not know), and may
take the process along when asked to. So ``survey`` asks in a process of its own (`opencl_probe.py`).
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from xyntra_ep.tracea.runtime import opencl_probe
from xyntra_ep.tracea.runtime.process import Outcome, run_all
from xyntra_ep.tracea.runtime.survey import Survey

NO_PACKAGE = "pip install 'xyntra-ep[opencl]'"
NO_DRIVER = "install the GPU's OpenCL driver, or `apt install pocl-opencl-icd` to run on the CPU"
BROKEN = (
    "a driver that cannot compile is mostly older than the processor: replace the wheel by the distribution's `pocl-opencl-icd`"
    " (`pip uninstall pocl-binary-distribution`), or update the GPU's driver"
)
_LIMIT_S = 120.0
_LANES = {"nvidia": 128, "advanced micro devices": 64, "intel": 8}  # that multiply and add, of what a vendor calls a compute unit


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClDevice:
    """A device as its driver describes it. ``identity`` tells it, and its driver's version, from others; ``place``: number of
    its platform, and its own within; ``has_half``: it computes in float16. ``problem``: why it cannot be used, empty when it
    can."""

    identity: str
    place: tuple[int, int]
    name: str
    platform: str
    version: str
    is_cpu: bool
    compute_units: int
    max_threads: int
    shared_bytes: int
    memory_bytes: int
    divides_exactly: bool
    has_half: bool
    vendor: str
    clock_mhz: int
    problem: str = ""

    @property
    def gflops(self) -> float:
        """Multiply-adds in fp32 at its highest clock, 0 where the vendor's units are not known."""
        lanes = next((n for name, n in _LANES.items() if name in self.vendor.lower()), 0)
        return 0.0 if self.is_cpu else 2e-3 * lanes * self.compute_units * self.clock_mhz

    @property
    def build_options(self) -> tuple[str, ...]:
        """Division and square root exact where that can be had, so that results depend little on the device."""
        return ("-cl-fp32-correctly-rounded-divide-sqrt",) if self.divides_exactly else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenClSurvey(Survey[OpenClDevice]):
    """The OpenCL devices of this machine."""


def gpu_at_hand(devices: Path = Path("/dev/dri"), drivers: Path = Path("/etc/OpenCL/vendors")) -> bool:
    """Whether a GPU, a driver of OpenCL and pyopencl seem to be there; none of them is asked. ``devices``: where Linux shows GPUs
    that can compute; ``drivers``: where OpenCL's drivers register."""
    shown = any(devices.glob("renderD*")) and any(drivers.glob("*.icd"))
    return shown and importlib.util.find_spec("pyopencl") is not None


@cache
def survey(limit_s: float = _LIMIT_S) -> OpenClSurvey:
    """All devices of all platforms, each tried, once a process; ``limit_s``: for all their drivers' answers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-P", str(Path(opencl_probe.__file__))]
        [outcome] = run_all([command], folder=Path(folder), parallel=1, timeout_s=limit_s)
    return read_survey(outcome)


def read_survey(outcome: Outcome) -> OpenClSurvey:
    """What the probe's process has said before it ended, in whatever way."""
    found: list[dict[str, Any]] = []
    problems: dict[int, str] = {}
    for fact in outcome.said(opencl_probe.MARK):
        if "missing" in fact:
            return OpenClSurvey(missing=fact["missing"], remedy=NO_PACKAGE if fact["kind"] == "package" else NO_DRIVER)
        found = fact.get("devices", found)
        if "trying" in fact:
            problems[fact["trying"]] = f"the process {outcome.problem}{_last_words(outcome)}"
        if "tried" in fact:
            problems[fact["tried"]] = fact["problem"]
    untried = f"not tried: the process {outcome.problem}"
    devices = tuple(
        OpenClDevice(**{**facts, "place": tuple(facts["place"])}, problem=problems.get(number, untried))
        for number, facts in enumerate(found)
    )
    if not devices:
        if outcome.problem:
            return OpenClSurvey(
                missing=f"asking for OpenCL devices {outcome.problem}{_last_words(outcome)}", remedy=BROKEN, lasting=False
            )
        return OpenClSurvey(missing="there is no OpenCL device", remedy=NO_DRIVER)
    if all(d.problem for d in devices):
        reasons = "; ".join(f"{d.name}: {d.problem}" for d in devices)
        return OpenClSurvey(devices=devices, missing=f"no OpenCL device works ({reasons})", remedy=BROKEN)
    return OpenClSurvey(devices=devices)


def _last_words(outcome: Outcome) -> str:
    said = [line.strip() for line in outcome.log.splitlines() if line.strip() and not line.startswith(opencl_probe.MARK)]
    return f" ({said[-1]})" if said else ""
