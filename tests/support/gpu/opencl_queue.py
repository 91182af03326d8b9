"""Memory, programs and launches of one OpenCL device through pyopencl, for kernels that no session asks for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.opencl import OpenClDevice

Bytes = NDArray[np.uint8]
_GO = 1  # a kernel's last argument: to do what it is there for


class Queue:
    """What is asked of it happens in order."""

    def __init__(self, device: OpenClDevice) -> None:
        import pyopencl as cl

        platform, number = device.place
        handle = cl.get_platforms()[platform].get_devices()[number]
        self._cl = cl
        self._context = cl.Context([handle])
        self._queue = cl.CommandQueue(self._context)
        self._handle = handle
        self._options = list(device.build_options)

    def build(self, symbol: str, text: str) -> Any:
        """The kernel ``symbol`` of a program. Raises CompileError with the log."""
        cl = self._cl
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # compilers talk about successes too
                program = cl.Program(self._context, text).build(options=self._options)
            return cl.Kernel(program, symbol)
        except cl.Error as error:
            raise CompileError("the OpenCL driver refuses it", where=symbol, source=text, log=str(error)) from error

    def allocate(self, size_bytes: int) -> Any:
        return self._cl.Buffer(self._context, self._cl.mem_flags.READ_WRITE, max(1, size_bytes))

    def upload(self, data: Bytes) -> Any:
        """A copy of ``data`` in the device's memory."""
        buffer = self.allocate(data.nbytes)
        if data.nbytes:
            self._cl.enqueue_copy(self._queue, buffer, data)
        return buffer

    def download(self, buffer: Any, size_bytes: int) -> Bytes:
        data = np.empty(size_bytes, dtype=np.uint8)
        if size_bytes:
            self._cl.enqueue_copy(self._queue, data, buffer)
        return data

    def launch(self, kernel: Any, blocks: int, buffers: Sequence[Any], params: Sequence[int]) -> None:
        """Run ``blocks`` blocks of as many threads as the kernel's text says; ``params`` are 32-bit integers."""
        if blocks:
            threads, *_ = kernel.get_work_group_info(self._cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, self._handle)
            kernel(self._queue, (blocks * threads,), (threads,), *buffers, *(np.int32(p) for p in (*params, _GO)))
