"""The e-graph: many ways to write an expression at once, in little room.

A *node* is an operation on *classes*; a class holds nodes that are known to be equal. Nodes are unique (``_ids``), classes are
merged by union-find, and `rebuild` restores congruence: equal operations on equal classes are in one class. A class with a known
value holds its constant alone.

Willsey et al., "egg: Fast and Extensible Equality Saturation", POPL 2021.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from xyntra_ep.fusion.egraph import facts
from xyntra_ep.fusion.egraph.facts import Facts
from xyntra_ep.fusion.egraph.formula import NAME, NUMBER, ROW_KINDS, Term
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind

LEAF = "leaf"
_ROW_OPS: Mapping[ReduceKind, str] = {kind: name for name, kind in ROW_KINDS.items()}


class Node(NamedTuple):
    """``leaf``: what stands there, of an op ``LEAF``: a load, an axis, a size, an accumulator or a constant."""

    op: str
    args: tuple[int, ...] = ()
    leaf: Expr | None = None


class Origin(NamedTuple):
    """Who wrote a node; the least of all who did is kept, so that it does not matter who came first."""

    rank: int
    rule: str = ""


WRITTEN = Origin(0)  # it stands in the expression itself
BY_RULE, BY_FORM = 1, 2  # ranks: by a rule, or by one that only writes the same differently


@dataclass(slots=True)
class Class:
    facts: Facts
    nodes: dict[Node, Origin] = field(default_factory=dict)
    parents: list[tuple[Node, int]] = field(default_factory=list)


class EGraph:
    """``inner``: the axes that go through a row."""

    def __init__(self, inner: frozenset[int] = frozenset()) -> None:
        self._inner = inner
        self._leader: list[int] = []
        self._classes: dict[int, Class] = {}
        self._ids: dict[Node, int] = {}
        self._changed: list[int] = []  # classes whose parents may be equal to others now
        self.version = 0  # counts what was added and merged

    def find(self, c: int) -> int:
        """The number by which a class goes now."""
        root = c
        while self._leader[root] != root:
            root = self._leader[root]
        while self._leader[c] != root:
            self._leader[c], c = root, self._leader[c]
        return root

    def facts(self, c: int) -> Facts:
        return self._classes[self.find(c)].facts

    def nodes(self, c: int) -> Mapping[Node, Origin]:
        return self._classes[self.find(c)].nodes

    def classes(self) -> Iterator[tuple[int, Mapping[Node, Origin]]]:
        return ((c, found.nodes) for c, found in self._classes.items())

    @property
    def size(self) -> int:
        """How many nodes there are."""
        return len(self._ids)

    # -- what is put in

    def add(self, node: Node, origin: Origin) -> int:
        """The class of ``node``."""
        node = node._replace(args=tuple(self.find(a) for a in node.args))
        known = self._ids.get(node)
        if known is not None:
            c = self.find(known)
            nodes = self._classes[c].nodes
            if node in nodes:
                nodes[node] = min(nodes[node], origin)
            return c
        self.version += 1
        c = len(self._leader)
        self._leader.append(c)
        self._ids[node] = c
        found = self._classes[c] = Class(self._facts_of(node), {node: origin})
        for a in dict.fromkeys(node.args):
            self._classes[a].parents.append((node, c))
        if found.facts.constant is not None and node.leaf is None:
            self._settle(c)
        return self.find(c)

    def add_expr(self, root: Expr, results: Mapping[int, int] | None = None) -> int:
        """The class of an expression as it is written; indices stay as they are. ``results``: classes of accumulators."""
        done: dict[int, int] = {}
        stack: list[tuple[Expr, bool]] = [(root, False)]
        while stack:
            e, ready = stack.pop()
            if id(e) in done:
                continue
            if e.kind == "acc" and results and e.attr in results:
                done[id(e)] = results[e.attr]
            elif e.kind != "call":
                done[id(e)] = self.add(Node(LEAF, leaf=e), WRITTEN)
            elif ready:
                done[id(e)] = self.add(Node(e.attr, tuple(done[id(a)] for a in e.args)), WRITTEN)
            else:
                stack.append((e, True))
                stack.extend((a, False) for a in e.args)
        return self.find(done[id(root)])

    def add_row(self, kind: ReduceKind, body: int) -> int | None:
        """The class of a reduction over each row, None where formulas have no word for it."""
        return self.add(Node(_ROW_OPS[kind], (body,)), WRITTEN) if kind in _ROW_OPS else None

    def add_term(self, term: Term, bound: Mapping[str, int], origin: Origin) -> int:
        """The class of a formula whose names stand for the classes ``bound``."""
        if term.op == NAME:
            return self.find(bound[term.name])
        if term.op == NUMBER:
            return self.add(Node(LEAF, leaf=E.const(term.value)), origin)
        return self.add(Node(term.op, tuple(self.add_term(a, bound, origin) for a in term.args)), origin)

    def _facts_of(self, node: Node) -> Facts:
        if node.leaf is not None:
            return facts.of_leaf(node.leaf, self._inner)
        return facts.of_operation(node.op, [self.facts(a) for a in node.args])

    # -- what is equal

    def union(self, a: int, b: int) -> None:
        """They are equal; call `rebuild` when done."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return
        self.version += 1
        a, b = min(a, b), max(a, b)
        kept, gone = self._classes[a], self._classes.pop(b)
        self._leader[b] = a
        for node, origin in gone.nodes.items():
            kept.nodes[node] = min(kept.nodes.get(node, origin), origin)
        kept.parents += gone.parents
        kept.facts = kept.facts.joined(gone.facts)
        self._changed.append(a)
        if kept.facts.constant is not None:
            self._settle(a)

    def _settle(self, c: int) -> None:
        """A class with a known value holds that alone: other ways to write it would have no end."""
        c = self.find(c)
        value = self._classes[c].facts.constant
        assert value is not None
        leaf = Node(LEAF, leaf=E.const(value, self._classes[c].facts.dtype))
        nodes = self._classes[c].nodes
        if leaf in nodes and len(nodes) == 1:
            return
        origin = min(nodes.values())
        known = self._ids.get(leaf)
        if known is None:
            self._ids[leaf] = c
        elif self.find(known) != c:
            self.union(c, known)
            return
        self._classes[c].nodes = {leaf: min(nodes.get(leaf, origin), origin)}

    def rebuild(self) -> None:
        """Restore congruence, and tell parents what is known anew of their operands."""
        while self._changed:
            pending = dict.fromkeys(self.find(c) for c in self._changed)
            self._changed = []
            for c in pending:
                if c == self.find(c):
                    self._repair(c)
        for found in self._classes.values():
            nodes: dict[Node, Origin] = {}
            for node, origin in found.nodes.items():
                now = node._replace(args=tuple(self.find(a) for a in node.args))
                nodes[now] = min(nodes.get(now, origin), origin)
            found.nodes = nodes

    def _repair(self, c: int) -> None:
        parents, self._classes[c].parents = self._classes[c].parents, []
        seen: dict[Node, int] = {}
        for node, of in parents:
            now = node._replace(args=tuple(self.find(a) for a in node.args))
            if now != node and self._ids.get(node) is not None:
                known = self._ids.pop(node)
                if now not in self._ids:
                    self._ids[now] = known
            other = self._ids.setdefault(now, of)
            self.union(of, other)
            seen[now] = self.find(of)
        for node, of in seen.items():
            c_now = self.find(c)
            self._classes[c_now].parents.append((node, self.find(of)))
            self._learn(node, self.find(of))

    def _learn(self, node: Node, c: int) -> None:
        """Join what ``node``, of class ``c``, says now. Bounds that narrow only are not followed up: that could have no end."""
        found = self._classes[c]
        before = found.facts
        found.facts = before.joined(self._facts_of(node))
        if (found.facts.constant, found.facts.per_row) != (before.constant, before.per_row):
            self._changed.append(c)
            if found.facts.constant is not None:
                self._settle(c)
