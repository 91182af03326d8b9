"""Adapters of WebGPU: every GPU that Vulkan, Metal or Direct3D 12 reach, through wgpu-native; kernels in WGSL. Browsers, too."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xyntra_ep.tracea.backends._backend import LIBRARY, DeviceBackend, DeviceTarget
from xyntra_ep.tracea.backends._files import installed, names

if TYPE_CHECKING:
    from xyntra_ep.tracea.runtime.survey import Survey
    from xyntra_ep.tracea.runtime.webgpu.devices import WebGpuDevice
    from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu

# What every adapter has at least (WebGPU, "limits"): what a page in any browser may count on.
_LEAST = {"max_threads": 256, "shared_bytes": 16 << 10, "max_buffers": 8, "buffer_bytes": 128 << 20}


class WebGpu(DeviceBackend["WebGpuDevice"]):
    name = "webgpu"
    doc = "(in fp32): WebGPU's first GPU, otherwise its CPU adapter; without one no session is created"
    rank = 4
    nothing = "there is no GPU with the package wgpu"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        from xyntra_ep.tracea.runtime.webgpu.library import tell

        path, renderers = tell(library), names("/dev/dri")
        return [f"webgpu {path}", *renderers, *installed("wgpu")] if path and renderers else ()

    def at_hand(self) -> bool:
        from xyntra_ep.tracea.runtime.webgpu.library import library_path

        return bool(names("/dev/dri")) and bool(library_path())

    def survey(self, limit_s: float | None = None) -> Survey[WebGpuDevice]:
        from xyntra_ep.tracea.runtime.webgpu import devices

        return devices.survey(LIBRARY) if limit_s is None else devices.survey(LIBRARY, limit_s)

    def first(self, found: Survey[WebGpuDevice]) -> WebGpuDevice:
        return min(found.working, key=lambda device: device.is_cpu)

    def open(self, device: WebGpuDevice) -> DeviceTarget:
        gpu = _gpu(device.max_threads, device.shared_bytes, device.max_buffers, device.buffer_bytes)
        return _target(replace(gpu, is_cpu=device.is_cpu), identity=device.identity, name=device.name)

    def describe(self, found: Survey[WebGpuDevice]) -> Sequence[str]:
        return list(_lines(found))

    def by_name(self, name: str) -> DeviceTarget | None:
        """``webgpu``: what any browser on any machine can do."""
        if name != self.name:
            return None
        return _target(_gpu(**_LEAST), identity="WebGPU, of any browser", name="any adapter of WebGPU")

    def in_browsers(self) -> DeviceTarget | None:
        return self.by_name(self.name)


def _gpu(max_threads: int, shared_bytes: int, max_buffers: int, buffer_bytes: int) -> Gpu:
    """Its sizes, and what is common for the rest."""
    from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU

    return replace(
        ANY_GPU,
        max_threads=min(max_threads, ANY_GPU.max_threads),
        shared_bytes=min(shared_bytes, ANY_GPU.shared_bytes),
        max_buffers=max_buffers,
        buffer_bytes=buffer_bytes,
        aliases=False,  # what is bound as writable must not overlap
    )


def _target(gpu: Gpu, *, identity: str, name: str) -> DeviceTarget:
    from xyntra_ep.tracea.emitters.webgpu import text
    from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler

    compiler = DriverCompiler(library=LIBRARY, device=identity, suffix=".wgsl", name="WebGPU")
    return DeviceTarget(backend=WebGpu.name, identity=identity, name=name, gpu=gpu, emit=text.emit, compiler=compiler)


def _lines(found: Survey[WebGpuDevice]) -> Iterator[str]:
    for d in found.devices:
        kind = "CPU" if d.is_cpu else "GPU"
        facts = f"{kind} by {d.api}, {d.shared_bytes >> 10} KiB shared, buffers of {d.buffer_bytes >> 20} MiB"
        yield f"{d.name} ({d.driver}), {facts}: {f'BROKEN: {d.problem}' if d.problem else 'works'}"
    if found.missing:
        yield f"no: {found.missing}. {found.remedy}"


BACKENDS = [WebGpu()]
