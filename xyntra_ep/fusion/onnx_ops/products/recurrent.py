"""LSTM, GRU and RNN: one product for all steps of time, and a recurrence over it.

gates = x W^T + Wb + Rb               a product as any other, of all steps and both directions
state = cell(gates[time], state R^T)  the recurrence; its cell is an expression
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import Inputs, LowerMany, f, float_input, maybe, total
from xyntra_ep.fusion.onnx_ops.products._cell_activations import Activation, activations_of
from xyntra_ep.fusion.onnx_ops.products.linear import matmul
from xyntra_ep.fusion.op_spec import FLAG, FLOATS, OpSpec, takes
from xyntra_ep.fusion.tensor import Map, RecurrentNode, Tensor, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Dim, Size, both, le
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import RecurrentStage

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


@dataclass(slots=True, kw_only=True)
class _Cell:
    """What a cell is made of. ``first``: the position of ``extra[0]``, behind the matrices and the lengths."""

    node: Node
    directions: int
    width: int
    first: int
    bias: Tensor | None
    peepholes: Tensor | None
    extra: list[Tensor] = field(default_factory=list)

    def load(self, t: Tensor, *index: Expr) -> Expr:
        """An element of ``t``, which the recurrence then reads."""
        if all(t is not known for known in self.extra):
            self.extra.append(t)
        position = next(i for i, known in enumerate(self.extra) if known is t)
        return E.load(self.first + position, *index, dtype=t.dtype)

    def part(self, t: Tensor, number: int) -> Expr:
        """This unit's element of part ``number`` of a tensor [D, parts * n]."""
        return self.load(t, E.axis(0), E.call("add", E.axis(3), E.const(number * self.width)))

    def clipped(self, v: Expr) -> Expr:
        limit = float(self.node.attr("clip", 0.0))
        return v if limit <= 0.0 else E.call("max", E.call("min", v, f(limit)), f(-limit))

    def activations(self, *usual: str) -> list[Activation]:
        return activations_of(self.node, usual, self.directions)


def _mul(a: Expr, b: Expr) -> Expr:
    return E.call("mul", a, b)


