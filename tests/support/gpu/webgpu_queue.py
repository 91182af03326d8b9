"""Memory, modules and launches of one WebGPU adapter through the package wgpu, for kernels that no session asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import CompileError

Bytes = NDArray[np.uint8]
MOST_BLOCKS = 65535  # in one dimension


@dataclass(frozen=True, slots=True)
class Built:
    """A pipeline, and how many buffers it takes."""

    pipeline: Any
    layout: Any
    buffers: int


class Queue:
    """What is asked of it happens in order."""

    def __init__(self) -> None:
        import wgpu

        self._wgpu = wgpu
        adapter = next(a for a in wgpu.gpu.enumerate_adapters_sync() if a.info["backend_type"] != "OpenGL")
        names = ("max-storage-buffers-per-shader-stage", "max-compute-workgroup-storage-size")
        limits = {name: adapter.limits[name] for name in names}
        self._device = adapter.request_device_sync(required_limits=limits)

    def build(self, symbol: str, text: str) -> Built:
        """The kernel ``symbol`` of a module. Raises CompileError with the validator's words."""
        usage, kinds = self._wgpu.ShaderStage.COMPUTE, self._wgpu.BufferBindingType
        count = len(re.findall(r"var<storage", text))
        entries = [
            {"binding": i, "visibility": usage, "buffer": {"type": kinds.storage if i < count else kinds.uniform}}
            for i in range(count + 1)
        ]
        try:
            module = self._device.create_shader_module(code=text)
            layout = self._device.create_bind_group_layout(entries=entries)
            pipeline = self._device.create_compute_pipeline(
                layout=self._device.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": symbol},
            )
        except self._wgpu.GPUError as error:
            raise CompileError("WebGPU refuses it", where=symbol, source=text, log=str(error)) from error
        return Built(pipeline, layout, count)

    def upload(self, data: Bytes) -> Any:
        """A copy of ``data`` in the device's memory, rounded up to words."""
        usage = self._wgpu.BufferUsage
        whole = np.concatenate([data, np.zeros(-data.size % 4 + 4, np.uint8)])
        return self._device.create_buffer_with_data(data=whole, usage=usage.STORAGE | usage.COPY_SRC)

    def download(self, buffer: Any, size_bytes: int) -> Bytes:
        return np.frombuffer(self._device.queue.read_buffer(buffer), np.uint8)[:size_bytes].copy()

    def launch(self, kernel: Built, blocks: int, buffers: Sequence[Any], params: Sequence[int]) -> None:
        """Run ``blocks`` blocks of as many threads as the kernel's text says; ``params`` are 32-bit integers."""
        if not blocks:
            return
        usage = self._wgpu.BufferUsage
        given = self._device.create_buffer_with_data(data=np.array([*params, blocks], np.int32), usage=usage.UNIFORM)
        entries = [
            {"binding": i, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
            for i, buffer in enumerate([*buffers, given])
        ]
        group = self._device.create_bind_group(layout=kernel.layout, entries=entries)
        encoder = self._device.create_command_encoder()
        inside = encoder.begin_compute_pass()
        inside.set_pipeline(kernel.pipeline)
        inside.set_bind_group(0, group)
        rows = -(-blocks // MOST_BLOCKS)
        inside.dispatch_workgroups(-(-blocks // rows), rows, 1)
        inside.end()
        self._device.queue.submit([encoder.finish()])
