"""Operands of products as matrix units want them: 16-bit floats, or f32 for tf32, rows aligned to a packet.

What is so already stays where it lies. Else a copy is made: of constants once, when the session is created; of the rest in
each run, which costs a pass over it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xyntra_ep.tracea.core_ir.dims import Size, ceildiv, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Operand, contiguous_strides
from xyntra_ep.tracea.kernels.gpu.shared.launch import estimate_ns, gpu_of
from xyntra_ep.tracea.kernels.gpu.shared.packets import is_multiple
from xyntra_ep.tracea.kernels.gpu.shared.packing import pack, temporary
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import packet_of
from xyntra_ep.tracea.kernels.variant import BuildContext, KernelCall, TempBuffer, ValueBuffer
from xyntra_ep.tracea.semantic_ir.nodes import lt

HALVES = (DType.F16, DType.BF16)


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow:
    """Operand ``place`` of a product as it is read: ``operand``; a contiguous copy of the extents ``stored`` where that is not
    empty, else the original ``source``."""

    place: int
    source: Operand
    operand: Operand
    stored: tuple[Size, ...] = ()

    @property
    def buffer(self) -> ValueBuffer | TempBuffer:
        if not self.stored:
            return ValueBuffer(value=self.source.value)
        return temporary(f"narrow{self.place}", self.stored, self.operand.dtype)

    def copies(self, context: BuildContext) -> list[KernelCall]:
        """What fills the buffer. What fills a row up to packets is 0."""
        source, target = self.source, self.buffer
        if isinstance(target, ValueBuffer):
            return []
        name = f"xy_gemm_narrow_{source.dtype}_{self.operand.dtype}"
        columns = source.shape[-1]
        return [
            pack(
                name,
                source,
                target,
                self.stored,
                self.operand.dtype,
                lambda k, at: (at, lt(at[-1], k.param(columns))),
                context,
            )
        ]


def dtype_of(op: Gemm | Conv) -> DType | None:
    """In what a and b, or x and w, are multiplied; None where that has no fragments."""
    a, b = op.inputs[:2]
    if a.dtype is b.dtype and a.dtype in HALVES:
        return a.dtype
    wanted = op.product.matrix
    return wanted if wanted is not None and {a.dtype, b.dtype} <= {wanted, DType.F32} else None


def narrow(op: Gemm, place: int) -> Narrow:
    """Operand ``place`` (0: a, 1: b) of a product that has a ``dtype_of``."""
    operand, dtype = op.inputs[place], dtype_of(op)
    assert dtype is not None
    if operand.dtype is dtype and _is_aligned(operand):
        return Narrow(place=place, source=operand, operand=operand)
    moves = (*(stride != 0 for stride in operand.strides[:-2]), True, True)
    stored = [extent if moved else 1 for extent, moved in zip(operand.shape, moves, strict=True)]
    stored[-1] = ceildiv(stored[-1], packet_of(dtype)) * packet_of(dtype)
    strides = tuple(s if moved else 0 for s, moved in zip(contiguous_strides(tuple(stored)), moves, strict=True))
    packed = replace(operand, dtype=dtype, strides=strides, offset=0)
    return Narrow(place=place, source=operand, operand=packed, stored=tuple(stored))


def _is_aligned(operand: Operand) -> bool:
    rows, columns = operand.strides[-2:]
    if 1 not in (rows, columns):
        return False
    apart = rows if columns == 1 else columns
    return all(is_multiple(s, packet_of(operand.dtype)) for s in (apart, operand.offset, *operand.strides[:-2]))


def copies_ns(op: Gemm, context: BuildContext) -> float:
    """What the copies of each run take."""
    read = [narrow(op, place) for place in (0, 1)]
    each_run = [n for n in read if n.stored and not context.is_constant(n.source.value)]
    return sum(estimate_ns(product(n.stored), gpu_of(context)) for n in each_run)
