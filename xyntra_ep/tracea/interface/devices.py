"""Devices beside the processor, whichever backend has them."""

from __future__ import annotations

from typing import Any

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.backends import BACKENDS, DeviceBackend, DeviceTarget


def device_backends() -> list[DeviceBackend[Any]]:
    """In the order in which ``backend=auto`` asks them."""
    return sorted((b for b in BACKENDS if isinstance(b, DeviceBackend)), key=lambda backend: backend.rank)


def known_target(name: str) -> DeviceTarget:
    """A GPU that need not be here, by a name of `doctor/known_gpus.py` (h200) or an architecture (sm_90): kernels are planned and
    compiled for it, and cannot be run. Raises ConfigError for one that is not known, and without its compiler."""
    refusals: list[ConfigError] = []  # one backend's names are none of another's
    for backend in device_backends():
        try:
            if (target := backend.by_name(name)) is not None:
                return target
        except ConfigError as error:
            refusals.append(error)
    raise refusals[0] if refusals else ConfigError(f"no GPU {name!r} is known", where="architecture")


def with_tensors(ordinal: int, asked: str | None) -> DeviceTarget:
    """The device whose memory ONNX Runtime keeps a session's tensors in; ``asked``: the backend that the session names, if any.
    Raises ConfigError where that backend has no such memory."""
    backends = device_backends() if asked is None else [b for b in device_backends() if b.name == asked]
    for backend in backends:
        if (target := backend.numbered(ordinal)) is not None:
            return target
    raise ConfigError(
        f"backend={asked} cannot use tensors in the memory of a device",
        where="XyntraEP",
        hint="leave device_id out, or name the device's backend",
    )


def browser_target() -> DeviceTarget | None:
    """What pages run kernels on beside the processor; None where no backend is in browsers."""
    return next((target for backend in device_backends() if (target := backend.in_browsers()) is not None), None)
