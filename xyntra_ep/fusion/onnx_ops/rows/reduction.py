"""Reductions over any axes: one stage over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import numpy as np

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.frames import order_of
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    Lower,
    as_float,
    f,
    float_input,
    maybe,
    normal_axis,
    one,
    wrapped,
)
from xyntra_ep.fusion.op_spec import ALL, FLAG, FLOATS, INDICES, NUMBERS, OpSpec, takes
from xyntra_ep.fusion.tensor import RowNode, Tensor, from_content
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, either, eq, lt, product, smax, smin
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import NoSoftmax, ReduceKind, Stage

Body = Callable[[Expr], Expr]
_ACC = {DType.F32: E.acc, DType.I64: E.acc_int, DType.BOOL: E.acc_bool}
_FOLDS: dict[ReduceKind, Callable[[Sequence[Size]], Size]] = {
    ReduceKind.SUM: lambda sizes: sum(sizes, start=0),
    ReduceKind.PROD: product,
    ReduceKind.MAX: lambda sizes: reduce(smax, sizes),
    ReduceKind.MIN: lambda sizes: reduce(smin, sizes),
}


def rows(t: Tensor, axes: Sequence[int]) -> tuple[tuple[Size, ...], tuple[Size, ...], list[int], Expr]:
    """(outer extents, inner extents, permutation kept + reduced, load of ``t`` as input 0 at the row axes)."""
    kept = [i for i in range(t.rank) if i not in axes]
    order = [*kept, *axes]
    index = [E.axis(order.index(i)) for i in range(t.rank)]
    outer = tuple(t.shape[i] for i in kept)
    return outer, tuple(t.shape[i] for i in axes), order, E.load(0, *index, dtype=t.dtype)


def count(sizes: Sequence[Size]) -> Expr:
    """The number of elements, as a float; 1 for none, so that a mean of nothing is 0, as ORT's is."""
    return E.call("to_f", E.size(smax(1, product(sizes))))


def square(v: Expr) -> Expr:
    return E.call("mul", v, v)


def absolute(v: Expr) -> Expr:
    return E.call("abs", v)


def per_row(t: Tensor, axes: Sequence[int], stages: Sequence[Stage], body: Expr, keep: bool, dtype: DType) -> Tensor:
    """One result for each row of ``t``; ``keep``: reduced axes stay with extent 1."""
    outer, inner, _, _ = rows(t, axes)
    node = RowNode(
        outer=outer,
        inner=inner,
        inputs=(t,),
        stages=tuple(stages),
        outputs=((wrapped(dtype, body), True),),
    )
    result = Tensor(outer, dtype, node)
    return result.reshape([1 if i in axes else s for i, s in enumerate(t.shape)]) if keep else result


def full_rows(
    t: Tensor,
    axes: Sequence[int],
    inputs: Sequence[Tensor],
    stages: Sequence[Stage],
    body: Expr,
    softmax: NoSoftmax | None = None,
) -> Tensor:
    """A row op with one result per element, stored as ``t`` lies in memory."""
    outer, inner, order, _ = rows(t, axes)
    perm = order_of(t) or tuple(range(t.rank))
    stored = [perm.index(i) for i in range(t.rank)]  # axes of t
    node = RowNode(
        outer=outer,
        inner=inner,
        inputs=tuple(inputs),
        stages=tuple(stages),
        outputs=((wrapped(t.dtype, body), False),),
        order=tuple(order.index(i) for i in stored),
        softmax=softmax,
    )
    return Tensor(tuple(t.shape[i] for i in stored), t.dtype, node).permute(perm)


