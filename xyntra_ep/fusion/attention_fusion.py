"""Attention: softmax(score(q k^T)) v with everything elementwise between the two products as the score expression.

    s = q @ k^T; s = s * scale; s = where(mask, s, -inf) + bias; p = softmax(s); [p = where(isnan(p), 0, p)]; out = p @ v
 -> AttentionNode(q, k, v, score = where(load(mask), acc * scale, -inf) + load(bias))

No mask form is named here: whatever the exporter wrote becomes an expression over (b, h, s, t). Rank-3 products get a unit axis.
"""

from __future__ import annotations

from xyntra_ep.fusion.compose import Composer, axes, is_identity
from xyntra_ep.fusion.dag import Dag
from xyntra_ep.fusion.tensor import AttentionNode, GemmNode, Leaf, Map, RowNode, Tensor, TNode
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

MAX_HEAD = 256  # larger head sizes do not keep their accumulators in registers


def fuse_attention(dag: Dag) -> bool:
    """Replace every product of a softmax by an AttentionNode where it is legal."""
    changed = False
    for node in list(dag.order):
        if isinstance(node, GemmNode):
            result = _match(dag, node)
            if result is not None:
                dag.replace(node, result)
                changed = True
    if changed:
        dag.refresh()
    return changed


def _only_reader(dag: Dag, node: TNode, reader: TNode) -> bool:
    return not dag.is_output(node) and all(r is reader for r in dag.uses.get(id(node), []))


def _probability(dag: Dag, p: Tensor, reader: TNode) -> tuple[RowNode, bool] | None:
    """The softmax behind ``p`` and whether NaN becomes 0 on the way."""
    if isinstance(p.node, Map) and len(p.node.inputs) == 1 and _only_reader(dag, p.node, reader):
        inner = dag.get(p.node.inputs[0])
        x = E.load(0, *axes(p.rank), dtype=p.dtype)
        zeroed = E.call("where", E.call("isnan", x), E.const(0.0), x)
        if p.node.body is zeroed and isinstance(inner.node, RowNode) and inner.node.softmax:
            return (inner.node, True) if _only_reader(dag, inner.node, p.node) else None
        return None
    if isinstance(p.node, RowNode) and p.node.softmax and _only_reader(dag, p.node, reader):
        return p.node, False
    return None


def _match(dag: Dag, product: GemmNode) -> Tensor | None:
    p, v = dag.get(product.a), dag.get(product.b)
    if p.rank not in (3, 4) or isinstance(v.node, Leaf) and v.node.kind == "const":
        return None
    found = _probability(dag, p, product)
    if found is None:
        return None
    softmax, nan_to_zero = found
    scores = dag.get(softmax.inputs[0])
    taken: list[TNode] = [softmax]
    first: list[GemmNode] = []

    def source(t: Tensor, index: list[Expr]) -> Expr | None:
        if t.shape != scores.shape or not is_identity(index, t.shape):
            return None
        if isinstance(t.node, GemmNode) and (not first or first[0] is t.node):
            first[:] = [t.node]
            return E.acc(0)
        if isinstance(t.node, Map) and not t.node.keep:
            taken.append(t.node)
            return composer.inline(t.node, index)
        return None

    composer = Composer(dag, source)
    score = composer.load(scores, axes(scores.rank))
    if not first:
        return None
    inside = {id(n) for n in taken}
    for node in [*taken[1:], first[0]]:
        if dag.is_output(node) or any(id(r) not in inside for r in dag.uses[id(node)]):
            return None
    q, k = dag.get(first[0].a), dag.get(first[0].b)
    head = q.shape[-1]
    if not isinstance(head, int) or head > MAX_HEAD or not isinstance(v.shape[-1], int) or v.shape[-1] > MAX_HEAD:
        return None
    k = k.permute((*range(k.rank - 2), k.rank - 1, k.rank - 2))
    sources = frozenset().union(product.sources, first[0].sources, *(n.sources for n in taken))
    extra = list(composer.operands)
    if p.rank == 3:
        q, k, v = ((t.reshape((1, *t.shape))) for t in (q, k, v))
        score = E.rewrite(score, lambda e: E.axis(e.attr + 1) if e.kind == "axis" else None)
    score = E.rewrite(score, lambda e: _shift_load(e, 3))
    node = AttentionNode(q=q, k=k, v=v, extra=tuple(extra), score=score, nan_to_zero=nan_to_zero, sources=sources)
    batch, heads, rows = q.shape[:3]
    stored = Tensor((batch, rows, heads, v.shape[-1]), DType.F32, node)
    out = stored.permute((0, 2, 1, 3))
    return out.reshape(out.shape[1:]) if p.rank == 3 else out


def _shift_load(e: Expr, by: int) -> Expr | None:
    """Loads of the extra operands count after q, k and v."""
    if e.kind != "load":
        return None
    index = [E.rewrite(i, lambda x: _shift_load(x, by)) for i in e.args]
    return E.load(e.attr + by, *index, dtype=e.dtype)
