"""Softmax and its kin."""

from __future__ import annotations

import math

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, Lower, f, float_input, normal_axis
from xyntra_ep.fusion.onnx_ops.rows.reduction import full_rows, rows
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import NoSoftmax, ReduceKind, Stage


def softmax(t: Tensor, axes: list[int], log: bool = False, unseen_zero: bool = False) -> Tensor:
    """Over ``axes`` taken together. ``unseen_zero``: a row of -inf alone gives zeros, not NaN."""
    _, _, _, x = rows(t, axes)
    shifted = E.call("sub", x, E.acc(0))
    weight = E.call("exp", shifted)
    stages = [Stage(kind=ReduceKind.MAX, body=x), Stage(kind=ReduceKind.SUM, body=weight)]
    body = E.call("sub", shifted, E.call("log", E.acc(1))) if log else E.call("div", weight, E.acc(1))
    if unseen_zero:
        body = E.call("where", E.call("eq", E.acc(0), f(-math.inf)), f(0), body)
    known = NoSoftmax.UNSEEN_ZERO if unseen_zero else NoSoftmax.NAN
    return full_rows(t, axes, [t], stages, body, softmax=known if not log and axes == [t.rank - 1] else None)


def _axes(node: Node, rank: int) -> list[int]:
    """One axis; before opset 13 all from there on."""
    axis = normal_axis(int(node.attr("axis", -1 if node.version >= 13 else 1)), rank)
    return [axis] if node.version >= 13 else list(range(axis, rank))


def _softmax(log: bool) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        t = float_input(inputs, 0)
        return softmax(t, _axes(node, t.rank), log)

    return lower


def _hardmax(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = float_input(inputs, 0)
    axes = _axes(node, t.rank)
    outer, inner, _, x = rows(t, axes)
    position: Expr = E.const(0)
    for i in range(len(inner)):
        step = E.size(product(inner[i + 1 :]))
        position = E.call("add", position, E.call("mul", E.axis(len(outer) + i), step))
    is_top = E.call("and", E.call("eq", position, E.acc_int(0)), E.call("not", E.call("isnan", x)))
    hot = E.call("where", is_top, f(1), f(0))
    return full_rows(t, axes, [t], [Stage(kind=ReduceKind.ARGMAX, body=x, dtype=DType.I64)], hot)


OPS = [
    OpSpec(name="Softmax", lower=_softmax(log=False), versions=(1, 13), attributes=takes("axis"), types=(FLOATS,)),
    OpSpec(name="LogSoftmax", lower=_softmax(log=True), versions=(1, 13), attributes=takes("axis"), types=(FLOATS,)),
    OpSpec(name="Hardmax", lower=_hardmax, versions=(1, 13), attributes=takes("axis"), types=(FLOATS,)),
]
