"""What an op must at least do, whoever carries it out: floating-point operations and bytes, for any sizes.

Operations are those of the op's definition, a multiply-add being two: `2 M N K` for a product, `2 outputs x taps` for a
convolution (so one by Winograd's method does fewer than are counted), `2 S T (D + E)` and 8 for each softmax weight for
attention, one for each function of an elementwise body. Bytes are the compulsory traffic of Williams et al., "Roofline"
(2009): each element of inputs, weights and outputs once, along a broadcast axis once, of a table no more than is looked
up, weights in the width that the product keeps them in; temporaries of the op itself are not counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, product, smin
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedWork:
    """Floating-point operations and bytes as functions of the run's sizes."""

    flops: Size = 0
    bytes: Size = 0


NO_WORK = SizedWork()


def sized_work(op: CoreOp, constants: Collection[int] = ()) -> SizedWork:
    """The work of ``op``; ``constants``: values known beforehand, which a product may keep in a narrower type."""
    moved: Size = 0
    most = op.points()
    for i, operand in enumerate(op.inputs):
        width = op.known_bytes(i) if operand.value in constants else operand.dtype.bytes
        moved = moved + _elements(operand, most) * width
    for operand in op.written:
        moved = moved + _elements(operand, most) * operand.dtype.bytes
    return SizedWork(flops=op.flops(), bytes=moved)


def _elements(operand: Operand, most: Size | None) -> Size:
    count = product(n for n, stride in zip(operand.shape, operand.strides, strict=True) if stride != 0)
    return count if most is None else smin(count, most)
