"""AMD's GPUs on this machine, and whether kernels can be made for them.

A driver may hang or take the process along when it is asked, so ``survey`` asks in a process of its own (`survey.asked`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.hip import compilers
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.runtime.survey import DriverDevice, Survey, asked

NO_DRIVER = "install AMD's driver and ROCm"
ARCHITECTURES = ("gfx90a", "gfx942", "gfx1100")  # that kernels are compiled for and checked: code of one runs on no other
_PREFIX = "HIP / "  # of identities
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HipDevice(DriverDevice):
    """``architecture`` as gfx942; ``driver``: the version of HIP, as 6.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HipSurvey(Survey[HipDevice]):
    """AMD's GPUs of this machine."""


@cache
def survey(library: Path, limit_s: float = _LIMIT_S) -> HipSurvey:
    """All devices, once a process; ``library``: libxyntra_ep.so, which asks the driver; ``limit_s``: for its answer."""
    outcome = asked(library, _PREFIX, limit_s)
    try:
        compilers.find()
    except ConfigError as error:
        return read_survey(outcome, error.what)
    return read_survey(outcome, "")


def read_survey(outcome: Outcome, no_compiler: str) -> HipSurvey:
    """What the child has said; ``no_compiler``: why there is none, empty with one."""
    said = outcome.said(devices_child.MARK)
    if not said:
        return HipSurvey(missing=f"asking for AMD's GPUs {outcome.problem or 'gave no answer'}", remedy=NO_DRIVER, lasting=False)
    found = said[-1]
    if isinstance(found, dict):
        return HipSurvey(missing=found["missing"], remedy=NO_DRIVER)
    listed = [HipDevice(**facts) for facts in found]
    devices = tuple(replace(device, problem=_problem(device) or no_compiler) for device in listed)
    if not devices:
        return HipSurvey(missing="there is no AMD GPU", remedy=NO_DRIVER)
    if all(d.problem for d in devices):
        reasons = "; ".join(f"{d.name}: {d.problem}" for d in devices)
        return HipSurvey(devices=devices, missing=f"no AMD GPU can be used ({reasons})", remedy=compilers.REMEDY)
    return HipSurvey(devices=devices)


def _problem(device: HipDevice) -> str:
    if device.architecture in ARCHITECTURES:
        return ""
    return f"kernels are made for {', '.join(ARCHITECTURES)}, not for {device.architecture}"
