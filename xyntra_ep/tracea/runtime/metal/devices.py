"""The devices of Metal: which there are, and whether kernels can be made for them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.runtime.survey import Survey, asked

PREFIX = "Metal / "  # of identities (native/metal/metal_device.h)
NO_METAL = "use a Mac with a processor of Apple's"
_LEAST = 7  # the family of the M1
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MetalDevice:
    """A device as the system describes it. ``identity`` tells it, and the system's version, from others; ``family``: 7 of Apple7,
    0 of a GPU that is not Apple's. ``memory_bytes``: what may be used at a time without loss of speed. ``problem``: why it cannot
    be used, empty when it can."""

    identity: str
    name: str
    system: str
    family: int
    shared_bytes: int
    memory_bytes: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetalSurvey(Survey[MetalDevice]):
    """The devices of this machine."""


@cache
def survey(library: Path, limit_s: float = _LIMIT_S) -> MetalSurvey:
    """All devices, once a process; ``library``: libxyntra_ep.so, which asks the system; ``limit_s``: for its answer."""
    return read_survey(asked(library, PREFIX, limit_s))


def read_survey(outcome: Outcome) -> MetalSurvey:
    """What the child has said."""
    said = outcome.said(devices_child.MARK)
    if not said:
        problem = outcome.problem or "gave no answer"
        return MetalSurvey(missing=f"asking for Metal's devices {problem}", remedy=NO_METAL, lasting=False)
    found = said[-1]
    if isinstance(found, dict):
        return MetalSurvey(missing=found["missing"], remedy=NO_METAL)
    listed = [MetalDevice(**facts) for facts in found]
    devices = tuple(replace(device, problem=_problem(device)) for device in listed)
    if not devices:
        return MetalSurvey(missing="Metal has no device", remedy=NO_METAL)
    if all(d.problem for d in devices):
        reasons = "; ".join(f"{d.name}: {d.problem}" for d in devices)
        return MetalSurvey(devices=devices, missing=f"no device of Metal can be used ({reasons})", remedy=NO_METAL)
    return MetalSurvey(devices=devices)


def _problem(device: MetalDevice) -> str:
    if device.family == 0:
        return "it is no GPU of Apple's"
    return "" if device.family >= _LEAST else f"its family Apple{device.family} is below Apple{_LEAST}"
