"""Where the kernels of a session run."""

from __future__ import annotations

from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Options
from xyntra_ep.tracea.interface.devices import TARGETS, WITH_TENSORS, DeviceTarget


def device_of(options: Options, device_id: str | None) -> DeviceTarget | None:
    """The device that the options ask for; None is the CPU. ``device_id``: of the CUDA device that the session's tensors are on.

    Raises ConfigError where it cannot be had."""
    if device_id is None:
        make_target = TARGETS.get(options.backend.value)
        return make_target() if make_target is not None else None
    make_with_tensors = WITH_TENSORS.get(options.backend.value)
    if make_with_tensors is None:
        raise ConfigError(
            f"backend={options.backend} cannot use tensors in the memory of a CUDA device",
            where="XyntraEP",
            hint="leave device_id out, or say backend=cuda",
        )
    return make_with_tensors(int(device_id))
