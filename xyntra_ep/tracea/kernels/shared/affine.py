"""Index expressions as forms that can be added up: what addresses are made of.

>>> from xyntra_ep.tracea.core_ir.expr import axis, call, const
>>> affine(call("add", call("mul", axis(1), const(3)), const(5)))
{1: 3, -1: 5}
"""

from __future__ import annotations

from xyntra_ep.tracea.core_ir import index_range
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr

Affine = dict[int, Size]  # axis -> coefficient
CONSTANT = -1  # the key of the part without an axis


def affine(e: Expr) -> Affine | None:
    """``e`` (an integer) as a sum of axes times sizes; None when it is not one."""
    parts = index_range.affine(e)
    if parts.rest.kind not in ("const", "size"):
        return None
    form = dict(parts.coefficients)
    if parts.rest.attr != 0:
        form[CONSTANT] = parts.rest.attr
    return form


def add_affine(form: Affine, more: Affine, factor: Size) -> Affine:
    """``form`` + ``more`` * ``factor``, in place."""
    for axis, coefficient in more.items():
        form[axis] = form.get(axis, 0) + coefficient * factor
    return form
