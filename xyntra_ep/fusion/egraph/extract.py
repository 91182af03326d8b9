"""Takes the cheapest expression out of a class of an e-graph.

Cost: scalar operations, as `body_cost` counts them. What is only another way to write the same costs `FORM` more, so that nothing
is rounded otherwise to save a few multiplications. Between equals, what was written wins, then the smaller signature: no order
of rules or classes decides.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping

from xyntra_ep.fusion.egraph.body_cost import op_cost
from xyntra_ep.fusion.egraph.graph import BY_FORM, BY_RULE, EGraph, Node, Origin
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr

FORM = 3


class Extraction:
    """Of one graph, when it changes no more."""

    def __init__(self, graph: EGraph) -> None:
        self._graph = graph
        self._cost: dict[int, float] = {}
        self._built: dict[int, Expr] = {}
        self._signatures: dict[Expr, str] = {}  # which live as long as this does: ids could come again
        self.rules: set[str] = set()  # those whose replacements were taken
        self._settle()

    def _settle(self) -> None:
        classes = list(self._graph.classes())
        changed = True
        while changed:
            changed = False
            for c, nodes in classes:
                least = min(self._cost_of(node, origin) for node, origin in nodes.items())
                if least < self._cost.get(c, math.inf):
                    self._cost[c] = least
                    changed = True

    def _cost_of(self, node: Node, origin: Origin) -> float:
        if node.leaf is not None:
            return 0.0
        if node.op not in SCALAR_OPS:  # over rows: no expression has these
            return math.inf
        own = op_cost(node.op) + (FORM if origin.rank == BY_FORM else 0)
        return own + sum(self._cost.get(self._graph.find(a), math.inf) for a in node.args)

    def expr(self, c: int) -> Expr | None:
        """The cheapest expression of class ``c``; None where each has something over rows in it."""
        c = self._graph.find(c)
        if self._cost.get(c, math.inf) == math.inf:
            return None
        return self._expr(c)

    def _expr(self, c: int) -> Expr:
        c = self._graph.find(c)
        built = self._built.get(c)
        if built is None:
            node, origin = self._best(self._graph.nodes(c), self._cost[c])
            if origin.rank == BY_RULE and node.leaf is None:
                self.rules.add(origin.rule)
            built = self._built[c] = self._build(node)
        return built

    def _best(self, nodes: Mapping[Node, Origin], least: float) -> tuple[Node, Origin]:
        cheapest = [(origin, node) for node, origin in nodes.items() if self._cost_of(node, origin) == least]
        first = min(origin.rank for origin, _ in cheapest)
        alike = [(node, origin) for origin, node in cheapest if origin.rank == first]
        return alike[0] if len(alike) == 1 else min(alike, key=lambda row: self.signature(self._build(row[0])))

    def _build(self, node: Node) -> Expr:
        return node.leaf if node.leaf is not None else E.call(node.op, *(self._expr(a) for a in node.args))

    def signature(self, root: Expr) -> str:
        """Of what an expression is, not of where it came from."""
        for e in E.walk(root):
            if e not in self._signatures:
                below = ",".join(self._signatures[a] for a in e.args)
                text = f"{e.kind} {e.attr!r} {e.dtype} ({below})"
                self._signatures[e] = hashlib.sha256(text.encode()).hexdigest()
        return self._signatures[root]
