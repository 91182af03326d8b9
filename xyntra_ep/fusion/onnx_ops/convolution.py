"""Convolution, pooling and batch normalisation, channels last inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node, OpKind
from xyntra_ep.fusion.onnx_ops._operands import float_input, maybe, one, same_float_rounding
from xyntra_ep.fusion.onnx_ops.linear import round_to
from xyntra_ep.fusion.tensor import ConvNode, Permute, RowNode, Tensor, View, materialise
from xyntra_ep.fusion.trace import Context, OpSpec
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, ceildiv, product, smax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage


def channels_last(t: Tensor) -> Tensor:
    """``t`` [N, C, spatial...] with its channels stored innermost: as it is when it already comes that way, else a copy."""
    to_last = (0, *range(2, t.rank), 1)
    from_last = (0, t.rank - 1, *range(1, t.rank - 1))
    if isinstance(t.node, View) and isinstance(t.node.step, Permute) and t.node.step.perm == from_last:
        base = t.node.base
        if not isinstance(base.node, View):
            return t
    if t.shape[1] == 1 and not isinstance(t.node, View):
        return t.reshape((t.shape[0], *t.shape[2:], 1)).permute(from_last)
    return materialise(t.permute(to_last)).permute(from_last)


def window(
    node: Node, spatial: Sequence[Size], kernel: Sequence[int], ceil_mode: bool = False
) -> tuple[list[int], list[int], list[Size], list[Size]]:
    """(strides, dilations, begin pads, output extents) from the attributes; auto_pad included."""
    rank = len(spatial)
    strides = [int(s) for s in node.attr("strides") or [1] * rank]
    dilations = [int(d) for d in node.attr("dilations") or [1] * rank]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = node.attr("auto_pad", "NOTSET")
    begin: list[Size] = []
    out: list[Size] = []
    pads = [int(p) for p in node.attr("pads") or [0] * (2 * rank)]
    for i in range(rank):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            extent = ceildiv(spatial[i], strides[i])
            total = smax(0, (extent - 1) * strides[i] + reach[i] - spatial[i])
            begin.append(total // 2 if auto == "SAME_UPPER" else ceildiv(total, 2))
            out.append(extent)
            continue
        first, last = (0, 0) if auto == "VALID" else (pads[i], pads[rank + i])
        free = spatial[i] + first + last - reach[i]
        extent = (ceildiv(free, strides[i]) if ceil_mode else free // strides[i]) + 1
        if ceil_mode and isinstance(extent, int) and isinstance(spatial[i], int):
            # a window that would start in the trailing padding is left out
            while (extent - 1) * strides[i] >= int(spatial[i]) + first:  # type: ignore[arg-type]  # int here
                extent -= 1
        elif ceil_mode and isinstance(free, Dim):
            raise UnsupportedError("ceil_mode with a dynamic size")
        begin.append(first)
        out.append(extent)
    if any(isinstance(o, int) and o < 0 for o in out):
        raise UnsupportedError("the window is larger than its input")
    return strides, dilations, begin, out


def _conv(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x, w, bias = float_input(inputs, 0), one(inputs, 1), maybe(inputs, 2)
    kernel = [k for k in w.shape[2:] if isinstance(k, int)]
    if len(kernel) != x.rank - 2 or x.rank < 3:
        raise UnsupportedError("kernel of unknown size")
    strides, dilations, pads, out = window(node, x.shape[2:], kernel)
    group, m = int(node.attr("group", 1)), w.shape[0]
    conv = ConvNode(x=channels_last(x), w=w, strides=tuple(strides), dilations=tuple(dilations), pads=tuple(pads), group=group)
    stored = Tensor((x.shape[0], *out, m), DType.F32, conv)
    if bias is not None:
        stored = c.map([stored, bias], lambda v, b: E.call("add", v, b), DType.F32)
    return round_to(c, stored, x.dtype).permute((0, x.rank - 1, *range(1, x.rank - 1)))


def _batch_normalization(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x = float_input(inputs, 0)
    if node.attr("training_mode", 0) or len([o for o in node.outputs if o]) > 1:
        raise UnsupportedError("BatchNormalization in training mode")
    scale, bias, mean, variance = (one(inputs, i) for i in range(1, 5))
    epsilon = float(node.attr("epsilon", 1e-5))
    factor = c.map(
        [scale, variance],
        lambda s, v: E.call("div", s, E.call("sqrt", E.call("add", v, E.const(epsilon)))),
        DType.F32,
    )
    shift = c.map([bias, mean, factor], lambda b, m, f: E.call("sub", b, E.call("mul", m, f)), DType.F32)
    column = (scale.shape[0], *([1] * (x.rank - 2)))
    return c.map(
        [x, factor.reshape(column), shift.reshape(column)],
        lambda v, f, s: same_float_rounding(x.dtype, E.call("add", E.call("mul", v, f), s)),
        x.dtype,
    )


def pooled(
    x: Tensor, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], pads: Sequence[Size], out: Sequence[Size],
    kind: ReduceKind, outside: float, finish: Callable[[Expr, list[Expr]], Expr],
) -> Tensor:  # fmt: skip
    """A window reduction over [N, C, spatial...], stored channels last. ``finish(acc, out indices)`` gives the result."""
    rank = len(kernel)
    x = channels_last(x)
    outer = (x.shape[0], *out, x.shape[1])
    inside: Expr | None = None
    at: list[Expr] = []
    for i in range(rank):
        position = E.call(
            "add", E.call("mul", E.axis(1 + i), E.const(strides[i])), E.call("mul", E.axis(len(outer) + i), E.const(dilations[i]))
        )
        position = E.call("sub", position, E.size(pads[i]))
        at.append(position)
        reach = (kernel[i] - 1) * dilations[i]
        last = (out[i] - 1) * strides[i] + reach - pads[i]
        if pads[i] != 0 or not (isinstance(last, int) and isinstance(x.shape[2 + i], int) and last < int(x.shape[2 + i])):  # type: ignore[arg-type]  # int
            legal = E.call("and", E.call("le", E.const(0), position), E.call("lt", position, E.size(x.shape[2 + i])))
            inside = legal if inside is None else E.call("and", inside, legal)
    value = E.load(0, E.axis(0), E.axis(1 + rank), *at, dtype=x.dtype)
    body = value if inside is None else E.call("where", inside, value, E.const(outside))
    stage = Stage(kind=kind, body=body)
    result = same_float_rounding(x.dtype, finish(E.acc(0), [E.axis(1 + i) for i in range(rank)]))
    node = RowNode(outer=outer, inner=tuple(kernel), inputs=(x,), stages=(stage,), outputs=((result, True),))
    return Tensor(outer, x.dtype, node).permute((0, rank + 1, *range(1, rank + 1)))


def _max_pool(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x = float_input(inputs, 0)
    if len([o for o in node.outputs if o]) > 1:
        raise UnsupportedError("MaxPool with indices")
    kernel = [int(k) for k in node.need("kernel_shape")]
    strides, dilations, pads, out = window(node, x.shape[2:], kernel, bool(node.attr("ceil_mode", 0)))
    return pooled(x, kernel, strides, dilations, pads, out, ReduceKind.ANY_NAN_MAX, float("-inf"), lambda acc, _: acc)


def _average_pool(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
    x = float_input(inputs, 0)
    kernel = [int(k) for k in node.need("kernel_shape")]
    ceil_mode = bool(node.attr("ceil_mode", 0))
    strides, dilations, pads, out = window(node, x.shape[2:], kernel, ceil_mode)
    if ceil_mode and node.attr("count_include_pad", 0):
        raise UnsupportedError("AveragePool with ceil_mode and count_include_pad")

    def finish(acc: Expr, at: list[Expr]) -> Expr:
        if node.attr("count_include_pad", 0):
            return E.call("div", acc, E.const(float(product(kernel))))  # type: ignore[arg-type]  # ints
        total: Expr = E.const(1)
        for i, o in enumerate(at):
            # taps k in [0, K) with 0 <= o*stride + k*dilation - pad < extent
            start = E.call("sub", E.call("mul", o, E.const(strides[i])), E.size(pads[i]))
            d = E.const(dilations[i])
            zero, taps = E.const(0), E.const(kernel[i])
            below = E.call("max", E.call("div", E.call("add", E.call("sub", zero, start), E.const(dilations[i] - 1)), d), zero)
            end = E.call("sub", E.size(x.shape[2 + i]), start)
            above = E.call("min", E.call("div", E.call("add", end, E.const(dilations[i] - 1)), d), taps)
            total = E.call("mul", total, E.call("max", E.call("sub", above, below), zero))
        return E.call("div", acc, E.call("to_f", total))

    no_padding = (
        all(p == 0 for p in pads)
        and not ceil_mode
        and node.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID")
        and not any(node.attr("pads") or [])
    )
    if no_padding:
        return pooled(
            x,
            kernel,
            strides,
            dilations,
            pads,
            out,
            ReduceKind.SUM,
            0.0,
            lambda acc, _: E.call("div", acc, E.const(float(product(kernel)))),
        )  # type: ignore[arg-type]  # ints
    return pooled(x, kernel, strides, dilations, pads, out, ReduceKind.SUM, 0.0, finish)


def _global_pool(kind: ReduceKind) -> Callable[..., Tensor]:
    def lower(c: Context, node: Node, inputs: list[Tensor | None]) -> Tensor:
        x = float_input(inputs, 0)
        spatial = x.shape[2:]
        load = E.load(0, *(E.axis(i) for i in range(x.rank)), dtype=x.dtype)
        count = E.call("to_f", E.size(product(spatial)))
        body = E.call("div", E.acc(0), count) if kind is ReduceKind.SUM else E.acc(0)
        row = RowNode(
            outer=x.shape[:2], inner=spatial, inputs=(x,), stages=(Stage(kind=kind, body=load),),
            outputs=((same_float_rounding(x.dtype, body), True),),
        )  # fmt: skip
        return Tensor(x.shape[:2], x.dtype, row).reshape((*x.shape[:2], *(1 for _ in spatial)))

    return lower


OPS = [
    OpSpec(name="Conv", lower=_conv, kind=OpKind.HEAVY),
    OpSpec(name="BatchNormalization", lower=_batch_normalization, versions=(9, 10**6)),
    OpSpec(name="MaxPool", lower=_max_pool),
    OpSpec(name="AveragePool", lower=_average_pool),
    OpSpec(name="GlobalAveragePool", lower=_global_pool(ReduceKind.SUM)),
    OpSpec(name="GlobalMaxPool", lower=_global_pool(ReduceKind.MAX)),
]
