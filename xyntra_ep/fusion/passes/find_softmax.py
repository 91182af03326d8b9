"""Softmax that an exporter wrote out, before a product.

    m = ReduceMax(s); e = Exp(s - m); p = e / ReduceSum(e)      also exp(LogSoftmax(s)), exp((s - m) * scale) / ..., e * (1 / sum)
 -> p = softmax(s), which attention is made of

Whether it is one is asked of the algebra (`rules/rows.py`); what stands in which node does not matter. Only what a product reads
is asked about: elsewhere a row op computes the same in one pass anyway (`fuse_rows`).
"""

from __future__ import annotations

from collections.abc import Set

from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.onnx_ops.rows.softmax import softmax
from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.fusion.passes._stages import Stages
from xyntra_ep.fusion.scheduling.compose import Composer, axes, is_identity, tensor_of
from xyntra_ep.fusion.scheduling.dag import Dag, below, through_free_views
from xyntra_ep.fusion.tensor import GemmNode, Map, RowNode, Tensor, TNode, View
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Applied

FARTHEST = 4  # elementwise nodes and views between a product and what may be a softmax: a NaN guard, a cast
DEEPEST = 12  # nodes between its end and its beginning


def find_softmax(dag: Dag, algebra: Algebra) -> list[Applied]:
    """Put a softmax where there is one written out; the rules by which it was found, each with the graph nodes of what it was."""
    applied: list[Applied] = []
    asked: set[int] = set()
    near = below(dag, lambda node: isinstance(node, RowNode) and node.softmax is None)
    for node in list(dag.order):
        for t in _before(dag, node) if isinstance(node, GemmNode) else ():
            if id(t.node) in asked or id(t.node) not in near:
                continue
            asked.add(id(t.node))
            found = _written_out(dag, algebra, t, near)
            if found is not None:
                by, rules = found
                dag.replace(t.node, by)
                applied += [(rule, tuple(sorted(by.node.sources))) for rule in rules]
    if applied:
        dag.refresh()
    return applied


def _before(dag: Dag, product: GemmNode) -> list[Tensor]:
    """Elementwise results near the left side of ``product``."""
    found: list[Tensor] = []
    queue = [(dag.get(product.a), 0)]
    while queue:
        t, distance = queue.pop(0)
        if isinstance(t.node, Map) and not t.node.keep:
            found.append(t)
        if isinstance(t.node, (Map, View)) and distance < FARTHEST:
            queue += [(o, distance + 1) for o in dag.operands(t.node)]
    return found


def _written_out(dag: Dag, algebra: Algebra, t: Tensor, near: Set[int]) -> tuple[Tensor, tuple[str, ...]] | None:
    """The softmax along the last axis that ``t`` is, and by which rules; None where it is none. What is not ``near`` leads to no
    reduction, and is read as it is."""
    if not t.rank or not t.dtype.is_float or not isinstance(t.node, Map):
        return None
    outer, inner = t.shape[:-1], t.shape[-1:]
    stages = Stages()
    taken: list[TNode] = [t.node]

    def source(x: Tensor, index: list[Expr]) -> Expr | None:
        x, position = through_free_views(dag, x, index)
        node = x.node
        if isinstance(node, RowNode) and (node.outer, node.inner) == (outer, inner) and node.softmax is None:
            result, per_row = node.outputs[x.output]
            if is_identity(position, outer if per_row else t.shape) and node.places == list(range(t.rank)):
                taken.append(node)
                return stages.result(node, result, composer)
        if isinstance(node, Map) and not node.keep and len(taken) < DEEPEST and id(node) in near:
            taken.append(node)
            return composer.inline(node, position)
        return None

    composer = Composer(dag, source)
    body = composer.inline(t.node, axes(t.rank))
    found = algebra.softmax_of(stages.found, body, frozenset({t.rank - 1})) if stages.found else None
    if found is None:
        return None
    sources = frozenset[int]().union(*(node.sources for node in taken))
    scores = tensor_of(dag, found.expr, composer.operands, t, sources)
    result = softmax(scores, [t.rank - 1])
    _sign(result, sources)
    return result, found.rules


def _sign(result: Tensor, sources: frozenset[int]) -> None:
    """Note on what was made anew which graph nodes it stands for."""
    node = result.node
    node.sources = sources
    if isinstance(node, View):
        _sign(node.base, sources)


def _run(draft: Draft) -> None:
    draft.rules += find_softmax(draft.dag, draft.algebra)


PASS = Pass(
    name="find_softmax",
    doc="softmax that was written out before a product is one node",
    requires=(Fact.TENSORS, Fact.REPEATS),
    establishes=(Fact.SOFTMAX,),
    run=_run,
)
