"""That no operand reaches beyond its value: proven for all sizes, or the condition of the run that is left.

A kernel reads and writes what its operands say, at most from the first to the last element of each view, and expressions that
index at will are clamped into the view (`kernels.shared.index`). So a program is safe when each view lies within its value. Views
come out of strides and sums of symbolic sizes; where polynomial arithmetic decides, nothing is left to do. Else the plan carries
the condition, native code evaluates it once for each new shape, and a run that breaks it fails before anything is executed.

Fusion has demanded what operators mean (`fusion.structure`), so in a run that it lets pass these hold: they are a second lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xyntra_ep.errors import InvariantError
from xyntra_ep.tracea.core_ir.dims import Size, both, either, eq, le, lt, product, span
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Program, contiguous_strides

Condition = tuple[Size, str]


def bounds_of(program: Program, ops: Sequence[int]) -> list[Condition]:
    """What must hold of sizes for ``ops`` (positions in ``program.ops``) to stay within their values, each condition once.

    Raises InvariantError where an operand lies outside of its value at all sizes.
    """
    found: dict[Size, str] = {}
    for i in ops:
        op = program.ops[i]
        for condition, what in _conditions(program, op):
            message = f"{op.label or type(op).__name__}: {what}"
            if condition == 0:
                raise InvariantError(message, pass_name="bounds", ir=str(op))
            if condition != 1:
                found.setdefault(condition, message)
    return list(found.items())


def _conditions(program: Program, op: CoreOp) -> Iterator[Condition]:
    for j, operand in enumerate(op.operands):
        count = product(program.values[operand.value].shape)
        for extent in operand.shape:
            yield le(0, extent), f"operand {j} would have a negative size"
        yield _inside(operand, count), f"operand {j} would reach beyond its memory"


def _inside(operand: Operand, count: Size) -> Size:
    """Whether all elements of the view lie in [0, count); a view without elements always does."""
    low, high = reach_of(operand)
    within = both(le(0, low), lt(high, count))
    if isinstance(within, int) and within:
        return 1
    return either(within, eq(product(operand.shape), 0))


def reach_of(operand: Operand) -> tuple[Size, Size]:
    """The least and the greatest position of a view that has elements."""
    if operand.strides == contiguous_strides(operand.shape):  # products of extents, so none is negative
        return operand.offset, operand.offset + product(operand.shape) - 1
    return span(operand.offset, zip(operand.shape, operand.strides, strict=True))
