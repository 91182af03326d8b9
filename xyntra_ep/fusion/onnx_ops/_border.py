"""A tensor with something else around it."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.fusion.onnx_ops._operands import within
from xyntra_ep.fusion.tensor import Map, Tensor, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.expr import Expr

_SHORT = 64  # elements: rows of fewer, as of an image's colours, are joined with those beside them


def surrounded(t: Tensor, before: Sequence[Size], shape: Sequence[Size], outside: Expr, others: Sequence[Tensor] = ()) -> Tensor:
    """``t`` [...] inside of ``shape``, from element ``before`` of each axis on, and ``outside`` around it, which loads from
    ``others`` as from the operands 1, 2 ... What reaches beyond ``shape`` is left out."""
    axes = [i for i, (b, n, whole) in enumerate(zip(before, t.shape, shape, strict=True)) if b != 0 or n != whole]
    if not axes:
        return t
    last = axes[-1]
    inner = product(t.shape[last + 1 :])
    if isinstance(inner, int) and 1 < inner < _SHORT and not isinstance(t.node, View):
        joined, begins, extents = (
            (*sizes[:last], sizes[last] * inner) for sizes in (tuple(t.shape), tuple(before), tuple(shape))
        )
        return surrounded(t.reshape(joined), begins, extents, outside, others).reshape(tuple(shape))
    inside: Expr | None = None
    at: list[Expr] = []
    for i, (b, n) in enumerate(zip(before, t.shape, strict=True)):
        position = E.axis(i)
        if i in axes:
            position = E.call("sub", position, E.size(b))
            here = within(position, n)
            inside = here if inside is None else E.call("and", inside, here)
        at.append(position)
    assert inside is not None
    body = E.call("where", inside, E.load(0, *at, dtype=t.dtype), outside)
    return Tensor(tuple(shape), t.dtype, Map(inputs=(t, *others), body=body))
