"""Copies of operands in another order, type or size, an element a thread: what kernels read in their place."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.kernels.gpu.shared.launch import gpu_of, steps_ns
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, Rvalue, f32, lt

_THREADS = 128

# Of an element's coordinates in the copy: those in the original, and whether it is there (0 is stored otherwise).
Place = Callable[[GpuBuilder, Sequence[Rvalue]], tuple[Sequence[Rvalue], Rvalue]]


def temporary(name: str, extents: Sequence[Size], dtype: DType) -> TempBuffer:
    """For a contiguous copy of these ``extents``."""
    return TempBuffer(name=name, size_bytes=product(extents) * dtype.bytes)


def pack(
    name: str, source: Operand, target: TempBuffer, extents: Sequence[Size], dtype: DType, place: Place, context: BuildContext
) -> KernelCall:
    """The call that fills ``target``: once where the source is constant, in each run where it is not."""
    k = GpuBuilder(name, _THREADS)
    data, packed = k.buffer("source", source.dtype), k.buffer("packed", dtype, writable=True)
    count = product(extents)
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(count))):
        at, exists = place(k, k.split(number, extents))
        value = k.variable("value", Const(f32(1), 0.0))
        with k.when(exists):
            k.assign(value, k.load(data, address(k, source, at)))
        k.store(packed, number, value)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=source.value), target),
        params=params,
        units=ceildiv(count, _THREADS),
        cost_ns=steps_ns(count, gpu_of(context)),
        phase=Phase.PREPARE if context.is_constant(source.value) else Phase.RUN,
    )
