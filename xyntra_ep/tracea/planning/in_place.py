"""Elementwise results in the memory of an operand that nobody needs any more: less memory to touch, fewer cache lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program


def reused_input(program: Program, op: CoreOp, dying: Collection[int]) -> int | None:
    """The value whose memory ``op``'s result may take, None if there is none.

    ``dying``: temporaries that nothing after ``op`` touches. Every element must be read only where it is
    written, so that no unit sees another unit's result.
    """
    out = op.written[0]
    for j, operand in enumerate(op.inputs):
        if (
            operand.value in dying
            and _same_layout(program, operand, out)
            and [o.value for o in op.inputs].count(operand.value) == 1
            and op.reads_in_place(j)
        ):
            return operand.value
    return None


def _same_layout(program: Program, a: Operand, b: Operand) -> bool:
    sizes = [product(program.values[o.value].shape) * o.dtype.bytes for o in (a, b)]
    return (
        sizes[0] == sizes[1]
        and a.dtype.bytes == b.dtype.bytes
        and (a.shape, a.strides, a.offset) == (b.shape, b.strides, b.offset)
    )


def resolve(aliases: Mapping[int, int], value: int) -> int:
    """The value whose buffer ``value`` lives in."""
    while value in aliases:
        value = aliases[value]
    return value
