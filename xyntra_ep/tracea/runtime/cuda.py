"""CUDA devices: which there are, and whether kernels can be made for them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.runtime.survey import DriverDevice, Survey, asked

PREFIX = "CUDA / "  # of identities (native/cuda/cuda_device.h)
NO_DRIVER = "install NVIDIA's driver"
NO_COMPILER = nvrtc.REMEDY
_LEAST = (8, 0)  # compute capability: asynchronous copies
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaDevice(DriverDevice):
    """``ordinal``: as ONNX Runtime's ``device_id``; ``architecture`` as sm_90; ``driver``: the version of CUDA that it
    is for, as 12.8."""

    @property
    def capability(self) -> tuple[int, int]:
        """(8, 9) of sm_89."""
        digits = self.architecture.removeprefix("sm_")
        return int(digits[:-1]), int(digits[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaSurvey(Survey[CudaDevice]):
    """The CUDA devices of this machine."""


def at_hand(library: Path) -> bool:
    """Whether there seems to be a device, or only the driver knows; it is not asked."""
    return int(ctypes.CDLL(str(library)).xyntra_cuda_at_hand(None)) != 0


@cache
def survey(library: Path, limit_s: float = _LIMIT_S) -> CudaSurvey:
    """All devices, once a process; ``library``: libxyntra_ep.so, which asks the driver; ``limit_s``: for its answer."""
    outcome = asked(library, PREFIX, limit_s)
    try:
        compiler = nvrtc.load()
    except (XyntraError, AttributeError):  # none, or one too old to be asked
        return read_survey(outcome, frozenset(), "")
    return read_survey(outcome, compiler.architectures(), ".".join(map(str, compiler.version)))


def read_survey(outcome: Outcome, architectures: frozenset[str], version: str) -> CudaSurvey:
    """What the child has said; ``architectures``: those that NVRTC of this ``version`` compiles for, empty without it."""
    said = outcome.said(devices_child.MARK)
    if not said:
        return CudaSurvey(
            missing=f"asking for CUDA devices {outcome.problem or 'gave no answer'}", remedy=NO_DRIVER, lasting=False
        )
    found = said[-1]
    if isinstance(found, dict):
        return CudaSurvey(missing=found["missing"], remedy=NO_DRIVER)
    listed = [CudaDevice(**facts) for facts in found]
    devices = tuple(replace(device, problem=_problem(device, architectures, version)) for device in listed)
    if not devices:
        return CudaSurvey(missing="there is no CUDA device", remedy=NO_DRIVER)
    if all(d.problem for d in devices):
        reasons = "; ".join(f"{d.name}: {d.problem}" for d in devices)
        return CudaSurvey(devices=devices, missing=f"no CUDA device can be used ({reasons})", remedy=NO_COMPILER)
    return CudaSurvey(devices=devices)


def _problem(device: CudaDevice, architectures: frozenset[str], version: str) -> str:
    if device.capability < _LEAST:
        least = f"{_LEAST[0]}.{_LEAST[1]}, from which on there are asynchronous copies and products of bfloat16"
        return f"compute capability {device.capability[0]}.{device.capability[1]} is below {least}"
    if not architectures:
        return "NVRTC is not installed"
    # Drivers load the code of every minor version of their own major one, and of older ones.
    if int(version.partition(".")[0]) > int(device.driver.partition(".")[0]):
        return f"NVRTC {version} makes code that a driver for CUDA {device.driver} does not load"
    return "" if device.architecture in architectures else f"NVRTC {version} does not know {device.architecture}"
