"""GridSample over images: the position of every result element is data."""

from __future__ import annotations

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, clamp_index, f, float_input, total, within, wrapped
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, lt
from xyntra_ep.tracea.core_ir.expr import Expr


def _position(normal: Expr, extent: Size, align: bool) -> Expr:
    """From [-1, 1] to elements."""
    n = E.call("to_f", E.size(extent))
    if align:
        half = E.call("div", E.call("add", normal, f(1)), f(2))
        return E.call("mul", half, E.call("sub", n, f(1)))
    return E.call("div", E.call("sub", E.call("mul", E.call("add", normal, f(1)), n), f(1)), f(2))


def _reflected(x: Expr, extent: Size, align: bool) -> Expr:
    """``x`` mirrored at the borders until it is between them."""
    low = f(0 if align else -0.5)
    high = E.call("sub", E.call("to_f", E.size(extent)), f(1 if align else 0.5))
    span = E.call("sub", high, low)
    below = E.call("lt", x, low)
    distance = E.call("where", below, E.call("sub", low, x), E.call("sub", x, high))
    turns = E.call("floor", E.call("div", distance, span))
    rest = E.call("sub", distance, E.call("mul", turns, span))
    even = E.call("eq", E.call("fmod", turns, f(2)), f(0))
    from_low = E.call("eq", E.call("to_f", below), E.call("to_f", even))
    turned = E.call("where", from_low, E.call("add", low, rest), E.call("sub", high, rest))
    return E.call("where", E.call("or", below, E.call("lt", high, x)), turned, x)


def _grid_sample(c: Context, node: Node, inputs: Inputs) -> Tensor:
    x, grid = float_input(inputs, 0), float_input(inputs, 1)
    mode, padding = str(node.attr("mode", "linear")), str(node.attr("padding_mode", "zeros"))
    align = bool(node.attr("align_corners", 0))
    if x.rank != 4 or mode in ("cubic", "bicubic"):
        raise UnsupportedError(f"GridSample {mode} of rank {x.rank}")
    if grid.rank != 4:
        raise UnsupportedError("GridSample with a grid of another rank")
    c.require_equal(grid.shape[0], x.shape[0], "the grid has another batch size than the image")
    c.require_equal(grid.shape[3], 2, "the grid's positions are not pairs")
    for extent in x.shape[2:]:
        c.require(lt(0, extent), "Input spatial dimensions must be non-empty for sampling")
    if padding == "reflection" and align and any(not isinstance(n, int) or n == 1 for n in x.shape[2:]):
        raise UnsupportedError("GridSample that reflects in a single element")
    axes: list[list[tuple[Expr, Expr | None]]] = []
    for i, extent in enumerate(x.shape[2:]):
        normal = E.load(1, E.axis(0), E.axis(2), E.axis(3), E.const(1 - i), dtype=grid.dtype)
        at = _position(normal, extent, align)
        if mode == "nearest":
            at = E.call("round", at)
        if padding == "border":  # all elements are the same beyond the middle between the last one and the next
            at = E.call("max", E.call("min", at, E.call("sub", E.call("to_f", E.size(extent)), f(0.5))), f(-0.5))
        elif padding == "reflection":
            at = _reflected(at, extent, align)
        if mode == "nearest":
            axes.append([(E.call("to_i", at), None)])
            continue
        low = E.call("floor", at)
        upper, first = E.call("sub", at, low), E.call("to_i", low)
        axes.append([(first, E.call("sub", f(1), upper)), (E.call("add", first, E.const(1)), upper)])
    terms: list[Expr] = []
    for row, row_weight in axes[0]:
        for column, column_weight in axes[1]:
            value = _pixel(x, row, column, padding == "zeros")
            for weight in (row_weight, column_weight):
                value = value if weight is None else E.call("mul", value, weight)
            terms.append(value)
    shape = (x.shape[0], x.shape[1], grid.shape[1], grid.shape[2])
    return Tensor(shape, x.dtype, Map(inputs=(x, grid), body=wrapped(x.dtype, total(terms))))


def _pixel(x: Tensor, row: Expr, column: Expr, zeros: bool) -> Expr:
    """An element of the image; outside it zero, or the nearest one."""
    at = [clamp_index(row, x.shape[2]), clamp_index(column, x.shape[3])]
    value = E.load(0, E.axis(0), E.axis(1), *at, dtype=x.dtype)
    if not zeros:
        return value
    return E.call("where", E.call("and", within(row, x.shape[2]), within(column, x.shape[3])), value, f(0))


OPS = [
    OpSpec(
        name="GridSample",
        lower=_grid_sample,
        versions=(1, 22),
        inputs=2,
        attributes=takes(
            align_corners=FLAG, mode=("linear", "bilinear", "nearest"), padding_mode=("zeros", "border", "reflection")
        ),
        types=(FLOATS,),
        note="of images, rank 4",
    ),
]
