"""Adapters of WebGPU: which there are, and whether they work.

The library is wgpu-native, which the package wgpu brings.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from xyntra_ep.tracea.runtime import process
from xyntra_ep.tracea.runtime.children import devices_child
from xyntra_ep.tracea.runtime.process import Outcome
from xyntra_ep.tracea.runtime.survey import Survey, asked
from xyntra_ep.tracea.runtime.webgpu.library import VARIABLE, tell

PREFIX = "WebGPU / "  # of identities (native/webgpu/webgpu_device.h)
NO_PACKAGE = "pip install 'xyntra-ep[webgpu]'"
NO_DRIVER = "install the GPU's Vulkan driver, or `apt install mesa-vulkan-drivers` to run on the CPU"
_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WebGpuDevice:
    """An adapter as the library describes it. ``identity`` tells it, and its driver's version, from others; ``api``: through what
    it is reached; ``has_half``: it computes in float16; ``max_buffers``: that a kernel binds; ``buffer_bytes``: of one of them at
    most. ``problem``: why it cannot be used, empty when it can."""

    identity: str
    name: str
    api: str
    driver: str
    is_cpu: bool
    has_half: bool
    max_threads: int
    shared_bytes: int
    max_buffers: int
    buffer_bytes: int
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebGpuSurvey(Survey[WebGpuDevice]):
    """The adapters of this machine."""


@cache
def survey(library: Path, limit_s: float = _LIMIT_S) -> WebGpuSurvey:
    """All adapters, each tried, once a process; ``library``: libxyntra_ep.so, which asks; ``limit_s``: for the answer."""
    if path := tell(ctypes.CDLL(str(library))):
        process.ENVIRONMENT[VARIABLE] = path  # of children, which are told nothing
    return read_survey(asked(library, PREFIX, limit_s))


def read_survey(outcome: Outcome) -> WebGpuSurvey:
    """What the child has said."""
    said = outcome.said(devices_child.MARK)
    if not said:
        why = f"asking for WebGPU's adapters {outcome.problem or 'gave no answer'}"
        return WebGpuSurvey(missing=why, remedy=NO_DRIVER, lasting=False)
    found = said[-1]
    if isinstance(found, dict):
        return WebGpuSurvey(missing=found["missing"], remedy=NO_PACKAGE)
    devices = tuple(WebGpuDevice(**facts) for facts in found)
    if not devices:
        return WebGpuSurvey(missing="there is no adapter of WebGPU", remedy=NO_DRIVER)
    if all(d.problem for d in devices):
        reasons = "; ".join(f"{d.name}: {d.problem}" for d in devices)
        return WebGpuSurvey(devices=devices, missing=f"no adapter of WebGPU works ({reasons})", remedy=NO_DRIVER)
    return WebGpuSurvey(devices=devices)
