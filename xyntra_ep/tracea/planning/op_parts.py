"""The parts of a core-IR op that planning looks at, for all kinds of op alike."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_ep.tracea.core_ir.dims import Dim, Size
from xyntra_ep.tracea.core_ir.expr import Expr, walk
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Recurrence,
    RowReduce,
    Scan,
    outputs_of,
)


def bodies_of(op: CoreOp) -> list[tuple[Expr, int]]:
    """Every expression of ``op`` with the number of axes of its domain."""
    match op:
        case Pointwise():
            return [(body, len(op.domain)) for body in op.bodies]
        case RowReduce():
            both, rows = len(op.outer) + len(op.inner), len(op.outer)
            return [(s.body, both) for s in op.stages] + [(o.body, rows if o.per_row else both) for o in op.outputs]
        case Gemm() | Conv():
            return [(op.epilogue, len(op.domain))]
        case Attention():
            return [(op.score, 4)]
        case Scan():
            return [(op.body, len(op.output.shape))]
        case Recurrence():
            return [(body, 4) for body in (*op.initial, *(b for stage in op.stages for b in stage.bodies))]
        case _:
            return []


def reads_directly(op: CoreOp) -> int:
    """How many leading inputs are read by the op itself, not through an expression."""
    match op:
        case Gemm() | Conv():
            return 2
        case Attention():
            return 3
        case Pointwise() | RowReduce() | Scan():
            return 0
        case Recurrence():
            return 1 + op.has_lengths
        case _:
            return 1


def known_results(op: CoreOp) -> list[int]:
    """How many results of the op itself, acc(0), acc(1) ..., each of ``bodies_of`` may read."""
    match op:
        case RowReduce():  # a stage sees the stages before it
            return [min(k, len(op.stages)) for k in range(len(op.stages) + len(op.outputs))]
        case Pointwise() | Scan():
            return [0] * len(bodies_of(op))
        case Recurrence():
            known, vectors = [0] * len(op.initial), len(op.initial)
            for stage in op.stages:
                known += [stage.gates + vectors] * len(stage.bodies)
                vectors += len(stage.bodies)
            return known
        case _:
            return [1] * len(bodies_of(op))


def operands_of(op: CoreOp) -> tuple[Operand, ...]:
    """Inputs, then outputs."""
    return op.inputs + outputs_of(op)


def sizes_of(op: CoreOp) -> Iterator[Size]:
    """Every size that the op's meaning depends on."""
    for operand in operands_of(op):
        yield from operand.shape
        yield from operand.strides
        yield operand.offset
    match op:
        case Pointwise():
            yield from op.domain
        case RowReduce():
            yield from op.outer
            yield from op.inner
        case Conv():
            yield from op.pads
        case Recurrence():
            yield from op.domain
        case _:
            pass
    for e in walk(*(body for body, _ in bodies_of(op))):
        if e.kind == "size":
            yield e.attr


def is_fixed(op: CoreOp) -> bool:
    """Whether no size of ``op`` depends on a symbol."""
    return not any(isinstance(size, Dim) for size in sizes_of(op))
