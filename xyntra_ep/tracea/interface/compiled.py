"""Kernels for a device as its compiler made them: registers and shared memory from its report, and what follows for occupancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.kernel_report import KernelReport, read_report
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import Gpu
from xyntra_ep.tracea.semantic_ir.gpu.multiprocessor import Occupancy

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKernel:
    """A kernel whose blocks have so many ``threads`` and ``shared_bytes``, declared and given together. ``report`` and
    ``occupancy`` are None where the compiler reports nothing, or nothing is known of the device's multiprocessors."""

    symbol: str
    threads: int
    shared_bytes: int
    report: KernelReport | None = None
    occupancy: Occupancy | None = None

    def __str__(self) -> str:
        text = f"blocks of {self.threads} threads"
        if self.report is None or self.occupancy is None:
            return text
        spilled = f", {self.report.spilled_bytes} bytes spilled" if self.report.spilled_bytes else ""
        held = self.occupancy
        return (
            f"{text}, {self.report.registers} registers{spilled}, {self.shared_bytes / 1024:.3g} KiB shared: {held.blocks} on a"
            f" multiprocessor, {held.warps} of {held.of_warps} warps by {held.limit}"
        )


def device_kernel(path: Path, symbol: str, threads: int, given_bytes: int, gpu: Gpu) -> DeviceKernel:
    """The kernel ``symbol`` of a file in the cache; ``given_bytes``: shared memory beside what it declares."""
    report = read_report(path, symbol)
    shared_bytes = given_bytes + (report.shared_bytes if report is not None else 0)
    held = None
    if report is not None and gpu.multiprocessor is not None:
        held = gpu.multiprocessor.occupancy(threads=threads, registers=report.registers, shared_bytes=shared_bytes)
    return DeviceKernel(symbol=symbol, threads=threads, shared_bytes=shared_bytes, report=report, occupancy=held)


def compiled_kernels(context: Context, sources: Sequence[KernelSource]) -> list[DeviceKernel]:
    """``sources`` for the context's device. Where its multiprocessors are known they are compiled, or found in the cache. Raises
    CompileError for one that does not compile."""
    assert context.device is not None
    gpu = context.device.gpu
    if gpu.multiprocessor is None:
        return [DeviceKernel(symbol=s.symbol, threads=s.threads, shared_bytes=s.shared_bytes) for s in sources]
    found = []
    for source, made in zip(sources, context.kernels.compile_many([s.distinct() for s in sources]), strict=True):
        if isinstance(made, CompileError):
            raise made
        found.append(device_kernel(made.path, made.symbol, source.threads, source.shared_bytes, gpu))
    return found
