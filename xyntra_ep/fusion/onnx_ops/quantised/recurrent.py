"""LSTM with quantised matrices, which `quantize_dynamic` makes of one: DynamicQuantizeLSTM.

gates = (q(x) W) * scales + Wb + Rb          one product of bytes for all steps of time, x quantised as a whole
state = cell(gates[time], q(state) R)        a recurrence of bytes: each state of each row by a range of its own

ONNX Runtime quantises together the states that one of its threads computes: all rows with one thread, each row by itself with as
many threads as rows. What a row gives is then a matter of its neighbours and of the machine; here it is the latter, anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, one
from xyntra_ep.fusion.onnx_ops.products._cells import Cell, lstm
from xyntra_ep.fusion.onnx_ops.products.recurrent import COMMON, Layer, biases, layer_of, shaped
from xyntra_ep.fusion.onnx_ops.quantised._integers import integer_product, moved_bytes, sums_along
from xyntra_ep.fusion.onnx_ops.quantised.linear import dynamically_quantised
from xyntra_ep.fusion.onnx_ops.rows.reduction import per_row, rows
from xyntra_ep.fusion.op_spec import FLAG, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, Tensor
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind, Stage

_GATES, _STATES = 4, 2


def _parameters(c: Context, layer: Layer, inputs: Inputs, first: int, name: str) -> tuple[Tensor, Tensor]:
    """The scale and the zero point of W or of R: one for each direction, or for each column of it."""
    found = []
    for i, what in ((first, f"{name}_scale"), (first + 1, f"{name}_zero_point")):
        t = one(inputs, i)
        if t.rank not in (1, 2):
            raise UnsupportedError(f"{what} of rank {t.rank}")
        found.append(shaped(c, t, (layer.directions, layer.columns)[: t.rank], what))
    zero = found[1]
    if zero.rank == 2:  # ONNX Runtime fails otherwise
        if not zero.is_const:
            raise UnsupportedError(f"{name}_zero_point of columns is not constant")
        known = c.constant(zero, f"{name}_zero_point")
        if (known != (0 if zero.dtype is DType.I8 else known.flat[0])).any():
            raise UnsupportedError(f"columns of {name} have zero points of their own")
    return found[0], zero


def _projected(c: Context, layer: Layer, w: Tensor, scale: Tensor, zero: Tensor | None) -> Tensor:
    """What `recurrent._projected` gives, of ``w`` [D, K, G * n]."""
    x, d, columns = layer.x, layer.directions, layer.columns
    q, x_scale, x_zero = dynamically_quantised(c, x, _seen(layer))
    above = c.map(
        [sums_along(q, [2]), x_zero],
        lambda total, z: E.call("wrap_i32", E.call("sub", total, E.call("mul", z, E.size(w.shape[1])))),
        DType.I32,
    )
    if d > 1:  # the directions are a batch
        q, above = (t.reshape((1, *t.shape)) for t in (q, above))
    total = integer_product(c, q, x_zero, w.reshape((d, 1, *w.shape[1:]) if d > 1 else w.shape[1:]), None)

    def of_columns(t: Tensor) -> Tensor:
        last = columns if t.rank == 2 else 1
        return t.reshape((d, 1, 1, last) if d > 1 else (last,))

    if zero is not None:

        def corrected(v: Expr, z: Expr, rest: Expr) -> Expr:
            return E.call("wrap_i32", E.call("sub", v, E.call("mul", z, rest)))

        total = c.map([total, of_columns(zero), above], corrected, DType.I32)
    more = [] if layer.bias is None else [of_columns(biases(layer.bias, columns))]

    def body(sums: Expr, of_x: Expr, of_w: Expr, *added: Expr) -> Expr:
        value = E.call("mul", E.call("to_f", sums), E.call("round_f32", E.call("mul", of_x, of_w)))
        return E.call("add", value, added[0]) if added else value

    shape = (*((d,) if d > 1 else ()), *x.shape[:2], columns)
    projected = c.map([total, x_scale, of_columns(scale), *more], body, DType.F32).named(shape)
    return projected.permute((1, 2, 0, 3)) if d > 1 else projected


def _seen(layer: Layer) -> Tensor:
    """What of x decides its range: no step beyond the longest sequence."""
    x = layer.x
    if not layer.lengths:
        return x
    _, _, _, each = rows(layer.lengths[0], [0])
    stage = Stage(kind=ReduceKind.MAX, body=each, dtype=DType.I64)
    longest = per_row(layer.lengths[0], [0], [stage], E.acc_int(0), True, DType.I32)
    element = E.load(0, E.axis(0), E.axis(1), E.axis(2), dtype=x.dtype)
    is_there = E.call("lt", E.axis(0), E.load(1, E.const(0), dtype=DType.I32))
    return Tensor(x.shape, x.dtype, Map(inputs=(x, longest), body=E.call("where", is_there, element, E.const(0.0))))


def _product(cell: Cell, scale: Tensor, zero: Tensor | None, g: int) -> Expr:
    """That of the state with gate ``g``, of ``zero`` points that are not 0."""
    of_state, above = E.acc(_GATES + _STATES), E.acc_int(_GATES + _STATES + 1)

    def here(t: Tensor) -> Expr:
        return cell.part(t, g) if t.rank == 2 else cell.load(t, E.axis(0))

    total = E.acc_int(g)
    if zero is not None:
        total = E.call("wrap_i32", E.call("sub", total, E.call("mul", here(zero), above)))
    return E.call("mul", E.call("to_f", total), E.call("round_f32", E.call("mul", of_state, here(scale))))


def _dynamic_quantize_lstm(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
    x, w, r = (one(inputs, i) for i in range(3))
    for name, t in (("X", x), ("W", w), ("R", r)):
        if t.rank != 3:
            raise UnsupportedError(f"{name} of rank {t.rank}")
    layer = layer_of(c, node, inputs, _GATES, r.shape[1])
    d, n = layer.directions, layer.width
    c.require_equal(x.shape[2], w.shape[1], "the shape of W does not fit")
    w = shaped(c, w, (d, w.shape[1], layer.columns), "W")  # its own depth: what is summed up of a constant is constant
    r = shaped(c, r, (d, n, layer.columns), "R")
    w_scale, w_zero = _parameters(c, layer, inputs, 8, "W")
    r_scale, r_zero = _parameters(c, layer, inputs, 10, "R")
    w, of_w = moved_bytes(c, w, w_zero, DType.I8)
    r, of_r = moved_bytes(c, r, r_zero, DType.I8)
    cell = layer.cell(c)
    cell.product = lambda g: _product(cell, r_scale, of_r, g)
    projected = _projected(c, layer, w, w_scale, of_w)
    weights = r.reshape((d, n, _GATES, n)).permute((0, 2, 1, 3))
    return layer.results(c, cell, lstm, _STATES, projected, weights)


_FLOAT, _BYTES = (DType.F32,), (DType.U8, DType.I8)

OPS = [
    OpSpec(
        name="com.microsoft.DynamicQuantizeLSTM",
        lower=_dynamic_quantize_lstm,
        inputs=12,
        attributes={**COMMON, **takes(input_forget=FLAG)},
        types=(_FLOAT, _BYTES, _BYTES, _FLOAT, (DType.I32,), _FLOAT, _FLOAT, _FLOAT, _FLOAT, _BYTES, _FLOAT, _BYTES),
        note="states of each row are quantised by themselves",
    )
]
