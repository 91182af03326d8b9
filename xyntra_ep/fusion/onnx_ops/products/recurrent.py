"""LSTM, GRU and RNN: one product for all steps of time, and a recurrence over it.

gates = x W^T + Wb + Rb               a product as any other, of all steps and both directions
state = cell(gates[time], state R^T)  the recurrence; its cell is an expression
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, LowerMany, f, float_input, maybe
from xyntra_ep.fusion.onnx_ops.products._cells import Cell, gru, lstm, rnn
from xyntra_ep.fusion.onnx_ops.products.linear import matmul
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, RecurrentNode, Tensor, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, both, le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import RecurrentStage

Stages = Callable[[Cell, Sequence[Expr]], Sequence[RecurrentStage]]

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The sizes of a node, and what it is given beside its weights."""

    node: Node
    inputs: Inputs
    x: Tensor
    gates: int
    width: int
    reverse: tuple[bool, ...]
    batch_first: bool
    lengths: tuple[Tensor, ...]
    bias: Tensor | None

    @property
    def directions(self) -> int:
        return len(self.reverse)

    @property
    def columns(self) -> int:
        """Of the product with an input, for one direction."""
        return self.gates * self.width

    def cell(self, c: Context) -> Cell:
        return Cell(
            node=self.node,
            directions=self.directions,
            width=self.width,
            first=1 + len(self.lengths),
            bias=self.bias,
            peepholes=_given(c, self.inputs, 7, (self.directions, 3 * self.width), "P"),
        )

    def results(
        self, c: Context, cell: Cell, stages: Stages, states: int, projected: Tensor, weights: Tensor
    ) -> Sequence[Tensor]:
        """``projected``: the product with x and the biases [..., D * G * n], in x's order; ``weights``: [D, G, n, n]."""
        x, directions, width, batch_first = self.x, self.directions, self.width, self.batch_first
        steps, rows = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
        order = (2, 1, 0, 3, 4) if batch_first else (2, 0, 1, 3, 4)
        here = projected.reshape((*x.shape[:2], directions, self.gates, width)).permute(order)
        taken = [cell.load(here, E.axis(0), E.axis(1), E.axis(2), E.const(g), E.axis(3)) for g in range(self.gates)]
        made = tuple(stages(cell, taken))
        initial: list[Expr] = []
        for state, name in zip(range(states), ("initial_h", "initial_c"), strict=False):
            shape = (rows, directions, width) if batch_first else (directions, rows, width)
            t = _given(c, self.inputs, 5 + state, shape, name)
            index = (E.axis(2), E.axis(0), E.axis(3)) if batch_first else (E.axis(0), E.axis(2), E.axis(3))
            initial.append(f(0) if t is None else cell.load(t, *index))
        recurrent = RecurrentNode(
            weights=weights,
            lengths=self.lengths,
            extra=tuple(cell.extra),
            domain=(directions, steps, rows, width),
            reverse=self.reverse,
            initial=tuple(initial),
            stages=made,
            batch_first=batch_first,
        )
        results = [Tensor(shape, x.dtype, recurrent, output=i) for i, shape in enumerate(recurrent.shapes)]
        if directions > 1 and not batch_first:
            results[0] = results[0].permute((0, 2, 1, 3))
        return results


def layer_of(c: Context, node: Node, inputs: Inputs, gates: int, width: Size) -> Layer:
    """Of a node whose states have ``width`` elements, as its weights say."""
    x = float_input(inputs, 0)
    reverse = _DIRECTIONS.get(str(node.attr("direction", "forward")).lower())
    if reverse is None:
        raise UnsupportedError(f"direction = {node.attr('direction')}")
    if isinstance(width, Dim):
        raise UnsupportedError("the size of the hidden state is not known")
    if width == 0 or int(node.attr("hidden_size", width)) != width:
        raise UnsupportedError(f"hidden_size = {node.attr('hidden_size', width)}, R is for {width}")
    batch_first = bool(node.attr("layout", 0))
    steps, rows = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    return Layer(
        node=node,
        inputs=inputs,
        x=x,
        gates=gates,
        width=width,
        reverse=reverse,
        batch_first=batch_first,
        lengths=_lengths(c, maybe(inputs, 4), steps, rows),
        bias=_given(c, inputs, 3, (len(reverse), 2 * gates * width), "B"),
    )


