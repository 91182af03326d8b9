"""Attention: softmax(score(q k^T)) v with everything elementwise between the two products as the score expression.

    s = q @ k^T; s = s * scale; s = where(mask, s, -inf) + bias; p = softmax(s); [p = where(isnan(p), 0, p)]; out = p @ v
 -> AttentionNode(q, k, v, score = where(load(mask), acc * scale, -inf) + load(bias))

No mask form is named here: whatever the exporter wrote becomes an expression over (b, h, s, t). What of a mask follows from its
place alone is that in it, also beside a mask that is read (`formulas`). Rank-3 products get a unit axis.
Where only a run tells whether scores are repeated to the size of a mask, q and k are repeated instead (strides of 0 or not).
"""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.scheduling.compose import Composer, axes, is_identity
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.scheduling.formulas import Formulas
from xyntra_ep.fusion.tensor import AttentionNode, Expand, GemmNode, Leaf, Map, Permute, Reshape, RowNode, Tensor, TNode, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import NoSoftmax

LONGEST_GUARD = 4  # elementwise nodes between softmax and product that can be the NaN guard
LONGEST_SCORE = 32  # elementwise nodes between the two products
MAX_HEAD = 256  # larger head sizes do not keep their accumulators in registers


def fuse_attention(dag: Dag, checks: Checks, formulas: Formulas) -> list[Reason]:
    """Replace every product of a softmax by an AttentionNode where it is legal; where it is not, the reasons are returned."""
    changed = False
    refused: list[Reason] = []
    for node in list(dag.order):
        if isinstance(node, GemmNode):
            result = _match(dag, checks, formulas, node)
            if isinstance(result, Tensor):
                dag.replace(node, result)
                changed = True
            elif result is not None:
                refused.append(Reason(kind=Kind.PATTERN, text=result, nodes=tuple(sorted(node.sources))))
    if changed:
        dag.refresh()
    return refused


def _probability(dag: Dag, p: Tensor, reader: TNode) -> tuple[RowNode, NoSoftmax, list[TNode]] | str | None:
    """The softmax behind ``p``, what ``p`` is where there is none, and the elementwise nodes on the way; why it is not that of an
    attention; None where no softmax is near."""
    softmax: list[RowNode] = []

    def source(t: Tensor, index: list[Expr]) -> Expr | None:
        if not is_identity(index, t.shape):
            return None
        if isinstance(t.node, RowNode) and t.node.softmax and t.node.places == list(range(t.rank)):
            softmax[:] = [t.node]
            return E.acc(0)
        near = isinstance(t.node, Map) and not t.node.keep and len(composer.members) < LONGEST_GUARD
        return composer.inline(t.node, index) if near and isinstance(t.node, Map) else None

    composer = Composer(dag, source)
    body = composer.load(p, axes(p.rank))
    x = E.acc(0)
    zeroed = E.call("where", E.call("isnan", x), E.const(0.0), x)
    if not softmax:
        return None
    if body is not x and body is not zeroed:
        return "more is done to its softmax than to put 0 where it is NaN"
    inside = {id(n) for n in (reader, *composer.members)}
    for node in (softmax[0], *composer.members):
        if dag.is_output(node) or any(id(r) not in inside for r in dag.uses[id(node)]):
            return "its softmax is read elsewhere, too"
    assert softmax[0].softmax is not None
    return softmax[0], NoSoftmax.ZERO if body is zeroed else softmax[0].softmax, composer.members


def _unscaled(dag: Dag, t: Tensor) -> tuple[Tensor, float, list[TNode]]:
    """(what ``t`` is a constant multiple of, the factor, the nodes that multiply): a factor of q or k is one of the score.

    PyTorch's exporter multiplies both q and k by the square root of the scale.
    """
    t = dag.get(t)
    if isinstance(t.node, View):
        base, factor, nodes = _unscaled(dag, t.node.base)
        if not nodes:
            return t, 1.0, []
        match t.node.step:
            case Permute(perm=perm):
                return base.permute(perm), factor, nodes
            case Reshape(shape=shape):
                return base.reshape(shape), factor, nodes
            case step:
                return Tensor(t.shape, t.dtype, View(base=base, step=step)), factor, nodes
    if not isinstance(t.node, Map) or t.node.body.kind != "call" or t.node.body.attr not in ("mul", "div"):
        return t, 1.0, []
    a, b = t.node.body.args
    if a.kind == "const" and t.node.body.attr == "mul":
        a, b = b, a
    if a.kind != "load" or b.kind != "const" or not is_identity(a.args, t.shape):
        return t, 1.0, []
    base = dag.get(t.node.inputs[a.attr])
    if base.shape != t.shape or base.dtype is not t.dtype:
        return t, 1.0, []
    factor = b.attr if t.node.body.attr == "mul" else 1 / b.attr if b.attr else 0.0
    inner, more, nodes = _unscaled(dag, base)
    return (inner, factor * more, [t.node, *nodes]) if factor else (t, 1.0, [])


