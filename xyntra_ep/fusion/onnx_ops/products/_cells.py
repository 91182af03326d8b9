"""The cells of LSTM, GRU and RNN: what becomes of a state in a step, over its products with the gates' matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xyntra_ep.fusion.graph import Node
from xyntra_ep.fusion.onnx_ops._operands import f, total
from xyntra_ep.fusion.onnx_ops.products._cell_activations import Activation, activations_of
from xyntra_ep.fusion.tensor import Tensor
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import RecurrentStage


@dataclass(slots=True, kw_only=True)
class Cell:
    """What a cell is made of. ``first``: the position of ``extra[0]``, behind the matrices and the lengths; ``product``: of the
    state and a gate's matrix."""

    node: Node
    directions: int
    width: int
    first: int
    bias: Tensor | None
    peepholes: Tensor | None
    extra: list[Tensor] = field(default_factory=list)
    product: Callable[[int], Expr] = E.acc

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


def lstm(cell: Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
    """Gates i, o, f, c; states h, c."""
    squash, fresh, show = cell.activations("Sigmoid", "Tanh", "Tanh")
    old = E.acc(5)

    def gate(g: int, seen: Expr, place: int) -> Expr:
        """``place`` in the peepholes (i, o, f), which look at a state of the cell."""
        sums = [cell.product(g), x[g]]
        if cell.peepholes is not None:
            sums.append(_mul(cell.part(cell.peepholes, place), seen))
        return squash(cell.clipped(total(sums)))

    i = gate(0, old, 0)
    forget = E.call("sub", f(1), i) if cell.node.attr("input_forget", 0) else gate(2, old, 2)
    c = E.call("add", _mul(forget, old), _mul(i, fresh(cell.clipped(E.call("add", cell.product(3), x[3])))))
    return (RecurrentStage(gates=4, factor=0, bodies=(_mul(gate(1, c, 1), show(c)), c)),)


def gru(cell: Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
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


def rnn(cell: Cell, x: Sequence[Expr]) -> Sequence[RecurrentStage]:
    (squash,) = cell.activations("Tanh")
    return (RecurrentStage(gates=1, factor=0, bodies=(squash(cell.clipped(E.call("add", E.acc(0), x[0]))),)),)
