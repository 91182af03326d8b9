"""Kernels for a device as its compiler made them: registers and shared memory from its report, and what follows for occupancy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xyntra_ep.errors import CompileError
from xyntra_ep.tracea.runtime.kernel_report import KernelReport, read_report
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.semantic_ir.multiprocessor import Occupancy

if TYPE_CHECKING:
    from xyntra_ep.tracea.interface.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceKernel:
    """A launch of ``blocks`` blocks. ``shared_bytes``: declared and given together. ``report`` and ``occupancy`` are None where
    the compiler reports nothing; ``waves``: how often the device is filled."""

    symbol: str
    blocks: int
    threads: int
    shared_bytes: int = 0
    report: KernelReport | None = None
    occupancy: Occupancy | None = None
    waves: float = 0.0

    def __str__(self) -> str:
        text = f"{self.symbol}: {self.blocks} blocks of {self.threads} threads"
        if self.report is None or self.occupancy is None:
            return text
        spilled = f", {self.report.spilled_bytes} bytes spilled" if self.report.spilled_bytes else ""
        held = self.occupancy
        return (
            f"{text}, {self.report.registers} registers{spilled}, {self.shared_bytes / 1024:.3g} KiB shared: {held.blocks} on a"
            f" multiprocessor, {held.warps} of {held.of_warps} warps by {held.limit}, {self.waves:.3g} waves"
        )


def compiled_kernels(context: Context, launches: Sequence[tuple[KernelSource, int]]) -> list[DeviceKernel]:
    """``launches``: kernels and their blocks. Where the device's multiprocessors are known they are compiled, or found in the
    cache. Raises CompileError for one that does not compile."""
    assert context.device is not None
    unit, units = context.device.gpu.multiprocessor, context.device.gpu.units
    if unit is None:
        return [DeviceKernel(symbol=source.symbol, blocks=blocks, threads=source.threads) for source, blocks in launches]
    found = []
    distinct = [source.distinct() for source, _ in launches]
    made_all = context.kernels.compile_many(distinct)
    for (source, blocks), named, made in zip(launches, distinct, made_all, strict=True):
        if isinstance(made, CompileError):
            raise made
        kernel = DeviceKernel(symbol=source.symbol, blocks=blocks, threads=source.threads, shared_bytes=source.shared_bytes)
        report = read_report(made.path, named.symbol)
        if report is not None:
            shared_bytes = source.shared_bytes + report.shared_bytes
            held = unit.occupancy(threads=source.threads, registers=report.registers, shared_bytes=shared_bytes)
            kernel = DeviceKernel(
                symbol=source.symbol,
                blocks=blocks,
                threads=source.threads,
                shared_bytes=shared_bytes,
                report=report,
                occupancy=held,
                waves=blocks / (units * held.blocks) if held.blocks else 0.0,
            )
        found.append(kernel)
    return found
