"""Putting expressions together: a load of a lazy tensor becomes the expression that computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import Map, Tensor, TNode
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr

Source = Callable[[Tensor, list[Expr]], Expr | None]


class Composer:
    """Builds expressions over a growing operand list.

    ``source(tensor, index)`` decides what a load means: an expression (an accumulator, an inlined body through ``inline``) or
    None for a plain load of the materialised tensor. ``members`` collects the lazy nodes that were taken in.
    """

    def __init__(self, dag: Dag, source: Source, operands: Sequence[Tensor] = ()) -> None:
        self._dag = dag
        self._source = source
        self._memo: dict[tuple[int, int, tuple[Expr, ...]], Expr] = {}
        self.operands: list[Tensor] = list(operands)
        self._given = len(operands)  # what an op reads by itself; its expressions do not
        self.members: list[TNode] = []

    def load(self, tensor: Tensor, index: Sequence[Expr]) -> Expr:
        """One element of ``tensor``."""
        tensor = self._dag.get(tensor)
        key = (id(tensor.node), tensor.output, tuple(index))
        found = self._memo.get(key)
        if found is None:
            found = self._source(tensor, list(index))
            if found is None:
                found = self.read(tensor, index)
            self._memo[key] = found
        return found

    def read(self, tensor: Tensor, index: Sequence[Expr]) -> Expr:
        """The same from where it is stored."""
        return E.load(self._operand(tensor), *index, dtype=tensor.dtype)

    def body(self, body: Expr, inputs: Sequence[Tensor], index: Sequence[Expr]) -> Expr:
        """``body`` (over ``inputs`` and its own axes) with its axes at ``index``."""

        def leaf(e: Expr) -> Expr | None:
            if e.kind == "axis":
                position: Expr = index[e.attr]
                return position
            if e.kind == "load":
                return self.load(inputs[e.attr], [self.body(i, inputs, index) for i in e.args])
            return None

        return E.rewrite(body, leaf)

    def inline(self, node: Map, index: Sequence[Expr]) -> Expr:
        """The body of ``node`` at ``index``."""
        if all(m is not node for m in self.members):
            self.members.append(node)
        return self.body(node.body, node.inputs, index)

    def _operand(self, tensor: Tensor) -> int:
        for j, known in enumerate(self.operands):
            if j >= self._given and known.node is tensor.node and known.output == tensor.output:
                return j
        self.operands.append(tensor)
        return len(self.operands) - 1


def axes(rank: int) -> list[Expr]:
    """The identity index."""
    return [E.axis(i) for i in range(rank)]


def is_identity(index: Sequence[Expr], shape: Sequence[object]) -> bool:
    """Whether ``index`` reads element (i, j, ...) at loop position (i, j, ...); on an axis of extent 1 index 0 is as good."""
    return all(
        e is E.axis(i) or (extent == 1 and e is E.const(0)) for i, (e, extent) in enumerate(zip(index, shape, strict=True))
    )


def tensor_of(dag: Dag, body: Expr, operands: Sequence[Tensor], like: Tensor, sources: frozenset[int]) -> Tensor:
    """The tensor of ``body`` over ``operands``, of the shape and type of ``like``: one of them, where it only reads that."""
    if body.kind == "load" and is_identity(body.args, like.shape) and operands[body.attr].shape == like.shape:
        return dag.get(operands[body.attr])
    used = sorted({e.attr for e in E.walk(body) if e.kind == "load"})
    number = {j: k for k, j in enumerate(used)}

    def renumber(e: Expr) -> Expr | None:
        return E.load(number[e.attr], *(E.rewrite(i, renumber) for i in e.args), dtype=e.dtype) if e.kind == "load" else None

    inputs = tuple(operands[j] for j in used)
    return Tensor(like.shape, like.dtype, Map(inputs=inputs, body=E.rewrite(body, renumber), sources=sources))
