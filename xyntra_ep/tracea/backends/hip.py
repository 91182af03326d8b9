"""AMD's GPUs: found by HIP's runtime, kernels in HIP's C++, compiled by hipRTC or Clang."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xyntra_ep.errors import XyntraError
from xyntra_ep.tracea.backends._backend import LIBRARY, DeviceBackend, DeviceTarget
from xyntra_ep.tracea.backends._files import first_line, names

if TYPE_CHECKING:
    from xyntra_ep.tracea.runtime.hip.devices import HipDevice
    from xyntra_ep.tracea.runtime.survey import Survey
    from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

_KFD = "/dev/kfd"  # how ROCm reaches its devices
_NODES = "/sys/class/kfd/kfd/topology/nodes"
_LANES = 128  # for fp32, of two compute units of RDNA; a compute unit of CDNA has half


class Hip(DeviceBackend["HipDevice"]):
    name = "hip"
    doc = (
        "(in fp32, bf16 or fp16): the first AMD GPU of architecture gfx90a, gfx942 or gfx1100 that ROCm knows; without one no "
        "session is created"
    )
    rank = 2
    tells_occupancy = True
    nothing = "there is no AMD GPU that ROCm knows"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        if not self.at_hand():
            return ()
        return [
            "hip",
            first_line("/sys/module/amdgpu/version"),
            *(f"{n} {first_line(f'{_NODES}/{n}/name')}" for n in names(_NODES)),
        ]

    def at_hand(self) -> bool:
        return os.path.exists(_KFD)

    def survey(self, limit_s: float | None = None) -> Survey[HipDevice]:
        from xyntra_ep.tracea.runtime.hip import devices

        return devices.survey(LIBRARY) if limit_s is None else devices.survey(LIBRARY, limit_s)

    def open(self, device: HipDevice) -> DeviceTarget:
        return replace(
            _target(hip_gpu(device), identity=device.identity, name=device.name),
            memory_bytes=device.memory_bytes,
            cache_bytes=device.l2_bytes,
        )

    def describe(self, found: Survey[HipDevice]) -> Sequence[str]:
        return list(_lines(found))

    def by_name(self, name: str) -> DeviceTarget | None:
        from xyntra_ep.tracea.doctor.known_gpus import known_gpu_named

        known = known_gpu_named(name)
        if not known.architecture.startswith("gfx"):
            return None
        return _target(known.gpu, identity=f"{known.name}, which is not here", name=f"{known.name}, by data sheet")


def _target(gpu: Gpu, *, identity: str, name: str) -> DeviceTarget:
    from xyntra_ep.tracea.emitters import hip as text
    from xyntra_ep.tracea.runtime.hip import compilers

    return DeviceTarget(
        backend=Hip.name,
        identity=identity,
        name=name,
        gpu=gpu,
        emit=text.emit,
        compiler=compilers.find(),
        flags=(gpu.target,),
        clock_gflops=gpu.fma_gflops,
    )


def hip_gpu(device: HipDevice) -> Gpu:
    """The device as kernels see it, at the rates of its clocks: two operations for a fused multiply-add, two transfers for each
    beat of the memory's clock; where the driver does not tell them, those of the device's row (`doctor/known_gpus.py`)."""
    from xyntra_ep.tracea.doctor.known_gpus import known_gpu_for

    known = known_gpu_for(device.architecture, device.name).gpu
    lanes = _LANES if known.subgroup == 32 else _LANES // 2
    return replace(
        known,
        max_threads=min(device.max_threads, known.max_threads),
        shared_bytes=min(device.shared_bytes, known.shared_bytes),
        units=device.multiprocessors,
        fma_gflops=2 * device.multiprocessors * lanes * device.clock_khz / 1e6 or known.fma_gflops,
        memory_gbs=2 * device.memory_clock_khz * device.memory_bus_bits / 8 / 1e6 or known.memory_gbs,
    )


def _lines(found: Survey[HipDevice]) -> Iterator[str]:
    from xyntra_ep.tracea.runtime.hip import compilers

    for d in found.devices:
        facts = f"{d.architecture}, {d.multiprocessors} units, {d.memory_bytes >> 20} MiB"
        yield f"{d.name}, {facts}: {f'NO: {d.problem}' if d.problem else 'can be used'}"
    if found.missing:
        yield f"no: {found.missing}. {found.remedy}"
    try:
        compiler = compilers.find()
    except XyntraError as error:
        yield f"no compiler. {error.hint}"
    else:
        yield f"{compiler.name} ({compiler.version}) compiles"


BACKENDS = [Hip()]
