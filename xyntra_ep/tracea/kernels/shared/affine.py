"""Index expressions as affine forms of the domain's axes: what addresses are made of.

>>> from xyntra_ep.tracea.core_ir.expr import axis, call, const
>>> affine(call("add", call("mul", axis(1), const(3)), const(5)))
{1: 3, -1: 5}
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.tracea.core_ir.dims import Size, known_nonnegative
from xyntra_ep.tracea.core_ir.expr import Expr

Affine = dict[int, Size]  # axis -> coefficient
CONSTANT = -1  # the key of the part without an axis


def affine(e: Expr) -> Affine | None:
    """``e`` (an integer) as a sum of axes times sizes; None when it is not one."""
    if e.kind == "axis":
        return {e.attr: 1}
    if e.kind in ("const", "size"):
        return {CONSTANT: e.attr}
    if e.kind != "call" or e.attr not in ("add", "sub", "mul", "neg"):
        return None
    parts = [affine(a) for a in e.args]
    if any(p is None for p in parts):
        return None
    first = dict(parts[0] or {})
    if e.attr == "neg":
        return add_affine({}, first, -1)
    second = parts[1] or {}
    if e.attr != "mul":
        return add_affine(first, second, 1 if e.attr == "add" else -1)
    for form, factor in ((first, second), (second, first)):
        if set(factor) <= {CONSTANT}:
            return add_affine({}, form, factor.get(CONSTANT, 0))
    return None


def add_affine(form: Affine, more: Affine, factor: Size) -> Affine:
    """``form`` + ``more`` * ``factor``, in place."""
    for axis, coefficient in more.items():
        form[axis] = form.get(axis, 0) + coefficient * factor
    return form


def largest(form: Affine, domain: Sequence[Size]) -> Size | None:
    """The greatest value over ``domain`` (extents >= 1); None when a coefficient's sign is unknown."""
    total: Size = form.get(CONSTANT, 0)
    for axis, coefficient in form.items():
        if axis == CONSTANT or known_nonnegative(-1 * coefficient):
            continue
        if not known_nonnegative(coefficient):
            return None
        total = total + coefficient * (domain[axis] - 1)
    return total


def smallest(form: Affine, domain: Sequence[Size]) -> Size | None:
    """The least value over ``domain``; as ``largest``."""
    negative = largest(add_affine({}, form, -1), domain)
    return None if negative is None else negative * -1
