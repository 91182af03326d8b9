"""Zeros around an image, as exporters write them before a convolution: the convolution pads by itself."""

from __future__ import annotations

from xyntra_ep.fusion.frames import order_of
from xyntra_ep.fusion.onnx_ops._operands import within
from xyntra_ep.fusion.tensor import Map, Tensor, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr


def unpadded(t: Tensor) -> tuple[Tensor, list[Size]]:
    """(x, zeros before each spatial axis) where ``t`` is x [N, C, spatial...] with zeros around it, else ``t`` itself."""
    as_it_is: tuple[Tensor, list[Size]] = (t, [0] * (t.rank - 2))
    perm = order_of(t)
    node = t.node.base.node if perm is not None and isinstance(t.node, View) else t.node
    if not isinstance(node, Map) or len(node.inputs) != 1 or node.body.attr != "where":
        return as_it_is
    body = node.body
    if perm is not None:
        body = E.rewrite(body, lambda e: E.axis(perm.index(e.attr)) if e.kind == "axis" else None)
    inside, value, fill = body.args
    if fill is not E.const(0.0) or value.kind != "load":
        return as_it_is
    x = node.inputs[0]
    before: list[Size] = []
    conditions: list[Expr] = []
    for i, (position, extent, whole) in enumerate(zip(value.args, x.shape, t.shape, strict=True)):
        begin = _begin(position, i)
        if begin is None:
            return as_it_is
        if whole != extent:
            conditions.append(within(position, extent))
        before.append(begin)
    wanted: Expr = E.const(True)
    for condition in conditions:
        wanted = condition if wanted is E.const(True) else E.call("and", wanted, condition)
    if inside is not wanted or x.shape[:2] != t.shape[:2] or x.dtype is not t.dtype:
        return as_it_is
    return x, before[2:]


def _begin(position: Expr, axis: int) -> Size | None:
    """b where ``position`` is axis - b."""
    if position is E.axis(axis):
        return 0
    if position.kind != "call" or position.attr != "sub" or position.args[0] is not E.axis(axis):
        return None
    begin: Size | None = position.args[1].attr if position.args[1].kind in ("const", "size") else None
    return begin
