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
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Product,
    Recurrence,
    RowReduce,
    Scan,
    outputs_of,
)

SOFTMAX_FLOPS = 8  # of one weight: scale, maximum, difference, exponential (4), sum
_WEIGHT_BYTES = {Product.BF16: 2, Product.F16: 2, Product.INT8W: 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedWork:
    """Floating-point operations and bytes as functions of the run's sizes."""

    flops: Size = 0
    bytes: Size = 0


NO_WORK = SizedWork()


def sized_work(op: CoreOp, constants: Collection[int] = ()) -> SizedWork:
    """The work of ``op``; ``constants``: values known beforehand, which a product may keep in a narrower type."""
    moved: Size = 0
    for i, operand in enumerate(op.inputs):
        moved = moved + _elements(operand, op) * _width(op, i, operand, constants)
    for operand in outputs_of(op):
        moved = moved + _elements(operand, op) * operand.dtype.bytes
    return SizedWork(flops=_flops(op), bytes=moved)


def _flops(op: CoreOp) -> Size:
    match op:
        case Gemm():
            return 2 * product(op.domain) * op.inputs[0].shape[-1]
        case Conv():
            return 2 * product(op.domain) * product(op.inputs[1].shape[1:])
        case Attention():
            q, v = op.inputs[0].shape, op.inputs[2].shape
            return product(q[:3]) * v[2] * (2 * (q[3] + v[3]) + SOFTMAX_FLOPS)
        case Pointwise():
            return _calls(*op.bodies) * product(op.domain)
        case RowReduce():
            stages = _calls(*(s.body for s in op.stages)) + len(op.stages)
            rows = _calls(*(o.body for o in op.outputs if o.per_row))
            every = _calls(*(o.body for o in op.outputs if not o.per_row))
            return ((stages + every) * product(op.inner) + rows) * product(op.outer)
        case Scan():
            return product(op.output.shape)
        case Recurrence():
            each = _calls(*(body for stage in op.stages for body in stage.bodies))
            return (2 * op.gates * op.domain[3] + each) * product(op.domain)
        case _:
            return product(op.inputs[0].shape)


def _calls(*bodies: Expr) -> int:
    """Functions of floating-point numbers; the arithmetic of indices is not counted."""
    return sum(e.kind == "call" and e.dtype.is_float for e in walk(*bodies))


def _elements(operand: Operand, op: CoreOp) -> Size:
    count = product(n for n, stride in zip(operand.shape, operand.strides, strict=True) if stride != 0)
    match op:
        case Pointwise():
            return smin(count, product(op.domain))
        case RowReduce():
            return smin(count, product(op.outer + op.inner))
        case _:
            return count


def _width(op: CoreOp, position: int, operand: Operand, constants: Collection[int]) -> int:
    if isinstance(op, Gemm | Conv) and position == 1 and operand.value in constants:
        return min(operand.dtype.bytes, _WEIGHT_BYTES.get(op.product, operand.dtype.bytes))
    return operand.dtype.bytes
