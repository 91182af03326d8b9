"""Rows: reductions and the elementwise work around them, merged into one pass per row.

    mean = ReduceMean(x); d = x - mean; v = ReduceMean(d * d); y = d / sqrt(v + eps) * gamma + beta
 -> RowNode(stages = [sum x, sum (x - acc0/n)^2], output = (x - acc0/n) / sqrt(acc1/n + eps) * gamma + beta)

It is one mechanism for every decomposed normalisation (layer, RMS, L2, instance, group) and for softmax written out: an
elementwise result that depends, through elementwise steps only, on reductions over its own trailing axes takes them in as stages,
as long as nobody else needs what disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import combinations

from xyntra_ep.fusion.passes._pass import Fact, Pass
from xyntra_ep.fusion.passes._stages import Stages
from xyntra_ep.fusion.scheduling.compose import Composer, axes, is_identity
from xyntra_ep.fusion.scheduling.dag import Dag, below, through_free_views, unit_reshape
from xyntra_ep.fusion.tensor import GemmNode, Map, Permute, Reshape, RowNode, Tensor, TNode, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr

DEEPEST = 48  # steps from a region's end that are searched: expressions are walked recursively


def fuse_rows(dag: Dag) -> bool:
    """Merge what can be merged; true when something was. Readers come first: a chain is merged where it ends."""
    changed = False
    near = below(dag, lambda node: isinstance(node, RowNode))  # only their regions are worth a look
    for node in reversed(list(dag.order)):
        if isinstance(node, Map) and not node.keep and id(node) in near and id(node) in dag.uses:
            whole = _result_of(dag, node)
            region = _Region(dag, node, whole.shape)
            for order in _orders(whole.shape, region.rows[0]) if region.rows else ():
                merged = _merge(dag, node, whole, region, order)
                if merged is not None:
                    dag.substitute(node, merged)
                    changed = True
                    break
    changed = _store_as_read(dag) or changed
    if changed:
        dag.refresh()
    return changed


def _store_as_read(dag: Dag) -> bool:
    """Let results that are only read row after row (by products, or as outputs of the graph) lie in memory like that."""
    changed = False
    for node in list(dag.order):
        if not isinstance(node, RowNode) or node.order is None or len(node.outputs) != 1 or node.outputs[0][1]:
            continue
        views = [reader for reader in dag.uses[id(node)] if isinstance(reader, View)]
        perms = {v.step.perm for v in views if isinstance(v.step, Permute)}
        if len(perms) != 1 or len(views) != len(dag.uses[id(node)]) or dag.is_output(node):
            continue
        [perm] = perms
        order = tuple(node.order[p] for p in perm)
        as_rows = order == tuple(range(len(order)))
        if as_rows and all(isinstance(r, GemmNode) for v in views for r in dag.uses[id(v)]):
            whole = _result_of(dag, node)
            stored = Tensor(tuple(whole.shape[p] for p in perm), whole.dtype, replace(node, order=order))
            dag.substitute(node, stored.permute([perm.index(i) for i in range(len(perm))]))
            changed = True
    return changed


def _orders(shape: Sequence[Size], row: RowNode) -> list[list[int]]:
    """The ways to read ``shape`` as the rows of ``row``: axis i of it is axis order[i] of (outer, inner)."""
    found: list[list[int]] = []
    if len(shape) != len(row.outer) + len(row.inner):
        return found
    for reduced in reversed(list(combinations(range(len(shape)), len(row.inner)))):
        domain = [*(i for i in range(len(shape)) if i not in reduced), *reduced]
        if tuple(shape[i] for i in domain) == (*row.outer, *row.inner):
            found.append([domain.index(i) for i in range(len(shape))])
    return found


def _result_of(dag: Dag, node: TNode) -> Tensor:
    """The tensor of ``node`` as some reader sees it."""
    seen = (t for reader in dag.uses[id(node)] for t in dag.operands(reader))
    return next(t for t in (*seen, *dag.outputs) if t.node is node)


class _Region:
    """Nodes above ``root`` whose every reader is in the region: elementwise steps, permutations, views that only add or drop axes
    of extent 1, and per-row reductions over one and the same split of ``shape`` into outer and inner axes. ``rows`` are those
    reductions."""

    def __init__(self, dag: Dag, root: Map, shape: Sequence[Size]) -> None:
        self._dag = dag
        self.inside: dict[int, TNode] = {id(root): root}
        self.rows: list[RowNode] = []
        self._leading: dict[int, bool] = {}
        depth: dict[int, int] = {id(root): 0}
        queue: list[tuple[int, int, TNode]] = []
        queued: set[int] = set()

        def push(node: TNode) -> None:
            for t in dag.operands(node):
                if id(t.node) not in queued:
                    queued.add(id(t.node))
                    heappush(queue, (-dag.position(t.node), id(t.node), t.node))

        push(root)
        while queue:  # readers come before what they read
            _, _, node = heappop(queue)
            if dag.is_output(node) or any(id(r) not in self.inside for r in dag.uses[id(node)]):
                continue
            depth[id(node)] = 1 + max(depth[id(r)] for r in dag.uses[id(node)])
            if depth[id(node)] <= DEEPEST and self._fits(node, shape):
                self.inside[id(node)] = node
                if isinstance(node, RowNode):
                    self.rows.append(node)
                push(node)

    def _fits(self, node: TNode, shape: Sequence[Size]) -> bool:
        if isinstance(node, Map):
            return not node.keep
        if isinstance(node, View):
            if not isinstance(node.step, Reshape):
                return isinstance(node.step, Permute)
            base = self._dag.get(node.base).shape
            return unit_reshape(base, node.step.shape, axes(len(node.step.shape))) is not None
        if isinstance(node, RowNode) and len(node.outputs) == 1 and node.outputs[0][1] and node.inner:
            split = (node.outer, node.inner)
            return bool(_orders(shape, node)) and all((r.outer, r.inner) == split for r in self.rows)
        return False

    def leads_to_rows(self, node: TNode) -> bool:
        """Whether a reduction of the region is above ``node``, inside the region; other operands are better read as they are."""
        known = self._leading.get(id(node))
        if known is None:
            known = id(node) in self.inside and (
                isinstance(node, RowNode) or any(self.leads_to_rows(t.node) for t in self._dag.operands(node))
            )
            self._leading[id(node)] = known
        return known


def _merge(dag: Dag, root: Map, whole: Tensor, region: _Region, order: Sequence[int]) -> Tensor | None:
    """The row op that computes ``root`` (its axis i is axis order[i] of a row) and the reductions of its region; None when it
    reads none of them at its own row."""
    outer, inner = region.rows[0].outer, region.rows[0].inner
    stages = Stages()
    taken: list[TNode] = []

    def source(t: Tensor, index: list[Expr]) -> Expr | None:
        base, position = through_free_views(dag, t, index)
        node = base.node
        if not region.leads_to_rows(node):
            return None
        if isinstance(node, RowNode) and is_identity(position, outer):
            return absorb(node)
        return composer.inline(node, position) if isinstance(node, Map) else None

    def absorb(node: RowNode) -> Expr:
        if node not in taken:
            taken.append(node)
        return stages.result(node, node.outputs[0][0], composer)

    composer = Composer(dag, source)
    body = composer.inline(root, [E.axis(i) for i in order])
    if not stages.found:
        return None
    sources = root.sources.union(*(n.sources for n in (*taken, *composer.members)))
    row = RowNode(
        outer=outer,
        inner=inner,
        inputs=tuple(composer.operands),
        stages=tuple(stages.found),
        outputs=((body, False),),
        order=tuple(order),
        sources=sources,
    )
    return Tensor(whole.shape, whole.dtype, row)


PASS = Pass(
    name="fuse_rows",
    doc="reductions and the elementwise work around them are one pass over each row",
    requires=(Fact.TENSORS, Fact.ATTENTION),
    establishes=(Fact.ROWS,),
    run=lambda draft: fuse_rows(draft.dag),
)
