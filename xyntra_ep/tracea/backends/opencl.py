"""Devices of OpenCL: found through pyopencl, kernels in OpenCL C, compiled by the device's own driver."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xyntra_ep.tracea.backends._backend import LIBRARY, DeviceBackend, DeviceTarget
from xyntra_ep.tracea.backends._files import installed, names

if TYPE_CHECKING:
    from xyntra_ep.tracea.runtime.opencl import OpenClDevice
    from xyntra_ep.tracea.runtime.survey import Survey


class OpenCl(DeviceBackend["OpenClDevice"]):
    name = "opencl"
    doc = (
        "(in fp32, or fp16 if the device supports it): OpenCL's first GPU, otherwise its CPU device; without one no session is "
        "created"
    )
    rank = 1
    nothing = "there is no GPU with a driver of OpenCL"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        renderers = names("/dev/dri")
        return [*renderers, *names("/etc/OpenCL/vendors"), *installed("pyopencl")] if renderers else ()

    def at_hand(self) -> bool:
        from xyntra_ep.tracea.runtime import opencl

        return opencl.gpu_at_hand()

    def survey(self, limit_s: float | None = None) -> Survey[OpenClDevice]:
        from xyntra_ep.tracea.runtime import opencl

        return opencl.survey() if limit_s is None else opencl.survey(limit_s)

    def first(self, found: Survey[OpenClDevice]) -> OpenClDevice:
        return min(found.working, key=lambda device: device.is_cpu)

    def open(self, device: OpenClDevice) -> DeviceTarget:
        from xyntra_ep.tracea.core_ir.dtypes import DType
        from xyntra_ep.tracea.emitters import opencl as text
        from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler
        from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU

        # Its sizes, and what is common for the rest.
        gpu = replace(
            ANY_GPU,
            is_cpu=device.is_cpu,
            max_threads=min(device.max_threads, ANY_GPU.max_threads),
            shared_bytes=min(device.shared_bytes, ANY_GPU.shared_bytes),
            units=device.compute_units,
            halves=frozenset({DType.F16} if device.has_half else ()),
        )
        return DeviceTarget(
            backend=self.name,
            identity=device.identity,
            name=device.name,
            gpu=gpu,
            emit=text.emit,
            compiler=DriverCompiler(library=LIBRARY, device=device.identity, suffix=".clbin", name="the OpenCL driver"),
            flags=device.build_options,
            clock_gflops=device.gflops,
            memory_bytes=device.memory_bytes,
        )

    def describe(self, found: Survey[OpenClDevice]) -> Sequence[str]:
        return list(_lines(found))


def _lines(found: Survey[OpenClDevice]) -> Iterator[str]:
    for d in found.devices:
        kind = "CPU" if d.is_cpu else "GPU"
        facts = f"{kind}, {d.compute_units} units, {d.shared_bytes >> 10} KiB shared, {d.memory_bytes >> 20} MiB"
        yield f"{d.name} ({d.platform}), {facts}: {f'BROKEN: {d.problem}' if d.problem else 'works'}"
    if found.missing:
        yield f"no: {found.missing}. {found.remedy}"


BACKENDS = [OpenCl()]
