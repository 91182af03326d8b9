"""The lazy tensors of an island as a graph: order, uses, replacements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xyntra_ep.fusion.tensor import Map, Permute, Reshape, Tensor, TNode, View
from xyntra_ep.fusion.trace import operands_of
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr


class Dag:
    """What the island's outputs need. Rewrites do not edit nodes: they ``replace`` one, and every reader goes through ``get``."""

    def __init__(self, outputs: Sequence[Tensor]) -> None:
        self._outputs = list(outputs)
        self._replaced: dict[int, Tensor] = {}
        self._alive: list[TNode] = []  # ids in the tables stay valid
        self._reads: dict[int, list[Tensor]] = {}  # nodes are not edited, so what one reads is looked up once
        self._positions: dict[int, int] = {}
        self.order: list[TNode] = []
        self.uses: dict[int, list[TNode]] = {}
        self.refresh()

    def get(self, t: Tensor) -> Tensor:
        """``t``, or what stands in for it now, with the sizes and the type that ``t`` has."""
        while id(t.node) in self._replaced and t.output == 0:
            by = self._replaced[id(t.node)].named(t.shape)
            t = by if by.dtype is t.dtype else replace(by, dtype=t.dtype)
        return t

    def replace(self, node: TNode, by: Tensor) -> None:
        """Let ``by`` stand for (the single output of) ``node``; call ``refresh`` when done."""
        self._alive.append(node)
        self._replaced[id(node)] = by

    def operands(self, node: TNode) -> list[Tensor]:
        reads = self._reads.get(id(node))
        if reads is None:
            self._alive.append(node)
            reads = self._reads[id(node)] = operands_of(node)
        replaced = self._replaced
        return [self.get(t) if id(t.node) in replaced else t for t in reads]

    @property
    def outputs(self) -> list[Tensor]:
        return [self.get(t) for t in self._outputs]

    def refresh(self) -> None:
        """Recompute order (operands first) and uses."""
        order: list[TNode] = []
        operands: dict[int, list[Tensor]] = {}
        stack: list[tuple[TNode, bool]] = [(t.node, False) for t in reversed(self.outputs)]
        while stack:
            node, ready = stack.pop()
            if ready:
                order.append(node)
            elif id(node) not in operands:
                reads = operands[id(node)] = self.operands(node)
                stack.append((node, True))
                stack.extend([(t.node, False) for t in reversed(reads)])
        uses: dict[int, list[TNode]] = {id(n): [] for n in order}
        for node in order:
            for read in dict.fromkeys([id(t.node) for t in operands[id(node)]]):
                uses[read].append(node)
        self.order, self.uses = order, uses
        self._positions = {id(n): i for i, n in enumerate(order)}

    def substitute(self, node: TNode, by: Tensor) -> None:
        """``replace`` a node by something of what it reads itself; order and uses are right again without a look at all nodes."""
        self.replace(node, by)
        new = self._unknown(by.node)
        for n in new:
            self.uses[id(n)] = []
            for read in self._read_by(n):
                self.uses[read].append(n)
        self.uses[id(by.node)] += self.uses[id(node)]
        self.uses[id(node)] = []
        unread = [node]
        while unread:
            n = unread.pop()
            del self.uses[id(n)]
            for t in self.operands(n):
                readers = self.uses.get(id(t.node), [])
                if any(r is n for r in readers):
                    readers[:] = [r for r in readers if r is not n]
                    if not readers and not self.is_output(t.node):
                        unread.append(t.node)
        at = self._positions[id(node)]
        self.order = [n for n in (*self.order[:at], *new, *self.order[at:]) if id(n) in self.uses]
        self._positions = {id(n): i for i, n in enumerate(self.order)}

    def _unknown(self, node: TNode) -> list[TNode]:
        """``node`` and what it reads as far as the graph does not have it, operands first."""
        if id(node) in self.uses:
            return []
        return [*(n for t in self.operands(node) for n in self._unknown(t.node)), node]

    def _read_by(self, node: TNode) -> list[int]:
        """The ids of the nodes that ``node`` reads, each once."""
        return list(dict.fromkeys([id(t.node) for t in self.operands(node)]))

    def position(self, node: TNode) -> int:
        return self._positions[id(node)]

    def is_output(self, node: TNode) -> bool:
        return any(t.node is node for t in self.outputs)


def below(dag: Dag, begins: Callable[[TNode], bool]) -> set[int]:
    """Nodes (their ids) that ``begins`` is true of, and those that they reach through elementwise steps and views."""
    found: set[int] = set()
    for node in dag.order:
        if begins(node) or (isinstance(node, (Map, View)) and any(id(t.node) in found for t in dag.operands(node))):
            found.add(id(node))
    return found


def unit_reshape(source: Sequence[Size], target: Sequence[Size], index: Sequence[Expr]) -> list[Expr] | None:
    """Index into ``source`` for ``index`` into ``target`` when the shapes differ only by axes of extent 1, else None."""
    if [s for s in source if s != 1] != [s for s in target if s != 1]:
        return None
    rest = [i for i, extent in zip(index, target, strict=True) if extent != 1]
    return [E.const(0) if extent == 1 else rest.pop(0) for extent in source]


def through_free_views(dag: Dag, t: Tensor, index: Sequence[Expr]) -> tuple[Tensor, list[Expr]]:
    """Follow permutations and reshapes that only add or drop axes of extent 1, carrying the index along."""
    position = list(index)
    while isinstance(t.node, View):
        base = dag.get(t.node.base)
        match t.node.step:
            case Reshape():
                inner = unit_reshape(base.shape, t.shape, position)
                if inner is None:
                    break
                position = inner
            case Permute(perm=perm):
                position = [position[perm.index(axis)] for axis in range(len(perm))]
            case _:
                break
        t = base
    return t, position