def _steps(dag: Dag, checks: Checks, t: Tensor, whole: Sequence[Size]) -> list[Tensor]:
    """What lies before ``t`` on the way from a product to scores of shape ``whole``, element by element at its own place.

    Before scores are repeated where a run finds extents of 1 there may be steps of one operand only: what else they read would
    have to be repeated too. What is known to be repeated is not worth computing so often.
    """
    node = t.node
    if isinstance(node, Map):
        if t.shape == whole:
            return [o for o in dag.operands(node) if o.shape == whole]
        rest = E.rewrite(node.body, lambda e: E.load(0, dtype=e.dtype) if e.kind == "load" else None)
        alone = len(node.inputs) == 1 and all(e.kind != "axis" for e in E.walk(rest))
        return [o for o in dag.operands(node) if alone and o.rank == t.rank and all(map(checks.same, o.shape, t.shape))]
    repeats = isinstance(node, View) and isinstance(node.step, Expand) and 0 not in node.step.factors
    return dag.operands(node) if repeats and t.shape == whole else []


def _between(dag: Dag, checks: Checks, scores: Tensor) -> set[int]:
    """The nodes that lie between a product and ``scores``. A mask or a bias of the same shape is none of them: other layers read
    it too, and it is better read than computed again."""
    region: dict[int, TNode] = {}
    queue = [scores]
    while queue and len(region) < 2 * LONGEST_SCORE:
        t = queue.pop(0)
        region[id(t.node)] = t.node
        queue += [o for o in _steps(dag, checks, t, scores.shape) if id(o.node) not in region]
    found: set[int] = set()
    for node in dag.order:
        if id(node) in region and (isinstance(node, GemmNode) or any(id(t.node) in found for t in dag.operands(node))):
            found.add(id(node))
    return found


