"""NVIDIA's GPUs: found by the driver's own interface, kernels in CUDA C++, compiled by NVRTC."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.tracea.backends._backend import LIBRARY, DeviceBackend, DeviceTarget
from xyntra_ep.tracea.backends._files import first_line, installed, names

if TYPE_CHECKING:
    from xyntra_ep.tracea.runtime.cuda import CudaDevice
    from xyntra_ep.tracea.runtime.survey import Survey
    from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

_DRIVER = "/proc/driver/nvidia"
_CORES = 128  # for fp32, in each multiprocessor since compute capability 8.6


class Cuda(DeviceBackend["CudaDevice"]):
    name = "cuda"
    doc = "(in fp32, bf16 or fp16): the first NVIDIA GPU of compute capability 8.0 or later; without one no session is created"
    rank = 0
    always_gains = True
    tells_occupancy = True
    nothing = "there is no CUDA device"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        count = library.xyntra_cuda_at_hand(None)
        if count == 0:
            return ()
        of_gpus = [first_line(f"{_DRIVER}/gpus/{name}/information") for name in names(f"{_DRIVER}/gpus")]
        return [f"cuda {count}", first_line(f"{_DRIVER}/version"), *installed("nvidia"), *of_gpus]

    def at_hand(self) -> bool:
        from xyntra_ep.tracea.runtime import cuda

        return cuda.at_hand(LIBRARY)

    def survey(self, limit_s: float | None = None) -> Survey[CudaDevice]:
        from xyntra_ep.tracea.runtime import cuda

        return cuda.survey(LIBRARY) if limit_s is None else cuda.survey(LIBRARY, limit_s)

    def open(self, device: CudaDevice) -> DeviceTarget:
        return replace(
            _target(cuda_gpu(device), identity=device.identity, name=device.name),
            memory_bytes=device.memory_bytes,
            cache_bytes=device.l2_bytes,
        )

    def describe(self, found: Survey[CudaDevice]) -> Sequence[str]:
        return list(_lines(found))

    def numbered(self, ordinal: int) -> DeviceTarget:
        """Raises ConfigError where there is no such device, or it cannot be used."""
        found = self.survey()
        if found.missing:
            return self.target(found)  # which says so
        for device in found.devices:
            if device.ordinal == ordinal and device.problem:
                raise ConfigError(f"device_id={ordinal} cannot be used: {device.name}: {device.problem}", where="XyntraEP")
            if device.ordinal == ordinal:
                return self.open(device)
        numbers = ", ".join(str(device.ordinal) for device in found.devices)
        raise ConfigError(f"the CUDA driver has no device {ordinal}", where="XyntraEP", hint=f"device_id can be {numbers}")

    def by_name(self, name: str) -> DeviceTarget | None:
        from xyntra_ep.tracea.doctor.known_gpus import known_gpu_named

        known = known_gpu_named(name)
        if not known.architecture.startswith("sm_"):
            return None
        return _target(known.gpu, identity=f"{known.name}, which is not here", name=f"{known.name}, by data sheet")


def _target(gpu: Gpu, *, identity: str, name: str) -> DeviceTarget:
    from xyntra_ep.tracea.emitters import cuda as text
    from xyntra_ep.tracea.runtime import nvrtc
    from xyntra_ep.tracea.runtime.nvrtc_compiler import NvrtcCompiler

    return DeviceTarget(
        backend=Cuda.name,
        identity=identity,
        name=name,
        gpu=gpu,
        emit=text.emit,
        compiler=NvrtcCompiler(version=nvrtc.load().version),
        flags=(gpu.target,),
        clock_gflops=gpu.fma_gflops,
    )


def cuda_gpu(device: CudaDevice) -> Gpu:
    """The device as kernels see it. Rates are those of its clocks: two operations for each fused multiply-add, two transfers for
    each beat of the memory's clock; where the driver does not tell them, those of the device's row (`doctor/known_gpus.py`)."""
    from xyntra_ep.tracea.doctor.known_gpus import known_gpu_for

    known = known_gpu_for(device.architecture, device.name).gpu
    cores = device.multiprocessors * (_CORES // 2 if device.capability == (8, 0) else _CORES)
    gflops = 2 * cores * device.clock_khz / 1e6
    return replace(
        known,
        name=device.architecture,
        max_threads=min(device.max_threads, known.max_threads),
        shared_bytes=min(device.shared_bytes, known.shared_bytes),
        units=device.multiprocessors,
        fma_gflops=gflops or known.fma_gflops,
        memory_gbs=2 * device.memory_clock_khz * device.memory_bus_bits / 8 / 1e6 or known.memory_gbs,
        warpgroups=known.warpgroups and device.capability == (9, 0),
        fragment_gflops=known.fragment_gflops * (gflops / known.fma_gflops if gflops else 1.0),
    )


def _lines(found: Survey[CudaDevice]) -> Iterator[str]:
    from xyntra_ep.tracea.runtime import nvrtc

    for d in found.devices:
        facts = f"{d.architecture}, {d.multiprocessors} multiprocessors, {d.memory_bytes >> 20} MiB"
        yield f"{d.name}, {facts}: {f'NO: {d.problem}' if d.problem else 'can be used'}"
    if found.missing:
        yield f"no: {found.missing}. {found.remedy}"
    try:
        version = ".".join(map(str, nvrtc.load().version))
    except XyntraError:
        yield f"no compiler. {nvrtc.REMEDY}"
    else:
        yield f"NVRTC {version} compiles"


BACKENDS = [Cuda()]
