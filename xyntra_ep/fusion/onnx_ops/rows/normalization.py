"""Normalisations: statistics over rows, then one pass over the elements. All arithmetic is f32, whatever is stored."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import (
    Inputs,
    f,
    float_input,
    maybe,
    normal_axis,
    one,
    wanted_outputs,
    within,
    wrapped,
)
from xyntra_ep.fusion.onnx_ops.rows.reduction import absolute, count, full_rows, rows, square
from xyntra_ep.fusion.op_spec import FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import RowNode, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import lt, product
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage


def _inverse_root(v: Expr, epsilon: float) -> Expr:
    return E.call("div", f(1), E.call("sqrt", E.call("add", v, f(epsilon))))


def mean_and_deviation(x: Expr, n: Expr, epsilon: float) -> tuple[list[Stage], Expr, Expr]:
    """Stages 0 and 1 of a layer normalisation over ``x``; (stages, mean, 1 / standard deviation)."""
    mean = E.call("div", E.acc(0), n)
    centred = E.call("sub", x, mean)
    stages = [Stage(kind=ReduceKind.SUM, body=x), Stage(kind=ReduceKind.SUM, body=square(centred))]
    return stages, mean, _inverse_root(E.call("div", E.acc(1), n), epsilon)


def layer_norm(
    c: Context,
    t: Tensor,
    gamma: Tensor,
    beta: Tensor | None,
    first: int,
    epsilon: float,
    *,
    centred: bool = True,
    statistics: bool = False,
) -> list[Tensor]:
    """Over the axes from ``first`` on; without ``centred`` the root mean square takes the place of the deviation.

    With ``statistics`` the mean and 1 / deviation of each row (or the latter alone) follow as f32.
    """
    axes = list(range(first, t.rank))
    outer, inner, _, x = rows(t, axes)
    operands = [t]

    def parameter(p: Tensor) -> Expr:
        rank = max(p.rank, len(inner))
        if rank > t.rank:
            raise UnsupportedError("a scale or bias of more axes than its input")
        operands.append(c.checks.fit(p, t.shape[t.rank - rank :]))
        return E.load(len(operands) - 1, *(E.axis(t.rank - rank + i) for i in range(rank)), dtype=p.dtype)

    if centred:
        stages, mean, scale = mean_and_deviation(x, count(inner), epsilon)
        per_row, normal = [mean, scale], E.call("mul", E.call("sub", x, mean), scale)
    else:
        stages = [Stage(kind=ReduceKind.SUM, body=square(x))]
        scale = _inverse_root(E.call("div", E.acc(0), count(inner)), epsilon)
        per_row, normal = [scale], E.call("mul", x, scale)
    body = E.call("mul", normal, parameter(gamma))
    if beta is not None:
        body = E.call("add", body, parameter(beta))
    extra = [(e, True) for e in per_row] if statistics else []
    row = RowNode(
        outer=outer,
        inner=inner,
        inputs=tuple(operands),
        stages=tuple(stages),
        outputs=((wrapped(t.dtype, body), False), *extra),
    )
    kept = (*outer, *(1 for _ in inner))
    found = [Tensor(outer, DType.F32, row, output=i + 1).reshape(kept) for i in range(len(extra))]
    return [Tensor(t.shape, t.dtype, row), *found]


def _first_axis(c: Context, node: Node, t: Tensor) -> int:
    """The first of the normalised axes, which must have elements."""
    first = normal_axis(int(node.attr("axis", -1)), t.rank)
    c.require(lt(0, product(t.shape[first:])), "Size of X.shape[axis:] must be at least 1")
    return first


def _layer_normalization(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    t = float_input(inputs, 0)
    first = _first_axis(c, node, t)
    epsilon, statistics = float(node.attr("epsilon", 1e-5)), wanted_outputs(node) > 1
    return layer_norm(c, t, one(inputs, 1), maybe(inputs, 2), first, epsilon, statistics=statistics)


def _rms_normalization(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    t = float_input(inputs, 0)
    first = _first_axis(c, node, t)
    epsilon, statistics = float(node.attr("epsilon", 1e-5)), wanted_outputs(node) > 1
    return layer_norm(c, t, one(inputs, 1), None, first, epsilon, centred=False, statistics=statistics)


def _per_channel(c: Context, x: Tensor, p: Tensor) -> Tensor:
    """``p``, which must have an element for each channel of ``x`` [N, C, ...]."""
    if p.rank != 1 or x.rank < 2:
        raise UnsupportedError("a parameter that is no vector over channels")
    c.require_equal(p.shape[0], x.shape[1], "a parameter has another number of elements than there are channels")
    return p


def _batch_normalization(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = float_input(inputs, 0)
    if wanted_outputs(node) > 1:
        raise UnsupportedError("BatchNormalization in training mode")
    scale, bias, mean, variance = (_per_channel(c, x, one(inputs, i)) for i in range(1, 5))
    epsilon = float(node.attr("epsilon", 1e-5))
    factor = c.map([scale, variance], lambda s, v: E.call("div", s, E.call("sqrt", E.call("add", v, f(epsilon)))), DType.F32)
    shift = c.map([bias, mean, factor], lambda b, m, k: E.call("sub", b, E.call("mul", m, k)), DType.F32)
    column = (scale.shape[0], *([1] * (x.rank - 2)))
    return c.map(
        [x, factor.reshape(column), shift.reshape(column)],
        lambda v, k, s: wrapped(x.dtype, E.call("add", E.call("mul", v, k), s)),
        x.dtype,
    )


def _grouped(x: Tensor, scale: Tensor, bias: Tensor, epsilon: float, parameter_axes: Sequence[int]) -> Tensor:
    """Each [n, g] of ``x`` [N, G, ...] is a row; scale and bias are read at ``parameter_axes`` of the row's axes."""
    axes = list(range(2, x.rank))
    _, inner, _, v = rows(x, axes)
    stages, mean, factor = mean_and_deviation(v, count(inner), epsilon)
    at = [E.axis(i) for i in parameter_axes]
    normal = E.call("mul", E.call("sub", v, mean), factor)
    scaled = E.call("mul", normal, E.load(1, *at, dtype=scale.dtype))
    return full_rows(x, axes, [x, scale, bias], stages, E.call("add", scaled, E.load(2, *at, dtype=bias.dtype)))