def _axes(node: Node, inputs: Inputs, rank: int) -> list[int]:
    """Reduced axes, from the input or the attribute; all where none are named, unless that is declared to mean none."""
    operand = maybe(inputs, 1)
    values = operand.const_ints("axes") if operand is not None else list(node.attr("axes") or [])
    if not values:
        return [] if node.attr("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({normal_axis(int(a), rank) for a in values})


def _reduce(kind: ReduceKind, before: Body | None = None, after: Callable[[Expr, Expr], Expr] | None = None) -> Lower:
    """after(sum of before(x), number of elements) and the like."""

    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        t = one(inputs, 0)
        axes = _axes(node, inputs, t.rank)
        keep = bool(node.attr("keepdims", 1))
        if not axes and t.rank and (before is not None or after is not None):
            raise UnsupportedError("noop_with_empty_axes")
        if t.content is not None and before is None and after is None and t.rank == 1 and axes == [0] and t.content.size:
            folded = _FOLDS[kind](list(t.content))
            return from_content([folded] if keep else folded, t.dtype)
        if after is not None:
            as_float(t)
        if t.dtype is DType.BOOL and (kind not in (ReduceKind.MAX, ReduceKind.MIN) or before is not None):
            raise UnsupportedError("dtype bool")
        _, inner, _, x = rows(t, axes)
        stage = Stage(kind=kind, body=x if before is None else before(x), dtype=t.dtype.compute)
        acc = _within_type(_ACC[t.dtype.compute](0), kind, t.dtype)
        return per_row(t, axes, [stage], acc if after is None else after(acc, count(inner)), keep, t.dtype)

    return lower


def _within_type(acc: Expr, kind: ReduceKind, dtype: DType) -> Expr:
    """The extreme of nothing is that of the integers' own type."""
    if dtype.compute is not DType.I64 or kind not in (ReduceKind.MAX, ReduceKind.MIN):
        return acc
    limits = np.iinfo(dtype.numpy)
    return (
        E.call("max", acc, E.const(int(limits.min))) if kind is ReduceKind.MAX else E.call("min", acc, E.const(int(limits.max)))
    )


def _log_sum_exp(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = float_input(inputs, 0)
    axes = _axes(node, inputs, t.rank)
    if not axes and t.rank:
        raise UnsupportedError("noop_with_empty_axes")
    _, _, _, x = rows(t, axes)
    top = E.acc(0)
    finite = E.call("where", E.call("isinf", top), f(0), top)  # a row of -inf (or one +inf) must not become NaN
    stages = [
        Stage(kind=ReduceKind.MAX, body=x),
        Stage(kind=ReduceKind.SUM, body=E.call("exp", E.call("sub", x, finite))),
    ]
    body = E.call("add", E.call("log", E.acc(1)), finite)
    return per_row(t, axes, stages, body, bool(node.attr("keepdims", 1)), t.dtype)


def _arg(first: ReduceKind, last: ReduceKind) -> Lower:
    def lower(c: Context, node: Node, inputs: Inputs) -> Tensor:
        t = one(inputs, 0)
        axes = [normal_axis(int(node.attr("axis", 0)), t.rank)]
        others = product(extent for i, extent in enumerate(t.shape) if i != axes[0])
        c.require(either(lt(0, t.shape[axes[0]]), eq(others, 0)), "the axis has no elements")
        kind = last if node.attr("select_last_index", 0) else first
        _, _, _, x = rows(t, axes)
        stage = Stage(kind=kind, body=x, dtype=DType.I64)
        return per_row(t, axes, [stage], E.acc_int(0), bool(node.attr("keepdims", 1)), DType.I64)

    return lower


def _row(name: str, lower: Lower, newest: int, types: tuple[DType, ...]) -> OpSpec:
    taken = takes("axes", keepdims=FLAG, noop_with_empty_axes=FLAG)
    return OpSpec(name=name, lower=lower, versions=(1, newest), inputs=2, attributes=taken, types=(types, INDICES))


_ARG = takes("axis", keepdims=FLAG, select_last_index=FLAG)

OPS = [
    _row("ReduceSum", _reduce(ReduceKind.SUM), 13, NUMBERS),
    _row("ReduceProd", _reduce(ReduceKind.PROD), 18, NUMBERS),
    _row("ReduceMax", _reduce(ReduceKind.MAX), 20, ALL),
    _row("ReduceMin", _reduce(ReduceKind.MIN), 20, ALL),
    _row("ReduceMean", _reduce(ReduceKind.SUM, after=lambda v, n: E.call("div", v, n)), 18, FLOATS),
    _row("ReduceSumSquare", _reduce(ReduceKind.SUM, before=square), 18, NUMBERS),
    _row("ReduceL1", _reduce(ReduceKind.SUM, before=absolute), 18, NUMBERS),
    _row("ReduceL2", _reduce(ReduceKind.SUM, before=square, after=lambda v, n: E.call("sqrt", v)), 18, FLOATS),
    _row("ReduceLogSum", _reduce(ReduceKind.SUM, after=lambda v, n: E.call("log", v)), 28, FLOATS),
    _row("ReduceLogSumExp", _log_sum_exp, 28, FLOATS),
    OpSpec(
        name="ArgMax",
        lower=_arg(ReduceKind.ARGMAX, ReduceKind.ARGMAX_LAST),
        versions=(1, 13),
        attributes=_ARG,
        types=(NUMBERS,),
    ),
    OpSpec(
        name="ArgMin",
        lower=_arg(ReduceKind.ARGMIN, ReduceKind.ARGMIN_LAST),
        versions=(1, 13),
        attributes=_ARG,
        types=(NUMBERS,),
    ),
]