def _match(dag: Dag, checks: Checks, formulas: Formulas, product: GemmNode) -> Tensor | str | None:
    """The attention that ends in ``product``; why it is none although a softmax feeds it; None where no softmax does."""
    p, v = dag.get(product.a), dag.get(product.b)
    if p.rank not in (3, 4) or (isinstance(v.node, Leaf) and v.node.kind == "const"):
        return None
    found = _probability(dag, p, product)
    if found is None or isinstance(found, str):
        return found
    softmax, no_softmax, zeroing = found
    scores = dag.get(softmax.inputs[0])
    taken: list[TNode] = [softmax]
    first: list[GemmNode] = []
    factors: list[tuple[Tensor, float, list[TNode]]] = []

    def source(t: Tensor, index: list[Expr]) -> Expr | None:
        formula = formulas.at(t, index)
        if formula is not None:
            return formula
        if (t.shape != scores.shape and id(t.node) not in between) or not is_identity(index, t.shape):
            return read(t, index)
        if isinstance(t.node, View) and id(t.node) in between:
            taken.append(t.node)
            return composer.load(t.node.base, index)
        if isinstance(t.node, View) and isinstance(t.node.step, Expand) and all(f in (0, 1) for f in t.node.step.factors):
            # a mask that is known to be repeated is read where it lies, as one that never was spread over the scores
            place = zip(t.node.step.factors, index, strict=True)
            return composer.load(t.node.base, [E.const(0) if factor == 0 else i for factor, i in place])
        if isinstance(t.node, GemmNode) and (not first or first[0] is t.node):
            first[:] = [t.node]
            factors[:] = [_unscaled(dag, x) for x in (t.node.a, t.node.b)]
            return E.call("mul", E.acc(0), E.const(factors[0][1] * factors[1][1]))
        if (
            isinstance(t.node, Map)
            and not t.node.keep
            and len(taken) < LONGEST_SCORE
            and (id(t.node) in between or read_inside(t.node))
        ):
            taken.append(t.node)
            return composer.inline(t.node, index)
        return read(t, index)

    def read(t: Tensor, index: list[Expr]) -> Expr | None:
        """A mask that is read, beyond its edge without a look at it."""
        edge = formulas.edge(t, index)
        if edge is None:
            return None
        value = composer.read(t, index)
        if value.dtype is not DType.BOOL:
            return E.call("where", edge.within, value, edge.beyond)
        return E.call("or", E.call("not", edge.within), value) if edge.beyond.attr else E.call("and", edge.within, value)

    def read_inside(node: TNode) -> bool:
        return not dag.is_output(node) and all(any(r is n for n in taken) for r in dag.uses.get(id(node), ()))

    between = _between(dag, checks, scores)
    composer = Composer(dag, source)
    score = composer.load(scores, axes(scores.rank))
    if not first:
        return "what its softmax reads is not made of one product"
    inside = {id(n) for n in taken}
    for node in [*taken[1:], first[0]]:
        if dag.is_output(node) or any(id(r) not in inside for r in dag.uses[id(node)]):
            return "its scores are read elsewhere, too"
    (q, _, q_nodes), (k, _, k_nodes) = factors
    head = q.shape[-1]
    for size in (head, v.shape[-1]):
        if not isinstance(size, int) or size > MAX_HEAD:
            return f"its heads have {size} elements, more than {MAX_HEAD} or known in a run only"
    q = checks.fit(q, (*scores.shape[:-1], head))
    k = checks.fit(k.permute((*range(k.rank - 2), k.rank - 1, k.rank - 2)), (*scores.shape[:-2], scores.shape[-1], head))
    sources = frozenset().union(product.sources, first[0].sources, *(n.sources for n in (*taken, *zeroing, *q_nodes, *k_nodes)))
    extra = list(composer.operands)
    if p.rank == 3:
        q, k, v = ((t.reshape((1, *t.shape))) for t in (q, k, v))
        score = E.rewrite(score, lambda e: E.axis(e.attr + 1) if e.kind == "axis" else None)
    score = E.rewrite(score, lambda e: _shift_load(e, 3))
    node = AttentionNode(
        q=q,
        k=k,
        v=v,
        extra=tuple(extra),
        score=score,
        no_softmax=no_softmax,
        by_head=_is_output(dag, product),
        sources=sources,
    )
    batch, heads, rows = q.shape[:3]
    if node.by_head:
        out = Tensor((batch, heads, rows, v.shape[-1]), _read_as(dag, product), node)
    else:
        out = Tensor((batch, rows, heads, v.shape[-1]), _read_as(dag, product), node).permute((0, 2, 1, 3))
    return out.reshape(out.shape[1:]) if p.rank == 3 else out


def _is_output(dag: Dag, node: TNode) -> bool:
    """Whether the graph has the result of ``node`` as an output, its axes in this order."""
    reshapes = (r for r in dag.uses[id(node)] if isinstance(r, View) and isinstance(r.step, Reshape))
    return dag.is_output(node) or any(_is_output(dag, r) for r in reshapes)


def _read_as(dag: Dag, node: TNode) -> DType:
    """The type that whoever reads ``node`` takes it for; f32, in which it is computed, where they differ."""
    reads = [t for reader in dag.uses[id(node)] for t in dag.operands(reader)]
    found = {t.dtype for t in (*reads, *dag.outputs) if t.node is node}
    return found.pop() if len(found) == 1 else DType.F32


def _shift_load(e: Expr, by: int) -> Expr | None:
    """Loads of the extra operands count after q, k and v."""
    if e.kind != "load":
        return None
    index = [E.rewrite(i, lambda x: _shift_load(x, by)) for i in e.args]
    return E.load(e.attr + by, *index, dtype=e.dtype)


def _run(draft: Draft) -> None:
    draft.refused += fuse_attention(draft.dag, draft.context.checks, Formulas(draft.dag, draft.context))


PASS = Pass(
    name="fuse_attention",
    doc="two products with a softmax between them are attention",
    requires=(Fact.TENSORS, Fact.REPEATS, Fact.PROJECTIONS, Fact.SOFTMAX),
    establishes=(Fact.ATTENTION,),
    run=_run,
)
