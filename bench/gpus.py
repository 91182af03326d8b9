"""Which GPUs the machine has, asked in a child process, `python -m xyntra_bench.gpus`, because drivers may hang or crash.

Most facts come from XyntraEP's own survey of devices. The driver's version and the power limit come from NVML, NVIDIA's
management library, which is installed with the driver; without it they stay empty.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_bench.codec import decode, encode
from xyntra_bench.environment import GpuFacts
from xyntra_bench.run import child_environment

LIMIT_S = 120.0
NVML = "libnvidia-ml.so.1"
NAME_BYTES = 96
SUCCESS = 0


def find_gpus() -> tuple[GpuFacts, ...]:
    """None where they cannot be asked for; that no provider runs there is said by its contender."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "xyntra_bench.gpus"],
            capture_output=True,
            text=True,
            env=child_environment(),
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ()
    lines = done.stdout.splitlines()
    if done.returncode != 0 or not lines:
        return ()
    return tuple(decode(GpuFacts, row) for row in json.loads(lines[-1]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """What NVML tells of a GPU."""

    name: str
    driver: str
    power_limit_w: float | None


def facts_of(device: Any, managed: tuple[Managed, ...]) -> GpuFacts:
    """`device` as `xyntra_ep.tracea.runtime.cuda` describes it. NVML counts GPUs in another order, so that names are compared."""
    told = next((m for m in managed if m.name == device.name), None)
    return GpuFacts(
        device=device.identity,
        name=device.name,
        api=f"CUDA {device.identity.rpartition(' driver ')[2].partition(' ')[0]}",
        driver=told.driver if told else "",
        architecture=device.architecture,
        multiprocessors=device.multiprocessors,
        clock_mhz=device.clock_khz / 1e3 or None,
        memory_clock_mhz=device.memory_clock_khz / 1e3 or None,
        memory_bytes=device.memory_bytes,
        cache_bytes=device.l2_bytes,
        power_limit_w=told.power_limit_w if told else None,
    )


def managed_gpus(library: str = NVML) -> tuple[Managed, ...]:
    """Empty without the library, and where it refuses."""
    try:
        nvml: Any = ctypes.CDLL(library)
    except OSError:
        return ()
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != SUCCESS or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
        return ()
    driver = ctypes.create_string_buffer(NAME_BYTES)
    nvml.nvmlSystemGetDriverVersion(driver, NAME_BYTES)
    found = []
    for index in range(count.value):
        handle, name, milliwatts = ctypes.c_void_p(), ctypes.create_string_buffer(NAME_BYTES), ctypes.c_uint()
        if nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != SUCCESS:
            continue
        nvml.nvmlDeviceGetName(handle, name, NAME_BYTES)
        limited = nvml.nvmlDeviceGetPowerManagementLimit(handle, ctypes.byref(milliwatts)) == SUCCESS
        watts = milliwatts.value / 1e3 if limited else None
        found.append(Managed(name=name.value.decode(), driver=driver.value.decode(), power_limit_w=watts))
    return tuple(found)


def main() -> None:
    from xyntra_ep.provider.registration import get_library_path
    from xyntra_ep.tracea.runtime import cuda

    devices = cuda.survey(Path(get_library_path())).devices
    managed = managed_gpus() if devices else ()
    print(json.dumps([encode(facts_of(device, managed)) for device in devices]))


if __name__ == "__main__":
    main()
