"""Reductions, softmax and the normalisations: stages over rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import float_input, maybe, normal_axis, one, same_float_rounding
from xyntra_ep.fusion.tensor import RowNode, Tensor, from_content
from xyntra_ep.fusion.trace import Context, Lowered, OpSpec
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage


def rows(t: Tensor, axes: Sequence[int]) -> tuple[tuple[Size, ...], tuple[Size, ...], list[int], Expr]:
    """(outer extents, inner extents, permutation kept + reduced, load of ``t`` as input 0 at the row axes)."""
    kept = [i for i in range(t.rank) if i not in axes]
    order = [*kept, *axes]
    index = [E.axis(order.index(i)) for i in range(t.rank)]
    outer = tuple(t.shape[i] for i in kept)
    return outer, tuple(t.shape[i] for i in axes), order, E.load(0, *index, dtype=t.dtype)


def count(sizes: Sequence[Size]) -> Expr:
    return E.call("to_f", E.size(product(sizes)))


def _finish(t: Tensor, node: RowNode, axes: Sequence[int], keep: bool, dtype: DType) -> Tensor:
    outer = tuple(t.shape[i] for i in range(t.rank) if i not in axes)
    result = Tensor(outer, dtype, node)
    return result.reshape([1 if i in axes else s for i, s in enumerate(t.shape)]) if keep else result


def _axes(c: Context, node: Node, inputs: list[Tensor | None], rank: int, from_version: int) -> list[int] | None:
    """Reduced axes, from the input or the attribute; None: reduce nothing (noop_with_empty_axes)."""
    operand = maybe(inputs, 1)
    values = operand.const_ints("axes") if operand is not None else list(node.attr("axes") or [])
    if not values:
        return None if node.attr("noop_with_empty_axes", 0) else list(range(rank))
    return sorted({normal_axis(int(a), rank) for a in values})


Body = Callable[[Expr], Expr]


def _reduce(
    kind: ReduceKind, before: Body = lambda v: v, after: Callable[[Expr, Expr], Expr] = lambda v, n: v
) -> Callable[..., Tensor]:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        t = one(inputs, 0)
        axes = _axes(c, node, inputs, t.rank, 18)
        keep = bool(node.attr("keepdims", 1))
        if t.content is not None and kind in (ReduceKind.PROD, ReduceKind.SUM) and axes == list(range(t.rank)) and t.rank <= 1:
            flat = t.content.reshape(-1)
            folded: Size = product(flat) if kind is ReduceKind.PROD else sum(flat, start=0)
            return from_content([folded] if keep and t.rank else folded, t.dtype)
        is_float = t.dtype.is_float
        if not is_float and (
            before(E.acc(0)) is not E.acc(0) or (t.dtype is DType.BOOL and kind not in (ReduceKind.MAX, ReduceKind.MIN))
        ):
            raise UnsupportedError(f"dtype {t.dtype}")
        if axes is None:
            axes = []
        outer, inner, _, x = rows(t, axes)
        stage = Stage(kind=kind, body=before(x), dtype=t.dtype.compute)
        acc = {DType.F32: E.acc, DType.I64: E.acc_int, DType.BOOL: E.acc_bool}[t.dtype.compute](0)
        body = after(acc, count(inner)) if is_float else acc
        node_ = RowNode(
            outer=outer, inner=inner, inputs=(t,), stages=(stage,), outputs=((same_float_rounding(t.dtype, body), True),)
        )
        return _finish(t, node_, axes, keep, t.dtype)

    return lower


def _integer_mean_declines(lower: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def checked(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        float_input(inputs, 0)
        return lower(c, node, inputs)

    return checked


def _log_sum_exp(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    t = float_input(inputs, 0)
    axes = _axes(c, node, inputs, t.rank, 18)
    axes = [] if axes is None else axes
    outer, inner, _, x = rows(t, axes)
    top = E.acc(0)
    finite = E.call("where", E.call("isinf", top), E.const(0.0), top)  # a row of -inf (or one +inf) must not become NaN
    stages = (
        Stage(kind=ReduceKind.MAX, body=x),
        Stage(kind=ReduceKind.SUM, body=E.call("exp", E.call("sub", x, finite))),
    )
    body = E.call("add", E.call("log", E.acc(1)), finite)
    result = RowNode(outer=outer, inner=inner, inputs=(t,), stages=stages, outputs=((same_float_rounding(t.dtype, body), True),))
    return _finish(t, result, axes, bool(node.attr("keepdims", 1)), t.dtype)


def _arg(largest: bool) -> Callable[..., Tensor]:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        t = one(inputs, 0)
        axes = [normal_axis(int(node.attr("axis", 0)), t.rank)]
        last = bool(node.attr("select_last_index", 0))
        kind = {
            (True, False): ReduceKind.ARGMAX, (True, True): ReduceKind.ARGMAX_LAST,
            (False, False): ReduceKind.ARGMIN, (False, True): ReduceKind.ARGMIN_LAST,
        }[largest, last]  # fmt: skip
        outer, inner, _, x = rows(t, axes)
        stage = Stage(kind=kind, body=x, dtype=DType.I64)
        result = RowNode(outer=outer, inner=inner, inputs=(t,), stages=(stage,), outputs=((E.acc_int(0), True),))
        return _finish(t, result, axes, bool(node.attr("keepdims", 1)), DType.I64)

    return lower


def full_rows(
    t: Tensor, axes: Sequence[int], inputs: Sequence[Tensor], stages: Sequence[Stage], body: Expr, softmax: bool = False
) -> Tensor:
    """A row op with one result per element, back in the axis order of ``t``."""
    outer, inner, order, _ = rows(t, axes)
    node = RowNode(
        outer=outer, inner=inner, inputs=tuple(inputs), stages=tuple(stages), outputs=((body, False),), softmax=softmax
    )
    inverse = [order.index(i) for i in range(t.rank)]
    return Tensor((*outer, *inner), t.dtype, node).permute(inverse)


def _softmax(log: bool) -> Callable[..., Tensor]:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        t = float_input(inputs, 0)
        axis = normal_axis(int(node.attr("axis", -1 if node.version >= 13 else 1)), t.rank)
        axes = [axis] if node.version >= 13 else list(range(axis, t.rank))
        _, _, _, x = rows(t, axes)
        shifted = E.call("sub", x, E.acc(0))
        weight = E.call("exp", shifted)
        stages = [Stage(kind=ReduceKind.MAX, body=x), Stage(kind=ReduceKind.SUM, body=weight)]
        body = E.call("sub", shifted, E.call("log", E.acc(1))) if log else E.call("div", weight, E.acc(1))
        return full_rows(t, axes, [t], stages, same_float_rounding(t.dtype, body), softmax=not log and axes == [t.rank - 1])

    return lower


def mean_and_deviation(x: Expr, n: Expr, epsilon: float) -> tuple[list[Stage], Expr, Expr]:
    """Stages 0 and 1 of a layer normalisation over ``x``; (stages, mean, 1 / standard deviation)."""
    mean = E.call("div", E.acc(0), n)
    centred = E.call("sub", x, mean)
    variance = E.call("div", E.acc(1), n)
    scale = E.call("div", E.const(1.0), E.call("sqrt", E.call("add", variance, E.const(epsilon))))
    stages = [Stage(kind=ReduceKind.SUM, body=x), Stage(kind=ReduceKind.SUM, body=E.call("mul", centred, centred))]
    return stages, mean, scale


def _layer_normalization(c: Context, node: Node, inputs: list[Tensor | None]) -> Lowered:
    t, gamma, beta = float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    first = normal_axis(int(node.attr("axis", -1)), t.rank)
    axes = list(range(first, t.rank))
    outer, inner, _, x = rows(t, axes)
    stages, mean, scale = mean_and_deviation(x, count(inner), float(node.attr("epsilon", 1e-5)))
    operands = [t]

    def parameter(p: Tensor) -> Expr:
        grown = p.expand(inner)
        operands.append(grown)
        return E.load(len(operands) - 1, *(E.axis(first + i) for i in range(len(inner))), dtype=p.dtype)

    body = E.call("mul", E.call("mul", E.call("sub", x, mean), scale), parameter(gamma))
    if beta is not None:
        body = E.call("add", body, parameter(beta))
    outputs: list[tuple[Expr, bool]] = [(same_float_rounding(t.dtype, body), False)]
    if len([o for o in node.outputs if o]) > 1:
        outputs += [(mean, True), (scale, True)]
    row = RowNode(outer=outer, inner=inner, inputs=tuple(operands), stages=tuple(stages), outputs=tuple(outputs))
    keep = (*outer, *(1 for _ in inner))
    statistics = [Tensor(outer, DType.F32, row, output=i).reshape(keep) for i in range(1, len(outputs))]
    return [Tensor(t.shape, t.dtype, row), *statistics]


def _square(v: Expr) -> Expr:
    return E.call("mul", v, v)


def _abs(v: Expr) -> Expr:
    return E.call("abs", v)


OPS = [
    OpSpec(name="ReduceSum", lower=_reduce(ReduceKind.SUM)),
    OpSpec(name="ReduceProd", lower=_reduce(ReduceKind.PROD)),
    OpSpec(name="ReduceMax", lower=_reduce(ReduceKind.MAX)),
    OpSpec(name="ReduceMin", lower=_reduce(ReduceKind.MIN)),
    OpSpec(name="ReduceMean", lower=_integer_mean_declines(_reduce(ReduceKind.SUM, after=lambda v, n: E.call("div", v, n)))),
    OpSpec(name="ReduceSumSquare", lower=_integer_mean_declines(_reduce(ReduceKind.SUM, _square))),
    OpSpec(name="ReduceL1", lower=_integer_mean_declines(_reduce(ReduceKind.SUM, _abs))),
    OpSpec(name="ReduceL2", lower=_integer_mean_declines(_reduce(ReduceKind.SUM, _square, lambda v, n: E.call("sqrt", v)))),
    OpSpec(name="ReduceLogSum", lower=_integer_mean_declines(_reduce(ReduceKind.SUM, after=lambda v, n: E.call("log", v)))),
    OpSpec(name="ReduceLogSumExp", lower=_log_sum_exp),
    OpSpec(name="ArgMax", lower=_arg(largest=True)),
    OpSpec(name="ArgMin", lower=_arg(largest=False)),
    OpSpec(name="Softmax", lower=_softmax(log=False)),
    OpSpec(name="LogSoftmax", lower=_softmax(log=True)),
    OpSpec(name="LayerNormalization", lower=_layer_normalization),
]
