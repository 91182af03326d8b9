"""What an op must at least do, and how long a machine needs for that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size, evaluate, product, symbols_of
from xyntra_ep.tracea.core_ir.expr import walk
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    RowReduce,
    Scan,
    outputs_of,
)

TYPICAL = 128  # taken for a size that is known at run time only


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Floating-point operations (a multiply-add is two) and bytes that must cross the memory at least once."""

    flops: float
    bytes: float

    def __add__(self, other: Work) -> Work:
        return Work(flops=self.flops + other.flops, bytes=self.bytes + other.bytes)


def roofline_ns(work: Work, *, gflops: float, gbs: float) -> float:
    """The least time for ``work``: the slower of computing (10^9 flop/s) and moving (10^9 bytes/s).

    >>> roofline_ns(Work(flops=2e9, bytes=1e6), gflops=200, gbs=20)
    10000000.0
    """
    return max(work.flops / gflops, work.bytes / gbs)


def typical(size: Size) -> int:
    """``size`` with 128 for every symbol; a difference that comes out empty so is typical, too."""
    value = evaluate(size, dict.fromkeys(symbols_of(size), TYPICAL))
    return value if value > 0 or isinstance(size, int) else TYPICAL


def work_of(op: CoreOp) -> Work:
    """The work of one op, at typical values of symbolic sizes."""
    outputs = outputs_of(op)
    moved = float(sum(_bytes(o) for o in (*op.inputs, *outputs)))
    match op:
        case Gemm():
            k = op.inputs[0].shape[-1]
            flops = 2 * typical(product(op.domain)) * typical(k)
        case Conv():
            taps = product(op.inputs[1].shape[1:])
            flops = 2 * typical(product(op.domain)) * typical(taps)
        case Attention():
            q, v = op.inputs[0].shape, op.inputs[2].shape
            scores = typical(product(q[:3])) * typical(v[2])
            flops = 2 * scores * (typical(q[3]) + typical(v[3])) + 8 * scores
        case Pointwise():
            calls = sum(e.kind == "call" for e in walk(*op.bodies))
            flops = calls * typical(product(op.domain))
        case RowReduce():
            bodies = [s.body for s in op.stages] + [o.body for o in op.outputs]
            calls = sum(e.kind == "call" for e in walk(*bodies)) + len(op.stages)
            flops = calls * typical(product(op.outer + op.inner))
        case Scan():
            flops = typical(product(op.output.shape))
        case _:
            flops = typical(product(op.inputs[0].shape))
    return Work(flops=float(flops), bytes=moved)


def total(works: Iterable[Work]) -> Work:
    return sum(works, Work(flops=0.0, bytes=0.0))


def _bytes(operand: Operand) -> int:
    """Each element once: a broadcast dimension (stride 0) is not read again."""
    extents = [e for e, stride in zip(operand.shape, operand.strides, strict=True) if stride != 0]
    return typical(product(extents)) * operand.dtype.bytes
