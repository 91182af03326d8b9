"""Operands of products as matrix units want them: 16-bit floats, rows aligned to a packet.

What is so already stays where it lies. Else a copy is made: of constants once, when the session is created; of the rest in
each run, which costs a pass over it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product, typical
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Operand, Product, contiguous_strides
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import PACKET
from xyntra_ep.tracea.kernels.gpu._launch import LAUNCH_NS, gpu_of
from xyntra_ep.tracea.kernels.gpu._packets import is_multiple
from xyntra_ep.tracea.kernels.shared.address import address
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, Phase, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.gpu_builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import Const, f32, lt

HALVES = (DType.F16, DType.BF16)
_THREADS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """An operand as it is read: ``operand`` in ``buffer``, which ``copy`` fills where it is not the original."""

    operand: Operand
    buffer: ValueBuffer | TempBuffer
    copy: KernelCall | None = None


def dtype_of(op: Gemm) -> DType | None:
    """In what the product is multiplied; None where that has no fragments."""
    a, b = op.inputs[:2]
    if a.dtype is b.dtype and a.dtype in HALVES:
        return a.dtype
    return DType.BF16 if op.product is Product.BF16 and {a.dtype, b.dtype} <= {DType.BF16, DType.F32} else None


def narrow(op: Gemm, place: int, context: BuildContext) -> Narrow:
    """Operand ``place`` (0: a, 1: b) of a product that has a ``dtype_of``."""
    operand, dtype = op.inputs[place], dtype_of(op)
    assert dtype is not None
    if operand.dtype is dtype and _is_aligned(operand):
        return Narrow(operand=operand, buffer=ValueBuffer(value=operand.value))
    moves = [stride != 0 for stride in operand.strides[:-2]]
    stored = [e if m else 1 for e, m in zip(operand.shape, (*moves, True, True), strict=True)]
    stored[-1] = ceildiv(stored[-1], PACKET) * PACKET
    full = contiguous_strides(tuple(stored))
    strides = tuple(s if m else 0 for s, m in zip(full, (*moves, True, True), strict=True))
    packed = replace(operand, dtype=dtype, strides=strides, offset=0)
    buffer = TempBuffer(name=f"narrow{place}", size_bytes=product(stored) * dtype.bytes)
    return Narrow(operand=packed, buffer=buffer, copy=_copy(operand, packed, stored, buffer, context))


def _is_aligned(operand: Operand) -> bool:
    rows, columns = operand.strides[-2:]
    if 1 not in (rows, columns):
        return False
    apart = rows if columns == 1 else columns
    return all(is_multiple(s, PACKET) for s in (apart, operand.offset, *operand.strides[:-2]))


def _copy(source: Operand, packed: Operand, stored: list[Size], buffer: TempBuffer, context: BuildContext) -> KernelCall:
    """An element a thread; what fills a row up to packets is 0."""
    k = GpuBuilder(f"xy_gemm_narrow_{source.dtype}_{packed.dtype}", _THREADS)
    data, target = k.buffer("source", source.dtype), k.buffer("packed", packed.dtype, writable=True)
    number = k.let("element", k.block * _THREADS + k.thread)
    with k.when(lt(number, k.param(product(stored)))):
        *batch, row, column = k.split(number, stored)
        value = k.variable("value", Const(f32(1), 0.0))
        with k.when(lt(column, k.param(source.shape[-1]))):
            k.assign(value, k.load(data, address(k, source, [*batch, row, column])))
        k.store(target, number, value)
    kernel, params = k.finish()
    return KernelCall(
        kernel=kernel,
        buffers=(ValueBuffer(value=source.value), buffer),
        params=params,
        units=ceildiv(product(stored), _THREADS),
        cost_ns=product(stored) * (source.dtype.bytes + packed.dtype.bytes) // int(gpu_of(context).memory_gbs) + LAUNCH_NS,
        phase=Phase.PREPARE if context.is_constant(source.value) else Phase.RUN,
    )


def copies_ns(op: Gemm, context: BuildContext) -> float:
    """What the copies of each run take."""
    copies = [narrow(op, place, context).copy for place in (0, 1)]
    return sum(float(typical(copy.cost_ns)) for copy in copies if copy is not None and copy.phase is Phase.RUN)
