"""The text of kernels as an emitter prints them."""

from __future__ import annotations

from collections.abc import Callable

from xyntra_ep.tracea.emitters import cpu
from xyntra_ep.tracea.runtime.kernel_source import Definitions, KernelSource, text_of
from xyntra_ep.tracea.semantic_ir.capabilities import Capabilities
from xyntra_ep.tracea.semantic_ir.nodes import Kernel


def source_of(kernel: Kernel, caps: Capabilities) -> KernelSource:
    return KernelSource(symbol=kernel.name, definitions=cpu.emit(kernel, caps))


def c_text(kernel: Kernel, caps: Capabilities) -> str:
    return source_of(kernel, caps).text


def gpu_text(emit: Callable[[Kernel], Definitions], kernel: Kernel) -> str:
    return text_of(emit(kernel), kernel.name)
