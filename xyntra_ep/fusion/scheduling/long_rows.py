"""Which axis of a product's result its kernels count as rows.

    y[t, b, :] = x[t, b, :] W, where x is stored [b][t]:  no single row index steps evenly through both operands, so kernels
    count one axis and loop over the other, reading W each time: the longer one is counted, here t

Where both axes step as one, kernels count them as one, and a W of each b's own leaves no choice.
"""

from __future__ import annotations

from dataclasses import replace

from xyntra_ep.tracea.core_ir.dims import typical
from xyntra_ep.tracea.core_ir.expr import Expr, axis, rewrite
from xyntra_ep.tracea.core_ir.ops import Gemm, LowRankGemm, Operand


def count_the_longer(op: Gemm) -> Gemm:
    """``op`` or the same product over [..., m, batch, n], whichever has more rows at the sizes that are assumed."""
    if isinstance(op, LowRankGemm):
        return op  # its second product has rows of its own
    a, b, *rest = op.inputs
    last, rows = len(op.domain) - 3, len(op.domain) - 2
    if last < 0 or b.strides[last] != 0 or typical(op.domain[last]) <= typical(op.domain[rows]):
        return op
    if all(x.strides[last] == x.strides[rows] * op.domain[rows] for x in (a, op.output)):
        return op

    def exchanged(operand: Operand) -> Operand:
        order = list(range(len(operand.shape)))
        order[last], order[rows] = rows, last
        shape, strides = operand.shape, operand.strides
        return replace(operand, shape=tuple(shape[i] for i in order), strides=tuple(strides[i] for i in order))

    def renamed(e: Expr) -> Expr | None:
        if e.kind != "axis" or e.attr not in (last, rows):
            return None
        return axis(rows if e.attr == last else last)

    wide = replace(b, shape=(*b.shape[:last], op.domain[rows], *b.shape[rows:]))  # b is one for all: its axis m is no row
    inputs = (exchanged(a), wide, *rest)
    return replace(op, inputs=inputs, epilogue=rewrite(op.epilogue, renamed), output=exchanged(op.output))
