"""Which elementwise nodes disappear into a kernel and which are materialised.

A Map is taken into its readers' kernel when all its readers belong to one group (so nothing is computed twice); the last Map of a
group is its *root*. A root then takes in the one product, Conv or row op whose result it finishes: that becomes its epilogue.
Another product of the group is stored, as narrow as something on its way makes it: a product of integers as the bytes that it
is quantised to.
"""

from __future__ import annotations

from xyntra_ep.fusion.egraph.body_cost import body_cost
from xyntra_ep.fusion.scheduling.compose import is_identity
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import BlockGemmNode, ConcatNode, ConvNode, GemmNode, Leaf, Map, RowNode, Tensor, TNode
from xyntra_ep.tracea.core_ir.expr import walk

ROW_RECOMPUTE = 6  # a row op evaluates its operands once per stage: costlier prologues are materialised
DEEPEST = 32  # links of a chain in one kernel: expressions are walked recursively, and a longer kernel saves nothing more
LARGEST = 128  # elementwise nodes in one kernel


class Groups:
    """``root_of(map)`` is the node whose kernel computes it (itself when it is materialised)."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._root: dict[int, TNode] = {}
        self._depth: dict[int, int] = {}  # links from a node to its root
        self._members: dict[int, int] = {}  # how many nodes a root has taken in
        self._shape: dict[int, Tensor] = {}
        for node in dag.order:
            for t in dag.operands(node):
                self._shape.setdefault(id(t.node), t)
        for t in dag.outputs:
            self._shape.setdefault(id(t.node), t)
        for node in reversed(dag.order):
            if isinstance(node, Map):
                root = self._root[id(node)] = self._choose(node)
                if root is not node:
                    self._depth[id(node)] = 1 + max(self._depth.get(id(r), 0) for r in dag.uses[id(node)])
                    self._members[id(root)] = self._members.get(id(root), 0) + 1
        self._anchor: dict[int, TNode] = {}
        self._anchored: dict[int, TNode] = {}
        for node in dag.order:
            if isinstance(node, Map) and self.is_root(node):
                self._store_narrow(node)
        for node in dag.order:
            if isinstance(node, Map) and self.is_root(node):
                anchor = self._find_anchor(node)
                if anchor is not None:
                    self._anchor[id(node)] = anchor
                    self._anchored[id(anchor)] = node

    def is_root(self, node: TNode) -> bool:
        return self._root.get(id(node), node) is node

    def is_materialised(self, node: TNode) -> bool:
        """Whether the node's own result is stored (neither inlined nor finished by an epilogue)."""
        return self.is_root(node) and id(node) not in self._anchored

    def anchor_of(self, root: TNode) -> TNode | None:
        """The product, Conv or row op that ``root`` finishes."""
        return self._anchor.get(id(root))

    def shape_of(self, node: TNode) -> Tensor:
        """A tensor of the node's (first) result."""
        return self._shape[id(node)]

    def group(self, root: TNode) -> list[Map]:
        """The Maps computed in the kernel of ``root``."""
        return [n for n in self._dag.order if isinstance(n, Map) and self._root[id(n)] is root]

    # -- inlining

    def _choose(self, node: Map) -> TNode:
        dag = self._dag
        readers = dag.uses[id(node)]
        if node.keep or dag.is_output(node) or not readers:
            return node
        index_only = not node.inputs
        roots: list[TNode] = []
        for reader in readers:
            if not isinstance(reader, (Map, RowNode, ConcatNode)) or self._depth.get(id(reader), 0) >= DEEPEST:
                return node
            root = self._root.get(id(reader), reader)
            # a Map that is written straight into its place in a concatenation is a kernel of its own
            roots.append(reader if isinstance(root, ConcatNode) and isinstance(reader, Map) else root)
        if any(r is not roots[0] for r in roots) and not (index_only and body_cost(node.body) <= 4):
            return node
        for root in {id(r): r for r in roots}.values():
            if not self._may_join(node, root):
                return node
        return roots[0]

    def _may_join(self, node: Map, root: TNode) -> bool:
        if not node.inputs:
            return body_cost(node.body) <= 8
        if self._members.get(id(root), 0) >= LARGEST:
            return False
        if all(isinstance(self._dag.get(t).node, Leaf) and self._dag.get(t).is_const for t in node.inputs):
            return False  # constant work is done once, at session creation
        mine = self._shape[id(node)]
        if isinstance(root, RowNode):
            whole = Tensor((*root.outer, *root.inner), mine.dtype, root)
            return whole.size == mine.size and body_cost(node.body) <= ROW_RECOMPUTE
        if isinstance(root, ConcatNode):
            return sum(self._dag.get(t).node is node for t in root.parts) == 1
        return self._shape[id(root)].size == mine.size

    # -- products beside the one that a root finishes

    def _store_narrow(self, root: Map) -> None:
        """Give products other than the last one in the group of ``root`` roots of their own, where these are narrower."""
        products: dict[int, TNode] = {}
        for m in self.group(root):
            for t in self._dag.operands(m):
                if isinstance(t.node, (GemmNode, BlockGemmNode, ConvNode)):
                    products[id(t.node)] = t.node
        for node in sorted(products.values(), key=self._dag.position)[:-1]:
            narrow = self._narrowest(node, root)
            if narrow is None:
                continue
            before = dict(self._root)
            self._root[id(narrow)] = narrow
            for inner in reversed(self.group(root)):
                if inner is not root and all(self._root.get(id(r)) is narrow for r in self._dag.uses[id(inner)]):
                    self._root[id(inner)] = narrow
            if self._find_anchor(narrow) is not node:
                self._root = before

    def _narrowest(self, node: TNode, root: Map) -> Map | None:
        """The first of the Maps through which all of ``node`` goes to ``root`` that is narrower than it, and than any before."""
        found: Map | None = None
        width, readers = self._shape[id(node)].dtype.bytes, self._dag.uses[id(node)]
        while len(readers) == 1:
            [reader] = readers
            if not isinstance(reader, Map) or reader is root or self._root[id(reader)] is not root:
                break
            if self._shape[id(reader)].dtype.bytes < width:
                found, width = reader, self._shape[id(reader)].dtype.bytes
            readers = self._dag.uses[id(reader)]
        return found

    # -- epilogues

    def _find_anchor(self, root: Map) -> TNode | None:
        members = self.group(root)
        inside = {id(m) for m in members}
        shape = self._shape[id(root)].shape
        best: TNode | None = None
        for m in members:
            for t in self._dag.operands(m):
                node = t.node
                if (
                    not isinstance(node, (GemmNode, BlockGemmNode, ConvNode, RowNode))
                    or t.shape != shape
                    or id(node) in self._anchored
                ):
                    continue
                if isinstance(node, RowNode) and (len(node.outputs) != 1 or node.outputs[0][1]):
                    continue
                if self._dag.is_output(node) or any(id(r) not in inside for r in self._dag.uses[id(node)]):
                    continue
                if not all(self._reads_in_place(reader, [*members, node]) for reader in members):
                    continue
                if best is None or (not isinstance(node, RowNode), self._dag.position(node)) > (
                    not isinstance(best, RowNode),
                    self._dag.position(best),
                ):
                    best = node
        return best

    def _reads_in_place(self, reader: Map, nodes: list[TNode]) -> bool:
        """Whether every load of one of ``nodes`` in ``reader`` is at the loop position itself."""
        inside = {id(n) for n in nodes}
        for e in walk(reader.body):
            if e.kind == "load":
                t = self._dag.get(reader.inputs[e.attr])
                free = isinstance(t.node, Map) and not t.node.inputs  # index arithmetic only: any position is right
                if id(t.node) in inside and not free and not is_identity(e.args, t.shape):
                    return False
        return True