def _recurrent(gates: int, states: int, stages: Stages) -> LowerMany:
    def lower(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
        x, w, r = (float_input(inputs, i) for i in range(3))
        if x.rank != 3 or r.rank != 3:
            raise UnsupportedError(f"X of rank {x.rank}, R of rank {r.rank}")
        layer = layer_of(c, node, inputs, gates, r.shape[2])
        directions, width = layer.directions, layer.width
        w = shaped(c, w, (directions, gates * width, x.shape[2]), "W")
        r = shaped(c, r, (directions, gates * width, width), "R").reshape((directions, gates, width, width))
        projected = _projected(c, x, w, layer.bias, bool(node.attr("linear_before_reset", 0)))
        return layer.results(c, layer.cell(c), stages, states, projected, r.permute((0, 1, 3, 2)))

    return lower


def shaped(c: Context, t: Tensor, shape: Sequence[Size], name: str) -> Tensor:
    """``t``, which must have ``shape``."""
    if t.rank != len(shape):
        raise UnsupportedError(f"{name} of rank {t.rank}")
    for have, want in zip(t.shape, shape, strict=True):
        c.require_equal(have, want, f"the shape of {name} does not fit")
    return t.named(shape)


def _given(c: Context, inputs: Inputs, i: int, shape: Sequence[Size], name: str) -> Tensor | None:
    """An optional input of ``shape``; None where it is zeros, which change nothing."""
    t = maybe(inputs, i)
    if t is None:
        return None
    t = shaped(c, t, shape, name)
    return None if _is_zero(c, t) else t


def _is_zero(c: Context, t: Tensor) -> bool:
    """Whether all elements are known to be 0: a constant, or one number repeated."""
    while isinstance(t.node, View):
        t = t.node.base
    if isinstance(t.node, Map):
        return t.node.body.kind == "const" and t.node.body.attr == 0
    return t.is_const and not c.constant(t, "zeros").any()


def _lengths(c: Context, lengths: Tensor | None, steps: Size, rows: Size) -> tuple[Tensor, ...]:
    if lengths is None:
        return ()
    known = None if lengths.content is None else list(lengths.content.reshape(-1))
    lengths = shaped(c, lengths, (rows,), "sequence_lens")
    message = "a length in sequence_lens is not within the sequence"
    if known is not None:
        for length in known:
            c.require(both(le(0, length), le(length, steps)), message)
        return () if all(length == steps for length in known) else (lengths,)
    c.require_data(
        lengths,
        lambda v, _: E.call("or", E.call("lt", v, E.const(0)), E.call("lt", E.size(steps), v)),
        message,
    )
    return (lengths,)


def _projected(c: Context, x: Tensor, w: Tensor, bias: Tensor | None, linear_before_reset: bool) -> Tensor:
    """x W^T and the biases, [..., D * G * n]. Where the reset gate takes part of R's product, R's bias for it is not in here."""
    directions, columns, depth = w.shape
    product = matmul(c, x, w.reshape((directions * columns, depth)).permute((1, 0)))
    if bias is None:
        return product
    both_of = biases(bias, columns, linear_before_reset)
    return c.map([product, both_of.reshape((directions * columns,))], lambda v, b: E.call("add", v, b), DType.F32)


def biases(bias: Tensor, columns: Size, linear_before_reset: bool = False) -> Tensor:
    """W's and R's, added up where they may be: [D, G * n]."""
    place = (E.axis(0), E.axis(1))
    of_w = E.load(0, *place, dtype=bias.dtype)
    of_r = E.load(0, E.axis(0), E.call("add", E.axis(1), E.size(columns)), dtype=bias.dtype)
    if linear_before_reset:
        of_r = E.call("where", E.call("lt", E.axis(1), E.size(columns * 2 // 3)), of_r, f(0))
    return Tensor((bias.shape[0], columns), DType.F32, Map(inputs=(bias,), body=E.call("add", of_w, of_r)))


COMMON = takes("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size")
_COMMON = {**COMMON, **takes(layout=FLAG)}
_TYPES = (FLOATS, FLOATS, FLOATS, FLOATS, (DType.I32,), FLOATS)

OPS = [
    OpSpec(
        name="LSTM",
        lower=_recurrent(4, 2, lstm),
        versions=(7, 22),
        inputs=8,
        attributes={**_COMMON, **takes(input_forget=FLAG)},
        types=_TYPES,
        note="of constant sizes but the batch and the length",
    ),
    OpSpec(
        name="GRU",
        lower=_recurrent(3, 1, gru),
        versions=(7, 22),
        inputs=6,
        attributes={**_COMMON, **takes(linear_before_reset=FLAG)},
        types=_TYPES,
        note="as LSTM",
    ),
    OpSpec(name="RNN", lower=_recurrent(1, 1, rnn), versions=(7, 22), inputs=6, attributes=_COMMON, types=_TYPES, note="as LSTM"),
]