def _lstm(cell: _Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
    """Gates i, o, f, c; states h, c."""
    squash, fresh, show = cell.activations("Sigmoid", "Tanh", "Tanh")
    old = E.acc(5)

    def gate(g: int, seen: Expr, place: int) -> Expr:
        """``place`` in the peepholes (i, o, f), which look at a state of the cell."""
        sums = [E.acc(g), x[g]]
        if cell.peepholes is not None:
            sums.append(_mul(cell.part(cell.peepholes, place), seen))
        return squash(cell.clipped(total(sums)))

    i = gate(0, old, 0)
    forget = E.call("sub", f(1), i) if cell.node.attr("input_forget", 0) else gate(2, old, 2)
    c = E.call("add", _mul(forget, old), _mul(i, fresh(cell.clipped(E.call("add", E.acc(3), x[3])))))
    return (RecurrentStage(gates=4, factor=0, bodies=(_mul(gate(1, c, 1), show(c)), c)),)


def _gru(cell: _Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
    """Gates z, r, h; state h."""
    squash, fresh = cell.activations("Sigmoid", "Tanh")
    z, r = (squash(cell.clipped(E.call("add", E.acc(g), x[g]))) for g in range(2))

    def new(z: Expr, hidden: Expr, old: Expr) -> Expr:
        return E.call("add", _mul(E.call("sub", f(1), z), fresh(cell.clipped(hidden))), _mul(z, old))

    if cell.node.attr("linear_before_reset", 0):
        product = E.acc(2) if cell.bias is None else E.call("add", E.acc(2), cell.part(cell.bias, 5))
        return (RecurrentStage(gates=3, factor=0, bodies=(new(z, E.call("add", x[2], _mul(r, product)), E.acc(3)),)),)
    # vectors: the state, z, r * state
    before = RecurrentStage(gates=2, factor=0, bodies=(z, _mul(r, E.acc(2))))
    return (before, RecurrentStage(gates=1, factor=2, bodies=(new(E.acc(2), E.call("add", x[2], E.acc(0)), E.acc(1)),)))


def _rnn(cell: _Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
    (squash,) = cell.activations("Tanh")
    return (RecurrentStage(gates=1, factor=0, bodies=(squash(cell.clipped(E.call("add", E.acc(0), x[0]))),)),)


def _recurrent(gates: int, states: int, stages: Callable[[_Cell, Sequence[Expr]], Sequence[RecurrentStage]]) -> LowerMany:
    def lower(c: Context, node: Node, inputs: Inputs) -> Sequence[Tensor]:
        x, w, r = (float_input(inputs, i) for i in range(3))
        reverse = _DIRECTIONS.get(str(node.attr("direction", "forward")).lower())
        if reverse is None:
            raise UnsupportedError(f"direction = {node.attr('direction')}")
        if x.rank != 3 or r.rank != 3:
            raise UnsupportedError(f"X of rank {x.rank}, R of rank {r.rank}")
        directions, width, batch_first = len(reverse), r.shape[2], bool(node.attr("layout", 0))
        if isinstance(width, Dim):
            raise UnsupportedError("the size of the hidden state is not known")
        if width == 0 or int(node.attr("hidden_size", width)) != width:
            raise UnsupportedError(f"hidden_size = {node.attr('hidden_size', width)}, R is {r.shape}")
        steps, rows = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
        w = _shaped(c, w, (directions, gates * width, x.shape[2]), "W")
        r = _shaped(c, r, (directions, gates * width, width), "R").reshape((directions, gates, width, width))
        bias = _given(c, inputs, 3, (directions, 2 * gates * width), "B")
        lengths = _lengths(c, maybe(inputs, 4), steps, rows)
        cell = _Cell(
            node=node,
            directions=directions,
            width=width,
            first=1 + len(lengths),
            bias=bias,
            peepholes=_given(c, inputs, 7, (directions, 3 * width), "P"),
        )
        projected = _projected(c, x, w, bias, bool(node.attr("linear_before_reset", 0)))
        order = (2, 1, 0, 3, 4) if batch_first else (2, 0, 1, 3, 4)
        here = projected.reshape((*x.shape[:2], directions, gates, width)).permute(order)
        taken = [cell.load(here, E.axis(0), E.axis(1), E.axis(2), E.const(g), E.axis(3)) for g in range(gates)]
        made = tuple(stages(cell, taken))
        initial: list[Expr] = []
        for state, name in zip(range(states), ("initial_h", "initial_c"), strict=False):
            shape = (rows, directions, width) if batch_first else (directions, rows, width)
            t = _given(c, inputs, 5 + state, shape, name)
            index = (E.axis(2), E.axis(0), E.axis(3)) if batch_first else (E.axis(0), E.axis(2), E.axis(3))
            initial.append(f(0) if t is None else cell.load(t, *index))
        recurrent = RecurrentNode(
            weights=r.permute((0, 1, 3, 2)),
            lengths=lengths,
            extra=tuple(cell.extra),
            domain=(directions, steps, rows, width),
            reverse=reverse,
            initial=tuple(initial),
            stages=made,
            batch_first=batch_first,
        )
        results = [Tensor(shape, x.dtype, recurrent, output=i) for i, shape in enumerate(recurrent.shapes)]
        if directions > 1 and not batch_first:
            results[0] = results[0].permute((0, 2, 1, 3))
        return results

    return lower


def _shaped(c: Context, t: Tensor, shape: Sequence[Size], name: str) -> Tensor:
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
    t = _shaped(c, t, shape, name)
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
    lengths = _shaped(c, lengths, (rows,), "sequence_lens")
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
    place = (E.axis(0), E.axis(1))
    of_w = E.load(0, *place, dtype=bias.dtype)
    of_r = E.load(0, E.axis(0), E.call("add", E.axis(1), E.size(columns)), dtype=bias.dtype)
    if linear_before_reset:
        of_r = E.call("where", E.call("lt", E.axis(1), E.size(columns * 2 // 3)), of_r, f(0))
    both_of = Tensor((directions, columns), DType.F32, Map(inputs=(bias,), body=E.call("add", of_w, of_r)))
    return c.map([product, both_of.reshape((directions * columns,))], lambda v, b: E.call("add", v, b), DType.F32)


_COMMON = takes("activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size", layout=FLAG)
_TYPES = (FLOATS, FLOATS, FLOATS, FLOATS, (DType.I32,), FLOATS)

OPS = [
    OpSpec(
        name="LSTM",
        lower=_recurrent(4, 2, _lstm),
        versions=(7, 22),
        inputs=8,
        attributes={**_COMMON, **takes(input_forget=FLAG)},
        types=_TYPES,
        note="of constant sizes but the batch and the length",
    ),
    OpSpec(
        name="GRU",
        lower=_recurrent(3, 1, _gru),
        versions=(7, 22),
        inputs=6,
        attributes={**_COMMON, **takes(linear_before_reset=FLAG)},
        types=_TYPES,
        note="as LSTM",
    ),
    OpSpec(
        name="RNN", lower=_recurrent(1, 1, _rnn), versions=(7, 22), inputs=6, attributes=_COMMON, types=_TYPES, note="as LSTM"
    ),
]
