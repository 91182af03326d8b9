"""Recognising causal masks: the part of a score that need not be computed.

>>> from xyntra_ep.tracea.core_ir.expr import acc, axis, call, const
>>> find_causal(call("where", call("le", axis(3), axis(2)), acc(), const(float("-inf"))))
CausalMask(visible=acc0, reach=1, masked=-inf)
"""

from __future__ import annotations

from dataclasses import dataclass

from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.kernels.shared.affine import CONSTANT, add_affine, affine

ROW, COLUMN = 2, 3  # axes of a score: batch, head, row (of q), column (of k)


@dataclass(frozen=True, slots=True, kw_only=True)
class CausalMask:
    """Row s sees the columns below s + ``reach``: there the score is ``visible``, elsewhere the number ``masked``."""

    visible: Expr
    reach: Size
    masked: float


def find_causal(score: Expr) -> CausalMask | None:
    """The mask of ``where(column <= row + ..., x, number)``, written with < or <=, either way round."""
    if score.kind != "call" or score.attr != "where":
        return None
    condition, yes, no = score.args
    if condition.kind != "call" or condition.attr not in ("le", "lt"):
        return None
    left, right = (affine(a) for a in condition.args)
    if left is None or right is None:
        return None
    strict = condition.attr == "lt"
    gap = add_affine(dict(right), left, -1)
    start = gap.pop(CONSTANT, 0)
    steps = {axis: c for axis, c in gap.items() if c != 0}
    if steps == {ROW: 1, COLUMN: -1} and no.kind == "const":  # visible where column <= row + start
        return CausalMask(visible=yes, reach=start if strict else start + 1, masked=no.attr)
    if steps == {ROW: -1, COLUMN: 1} and yes.kind == "const":  # masked where row - start <= column
        return CausalMask(visible=no, reach=1 - start if strict else -1 * start, masked=yes.attr)
    return None
