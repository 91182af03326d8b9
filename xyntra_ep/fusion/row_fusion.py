"""Rows: reductions and the elementwise work around them, merged into one pass per row.

    mean = ReduceMean(x); d = x - mean; v = ReduceMean(d * d); y = d / sqrt(v + eps) * gamma + beta
 -> RowNode(stages = [sum x, sum (x - acc0/n)^2], output = (x - acc0/n) / sqrt(acc1/n + eps) * gamma + beta)

It is one mechanism for every decomposed normalisation (layer, RMS, L2, instance, group) and for softmax written out: an
elementwise result that depends, through elementwise steps only, on reductions over its own trailing axes takes them in as stages,
as long as nobody else needs what disappears.
"""

from __future__ import annotations

from xyntra_ep.fusion.compose import Composer, axes
from xyntra_ep.fusion.dag import Dag, through_unit_views
from xyntra_ep.fusion.tensor import Leaf, Map, RowNode, Tensor, TNode, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Stage

_ACC = {DType.F32: E.acc, DType.I64: E.acc_int, DType.BOOL: E.acc_bool}


def fuse_rows(dag: Dag) -> bool:
    """Merge what can be merged, in place; true when something was."""
    changed = False
    for node in reversed(list(dag.order)):
        if isinstance(node, Map) and not node.keep and dag.uses.get(id(node)) is not None and _fuse_at(dag, node):
            changed = True
            dag.refresh()
    return changed


def _fuse_at(dag: Dag, root: Map) -> bool:
    shape = _shape_of(dag, root)
    if shape is None or _continues(dag, root, shape.shape):
        return False
    seed = _find_reduction(dag, root, shape)
    if seed is None:
        return False
    refused: set[int] = set()
    for _ in range(8):
        attempt = _Attempt(dag, root, shape, seed, refused)
        if not attempt.stages:
            return False
        leaking = attempt.leaks()
        if not leaking:
            dag.replace(root, attempt.result())
            return True
        refused |= leaking
    return False


def _shape_of(dag: Dag, root: Map) -> Tensor | None:
    """The tensor of ``root`` as some reader sees it."""
    for reader in dag.uses[id(root)]:
        for t in dag.operands(reader):
            if t.node is root:
                return t
    return next((t for t in dag.outputs if t.node is root), None)


def _continues(dag: Dag, root: Map, shape: tuple[object, ...]) -> bool:
    """Whether the elementwise chain goes on in a single reader of the same shape, which is then the better place to fuse."""
    readers = dag.uses[id(root)]
    if dag.is_output(root) or len(readers) != 1 or not isinstance(readers[0], Map):
        return False
    below = _shape_of(dag, readers[0])
    return below is not None and below.shape == shape


def _find_reduction(dag: Dag, root: Map, whole: Tensor) -> RowNode | None:
    """A per-row reduction over trailing axes of ``whole`` somewhere above ``root``, elementwise steps between."""
    stack: list[TNode] = [root]
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, RowNode):
            single = len(node.outputs) == 1 and node.outputs[0][1]
            if single and node.inner and (*node.outer, *node.inner) == whole.shape:
                return node
            continue
        if isinstance(node, (Map, View)):
            stack.extend(t.node for t in dag.operands(node))
    return None


class _Attempt:
    """One try to express ``root`` as a row op with the outer/inner split of ``seed``; ``refused`` nodes are read, not taken in."""

    def __init__(self, dag: Dag, root: Map, whole: Tensor, seed: RowNode, refused: set[int]) -> None:
        self._dag = dag
        self._root = root
        self._whole = whole
        self._seed = seed
        self._refused = refused
        self._taken: dict[int, TNode] = {id(root): root}
        self._rows: dict[int, Expr] = {}
        self.stages: list[Stage] = []
        self._composer = Composer(dag, self._source)
        self._axes = axes(len(whole.shape))
        self._body = self._composer.inline(root, self._axes)

    def _source(self, t: Tensor, index: list[Expr]) -> Expr | None:
        base, position = through_unit_views(self._dag, t, index)
        node = base.node
        if id(node) in self._refused or isinstance(node, Leaf):
            return None
        if isinstance(node, RowNode) and self._matches(node) and position == self._axes[: len(node.outer)]:
            return self._absorb(node)
        if isinstance(node, Map) and not node.keep and self._elementwise(node):
            self._take(t.node, node)
            return self._composer.inline(node, position)
        return None

    def _take(self, *nodes: TNode) -> None:
        for n in nodes:
            self._taken[id(n)] = n
            while isinstance(n, View):  # the views that were followed
                n = self._dag.get(n.base).node
                self._taken[id(n)] = n

    def _elementwise(self, node: Map) -> bool:
        """Whether taking ``node`` in leads to a reduction of this row; other operands are better read as they are."""
        return _find_reduction(self._dag, node, self._whole) is not None

    def _matches(self, node: RowNode) -> bool:
        same = node.outer == self._seed.outer and node.inner == self._seed.inner
        return same and len(node.outputs) == 1 and node.outputs[0][1]

    def _absorb(self, node: RowNode) -> Expr:
        """The result of a reduction of this row, its stages appended (those it depends on come first by recursion)."""
        known = self._rows.get(id(node))
        if known is None:
            self._taken[id(node)] = node
            numbers: dict[int, int] = {}
            for j, stage in enumerate(node.stages):
                body = self._composer.body(_renumber(stage.body, numbers), node.inputs, self._axes)
                numbers[j] = len(self.stages)
                self.stages.append(Stage(kind=stage.kind, body=body, dtype=stage.dtype))
            known = self._composer.body(_renumber(node.outputs[0][0], numbers), node.inputs, self._axes)
            self._rows[id(node)] = known
        return known

    def leaks(self) -> set[int]:
        """Taken nodes that somebody outside still reads (they must stay)."""
        inside = set(self._taken)
        bad = {
            i
            for i, node in self._taken.items()
            if node is not self._root and (self._dag.is_output(node) or any(id(r) not in inside for r in self._dag.uses[i]))
        }
        return {i for i in bad if not isinstance(self._taken[i], View)} or bad

    def result(self) -> Tensor:
        sources = frozenset().union(*(n.sources for n in self._taken.values()))
        row = RowNode(
            outer=self._seed.outer,
            inner=self._seed.inner,
            inputs=tuple(self._composer.operands),
            stages=tuple(self.stages),
            outputs=((self._body, False),),
            sources=sources,
        )
        return Tensor(self._whole.shape, self._whole.dtype, row)


def _renumber(body: Expr, numbers: dict[int, int]) -> Expr:
    """Stage results of one node as stages of the merged one."""
    return E.rewrite(body, lambda e: _ACC[e.dtype](numbers[e.attr]) if e.kind == "acc" else None)