def _instance_normalization(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x = float_input(inputs, 0)
    scale, bias = (_per_channel(c, x, one(inputs, i)) for i in (1, 2))
    return _grouped(x, scale, bias, float(node.attr("epsilon", 1e-5)), [1])


def _group_normalization(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, scale, bias = float_input(inputs, 0), one(inputs, 1), one(inputs, 2)
    groups, epsilon = int(node.need("num_groups")), float(node.attr("epsilon", 1e-5))
    channels = x.shape[1]
    if not isinstance(channels, int) or channels % groups:
        raise UnsupportedError("GroupNormalization of a channel count that the groups do not divide")
    c.require(lt(0, x.size), "there is nothing to normalise")
    split = x.reshape((x.shape[0], groups, channels // groups, *x.shape[2:]))
    if node.version < 21:  # one factor per group
        scale, bias = (c.checks.fit(p, (groups,)) for p in (scale, bias))
        return _grouped(split, scale, bias, epsilon, [1]).reshape(x.shape)
    scale, bias = (c.checks.fit(p, (channels,)) for p in (scale, bias))
    wide = (groups, channels // groups)
    return _grouped(split, scale.reshape(wide), bias.reshape(wide), epsilon, [1, 2]).reshape(x.shape)


def _lp_normalization(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t, p = float_input(inputs, 0), int(node.attr("p", 2))
    axes = [normal_axis(int(node.attr("axis", -1)), t.rank)]
    _, _, _, x = rows(t, axes)
    stage = Stage(kind=ReduceKind.SUM, body=absolute(x) if p == 1 else square(x))
    norm = E.acc(0) if p == 1 else E.call("sqrt", E.acc(0))
    body = E.call("where", E.call("eq", norm, f(0)), f(0), E.call("div", x, norm))  # as ORT: a row of zeros stays
    return full_rows(t, axes, [t], [stage], body)


def _mean_variance_normalization(c: Context, node: Node, inputs: Inputs) -> Tensor:
    t = float_input(inputs, 0)
    axes = sorted({normal_axis(int(a), t.rank) for a in node.attr("axes") or (0, 2, 3)})
    _, inner, _, x = rows(t, axes)
    stages, mean, _ = mean_and_deviation(x, count(inner), 0.0)
    # ONNX's function body adds 1e-9 to the deviation; ORT does not, so that a row without variance is NaN
    deviation = E.call("sqrt", E.call("div", E.acc(1), count(inner)))
    body = E.call("div", E.call("sub", x, mean), deviation)
    return full_rows(t, axes, [t], stages, body)


def _lrn(c: Context, node: Node, inputs: Inputs) -> Tensor:
    """The window slides over the channels."""
    t, size = float_input(inputs, 0), int(node.need("size"))
    here = [E.axis(i) for i in range(t.rank)]
    channel = E.call("sub", E.call("add", E.axis(1), E.axis(t.rank)), E.const((size - 1) // 2))
    neighbour = E.load(0, here[0], channel, *here[2:], dtype=t.dtype)
    stage = Stage(kind=ReduceKind.SUM, body=E.call("where", within(channel, t.shape[1]), square(neighbour), f(0)))
    mean = E.call("mul", E.acc(0), f(float(node.attr("alpha", 1e-4)) / size))
    base = E.call("add", mean, f(node.attr("bias", 1.0)))
    body = E.call("div", E.load(0, *here, dtype=t.dtype), E.call("pow", base, f(node.attr("beta", 0.75))))
    rounded = wrapped(t.dtype, body)
    row = RowNode(outer=t.shape, inner=(size,), inputs=(t,), stages=(stage,), outputs=((rounded, True),))
    return Tensor(t.shape, t.dtype, row)


_LAYER = takes("axis", "epsilon", stash_type=(1,))

OPS = [
    OpSpec(name="LayerNormalization", lower=_layer_normalization, versions=(1, 17), inputs=3, attributes=_LAYER, types=(FLOATS,)),
    OpSpec(name="RMSNormalization", lower=_rms_normalization, versions=(1, 23), inputs=2, attributes=_LAYER, types=(FLOATS,)),
    OpSpec(  # ORT's, under ONNX's domain
        name="SimplifiedLayerNormalization", lower=_rms_normalization, inputs=2, attributes=_LAYER, types=(FLOATS,)
    ),
    OpSpec(
        name="BatchNormalization",
        lower=_batch_normalization,
        versions=(9, 15),
        inputs=5,
        attributes=takes("epsilon", "momentum", training_mode=(0,)),
        types=(FLOATS,),
    ),
    OpSpec(
        name="InstanceNormalization",
        lower=_instance_normalization,
        versions=(6, 22),
        inputs=3,
        attributes=takes("epsilon"),
        types=(FLOATS,),
    ),
    OpSpec(
        name="GroupNormalization",
        lower=_group_normalization,
        versions=(1, 21),
        inputs=3,
        attributes=takes("epsilon", "num_groups", stash_type=(1,)),
        types=(FLOATS,),
    ),
    OpSpec(
        name="LpNormalization", lower=_lp_normalization, versions=(1, 22), attributes=takes("axis", p=(1, 2)), types=(FLOATS,)
    ),
    OpSpec(
        name="MeanVarianceNormalization",
        lower=_mean_variance_normalization,
        versions=(9, 13),
        attributes=takes("axes"),
        types=(FLOATS,),
    ),
    OpSpec(name="LRN", lower=_lrn, versions=(1, 13), attributes=takes("alpha", "beta", "bias", "size"), types=(FLOATS,)),
]
