"""Apple's GPUs: found by Metal's own interface, kernels in its shading language, compiled by the device's driver."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xyntra_ep.tracea.backends._backend import LIBRARY, DeviceBackend, DeviceTarget
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, MatrixUnit
from xyntra_ep.tracea.semantic_ir.gpu.matrix_dot import SIMDGROUP_SHAPES

if TYPE_CHECKING:
    from xyntra_ep.tracea.runtime.metal.devices import MetalDevice
    from xyntra_ep.tracea.runtime.survey import Survey

_FRAMEWORK = Path("/System/Library/Frameworks/Metal.framework")

# The least of them: Apple's figures for the M1 (8 cores, 2.6 TFLOPS in fp32, 68 GB/s). All have 32 threads in step and 32 KiB of
# memory for a group of threads (Metal Feature Set Tables, families Apple7 and later).
# Products of matrices are made by the same units as others, with less to read: an estimate takes the same rate for them.
APPLE_GPU = replace(
    ANY_GPU,
    name="apple",
    subgroup=32,
    units=8,
    fma_gflops=2.6e3,
    memory_gbs=68.0,
    halves=frozenset({DType.F16}),
    matrix_units=tuple(MatrixUnit(shape, 2.6e3) for shape in SIMDGROUP_SHAPES.values()),
    max_buffers=30,  # of 31, of which one holds all sizes
)


class Metal(DeviceBackend["MetalDevice"]):
    name = "metal"
    doc = "(in fp32 or fp16): the first GPU of Apple's, of an M1 or later; without one no session is created. It has run on none"
    rank = 1
    nothing = "this is no machine with Metal"

    def traces(self, library: ctypes.CDLL) -> Sequence[str]:
        return [f"metal {os.uname().release}"] if self.at_hand() else ()  # drivers come with the system

    def at_hand(self) -> bool:
        return _FRAMEWORK.is_dir()

    def survey(self, limit_s: float | None = None) -> Survey[MetalDevice]:
        from xyntra_ep.tracea.runtime.metal import devices

        return devices.survey(LIBRARY) if limit_s is None else devices.survey(LIBRARY, limit_s)

    def open(self, device: MetalDevice) -> DeviceTarget:
        from xyntra_ep.tracea.emitters import metal as text
        from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler

        return DeviceTarget(
            backend=self.name,
            identity=device.identity,
            name=device.name,
            gpu=replace(APPLE_GPU, shared_bytes=min(device.shared_bytes, APPLE_GPU.shared_bytes)),
            emit=text.emit,
            compiler=DriverCompiler(library=LIBRARY, device=device.identity, suffix=".metal", name="the Metal driver"),
            memory_bytes=device.memory_bytes,
        )

    def describe(self, found: Survey[MetalDevice]) -> Sequence[str]:
        return list(_lines(found))


def _lines(found: Survey[MetalDevice]) -> Iterator[str]:
    for d in found.devices:
        facts = f"family Apple{d.family}, {d.shared_bytes >> 10} KiB shared, {d.memory_bytes >> 20} MiB, {d.system}"
        yield f"{d.name}, {facts}: {f'NO: {d.problem}' if d.problem else 'can be used'}"
    if found.missing:
        yield f"no: {found.missing}. {found.remedy}"


BACKENDS = [Metal()]
