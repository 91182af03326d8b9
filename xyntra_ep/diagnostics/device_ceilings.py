"""What a device that sessions can run on reaches at best: `tracea/doctor/device_ceilings.py`, timed by native code.

ceilings = measure_device(cuda_target(), memory_bytes=80 << 30, cache_bytes=50 << 20)
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from xyntra_ep.errors import CompileError, XyntraError
from xyntra_ep.provider import registration
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.doctor import device_ceilings
from xyntra_ep.tracea.doctor.device_ceilings import DeviceCeilings, TimeKernel
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.runtime.hashing import hash128_of
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.check import check_kernel
from xyntra_ep.tracea.semantic_ir.nodes import Kernel

_WHY_BYTES = 4096


def measure_device(target: DeviceTarget, *, memory_bytes: int, cache_bytes: int, cache_dir: Path | None = None) -> DeviceCeilings:
    """Raises XyntraError with what the compiler or the device says."""
    timer = kernel_timer(target, cache_dir)
    return device_ceilings.measure(target.gpu, timer, memory_bytes=memory_bytes, cache_bytes=cache_bytes)


def kernel_timer(target: DeviceTarget, cache_dir: Path | None = None) -> TimeKernel:
    """Compiles kernels for ``target`` and has native code launch them."""
    library = registration.library()
    kernels = Context(cache_dir=cache_dir, hash128=hash128_of(library), device=target).kernels

    def timed(kernel: Kernel, *, units: int, buffer_bytes: Sequence[int], params: Sequence[int], runs: int) -> list[int]:
        check_kernel(kernel)
        [compiled] = kernels.compile_many([KernelSource(symbol=kernel.name, definitions=target.emit(kernel))])
        if isinstance(compiled, CompileError):
            raise compiled
        ns = (ctypes.c_int64 * runs)()
        why = ctypes.create_string_buffer(_WHY_BYTES)
        done = library.xyntra_time_kernel(
            target.identity.encode(),
            os.fsencode(compiled.path),
            compiled.hash128,
            kernel.name.encode(),
            kernel.threads,
            units,
            (ctypes.c_uint64 * len(buffer_bytes))(*buffer_bytes),
            len(buffer_bytes),
            (ctypes.c_int32 * len(params))(*params),
            len(params),
            ns,
            runs,
            why,
            len(why),
        )
        if done != 1:
            raise XyntraError(why.value.decode(errors="replace"), where=target.name)
        return list(ns)

    return timed
