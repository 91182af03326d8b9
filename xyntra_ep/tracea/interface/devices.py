"""The device that a session asked for."""

from __future__ import annotations

from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.runtime.opencl import OpenClDevice, OpenClSurvey, survey


def opencl_device(found: OpenClSurvey | None = None) -> OpenClDevice:
    """The first GPU that works, else the first device. Raises ConfigError, with what to do, where there is none."""
    found = found if found is not None else survey()
    if found.missing:
        raise ConfigError(f"backend=opencl cannot be had: {found.missing}", where="XyntraEP", hint=found.remedy)
    return min(found.working, key=lambda d: d.is_cpu)
