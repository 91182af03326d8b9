"""Products with a matrix of little rank, which is kept as two factors: the adapters of fine-tuned models (LoRA) above all.

    y = x W + bias + s * ((x A) B)   ->   y = x (W + s * A B) + bias              weights that the model has
                                     ->   y = (x W + (s * x A) B) + bias          A or B is given when it runs, or fp32_strict
    y = (x A) B                      ->   y = x (A B)                             where that is less work

Constants are multiplied once, when the session is created; a run then does what it would do had the exporter merged them. Of the
result this is a reassociation: each term x[k] A[k, j] B[j, n] is rounded as often as before or less, so the bound of the error is
no larger (docs/low-rank.md). An infinity in x spreads otherwise, which is why fp32_strict keeps the factors.

Factors that stay are a `LowRankNode`: the second product goes on with the sums of the first, where kernels can do that.

A sum is looked through as far as it is linear: the order of its terms, scales before, between or behind the products and reshapes
between rows say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.passes._pass import Draft, Fact, Pass
from xyntra_ep.fusion.scheduling.compose import axes, is_identity, tensor_of
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.scheduling.weights import constant_matrix, matrix
from xyntra_ep.fusion.tensor import GemmNode, LowRankNode, Map, Reshape, Tensor, TNode, View
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

MOST_SUMS = 64  # one in another: adapters are a few terms, and what is hostile is longer
LARGEST_RANK = 256  # of a second product that goes on with the sums of the first
FOLDED = "its low-rank factors are folded into the weights"
CONTINUED = "its low-rank product goes on with the sums of the other"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chain:
    """``scale`` * (``x`` ``left``) ``right``, by the products ``inner`` and ``outer`` with ``middle`` between them. ``before`` is
    what the left side of ``inner`` has of ``scale`` already."""

    x: Tensor
    left: Tensor  # [K, r]
    right: Tensor  # [r, N]
    scale: float
    before: float
    middle: Tensor  # [..., M, r]
    inner: GemmNode
    outer: GemmNode

    @property
    def sources(self) -> frozenset[int]:
        return self.inner.sources | self.middle.node.sources | self.outer.sources

    @property
    def rank(self) -> Size:
        return self.right.shape[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A product, times ``factor``, that a sum has. ``path``: through which loads of which Maps, the outermost first."""

    product: GemmNode
    factor: float
    path: tuple[tuple[Map, Expr], ...]


def merge_low_rank(dag: Dag, context: Context, *, folds: bool, continues: bool) -> bool:
    """Merge products of low-rank factors with what they are added to; true when there was one. ``folds``: constants may be
    multiplied with each other; ``continues``: kernels go on with the sums of another product."""
    merged = False
    while True:
        chains = [chain for node in dag.order if isinstance(node, GemmNode) for chain in _chain(dag, node)]
        touched: set[int] = set()
        for chain in chains:
            _merge(dag, context, chain, touched, folds, continues)
        for chain in chains if folds and not touched else ():
            _fold_alone(dag, context, chain, touched)
        if not touched:
            return merged
        dag.refresh()
        merged = True


def _merge(dag: Dag, context: Context, chain: _Chain, touched: set[int], folds: bool, continues: bool) -> None:
    """One of them, if nothing that it has to do with is ``touched`` yet."""
    folds = folds and all(constant_matrix(dag, t) is not None for t in (chain.left, chain.right))
    for root in _sums_of(dag, chain.outer):
        if id(root) in touched:
            return
        terms = list(_terms(dag, root, _like(dag, root).shape))
        mine = [term for term in terms if term.product is chain.outer]
        if len(mine) != 1:
            return
        for base in terms:
            share = base.factor * _share_of(dag, base.product, chain)
            if not share:
                continue
            factor = mine[0].factor * chain.scale / share
            nodes = {id(node) for term in (base, mine[0]) for node in (term.product, *(n for n, _ in term.path))}
            if nodes & touched:
                return
            if folds:
                by, text = _folded(dag, base.product, factor, chain), FOLDED
            elif continues and _may_go_on(dag, base.product, chain):
                by, text = _continued(dag, base.product, mine[0].factor / base.factor, chain), CONTINUED
            else:
                return
            touched |= nodes
            dag.replace(base.product, by)
            _leave_out(dag, mine[0])
            _remark(context, text, base.product)
            return


def _fold_alone(dag: Dag, context: Context, chain: _Chain, touched: set[int]) -> None:
    """Make one product of a chain of constants that is added to none, where that is less work; of three in a row of two."""
    known = all(constant_matrix(dag, t) is not None for t in (chain.left, chain.right))
    if not known or not chain.before or id(chain.inner) in touched or not _is_less_work(chain):
        return
    touched.add(id(chain.outer))
    sources = chain.inner.sources | chain.outer.sources
    a, like = dag.get(chain.inner.a), dag.get(chain.outer.a)
    a = a if a.shape[:-1] == like.shape[:-1] else a.reshape((*like.shape[:-1], a.shape[-1]))
    whole = Tensor(_shape(dag, chain.outer), DType.F32, _times(a, _product(chain, 1.0), sources))
    dag.replace(chain.outer, _scaled(whole, chain.scale / chain.before, sources))
    _remark(context, FOLDED, chain.outer)


# -- what is looked for


def _chain(dag: Dag, outer: GemmNode) -> Iterator[_Chain]:
    """The chain that ends with ``outer``, if one does."""
    right = matrix(dag, outer.b)
    middle = dag.get(outer.a)
    between, inner = _behind_scales(dag, middle)
    if right is None or isinstance(outer, LowRankNode) or type(inner.node) is not GemmNode or not right.dtype.is_float:
        return
    left = matrix(dag, inner.node.b)
    if left is None or not left.dtype.is_float or not _all_known(left, right):
        return
    if constant_matrix(dag, inner.node.a) is not None:
        return  # a product of weights
    before, x = _behind_scales(dag, dag.get(inner.node.a))
    yield _Chain(x=x, left=left, right=right, scale=before * between, before=before, middle=middle, inner=inner.node, outer=outer)


def _all_known(*matrices: Tensor) -> bool:
    return all(isinstance(extent, int) for t in matrices for extent in t.shape)


def _behind_scales(dag: Dag, t: Tensor) -> tuple[float, Tensor]:
    """(factor, what ``t`` is so many times): through reshapes that keep rows, and multiplications by a number."""
    factor = 1.0
    while True:
        t = _behind_reshapes(dag, t)
        if not isinstance(t.node, Map) or t.node.keep:
            return factor, t
        found = list(_linear(t.node.body, 1.0))
        if len(found) != 1 or not _reads_all(dag, t.node, found[0][1], t.shape):
            return factor, t
        factor *= found[0][0]
        t = dag.get(t.node.inputs[found[0][1].attr])


def _behind_reshapes(dag: Dag, t: Tensor) -> Tensor:
    """What ``t`` shows with the same rows, one after the other."""
    while isinstance(t.node, View) and isinstance(t.node.step, Reshape):
        base = dag.get(t.node.base)
        if not t.rank or not base.rank or base.shape[-1] != t.shape[-1]:
            break
        t = base
    return t


def _reads_all(dag: Dag, node: Map, load: Expr, shape: Sequence[Size]) -> bool:
    """Whether ``load`` reads each element at its own place."""
    return load.kind == "load" and dag.get(node.inputs[load.attr]).shape == tuple(shape) and is_identity(load.args, shape)


def _linear(e: Expr, factor: float) -> Iterator[tuple[float, Expr]]:
    """The terms of a sum, each with the number that it is multiplied by."""
    if e.kind == "call" and e.attr in ("add", "sub"):
        yield from _linear(e.args[0], factor)
        yield from _linear(e.args[1], factor if e.attr == "add" else -factor)
    elif e.kind == "call" and e.attr == "mul" and any(a.kind == "const" for a in e.args):
        number, of = e.args if e.args[0].kind == "const" else e.args[::-1]
        yield from _linear(of, factor * float(number.attr))
    elif e.kind == "call" and e.attr == "div" and e.args[1].kind == "const" and e.args[1].attr:
        yield from _linear(e.args[0], factor / float(e.args[1].attr))
    else:
        yield factor, e


def _sums_of(dag: Dag, product: GemmNode) -> Iterator[Map]:
    """Elementwise results that have ``product`` as a term, perhaps: those that alone read it, the nearest first."""
    node: TNode = product
    for _ in range(MOST_SUMS):
        if dag.is_output(node):
            return
        readers = dag.uses[id(node)]
        if len(readers) != 1:
            return
        node = readers[0]
        if isinstance(node, Map) and not node.keep:
            yield node
        elif not (isinstance(node, View) and isinstance(node.step, Reshape)):
            return


def _terms(
    dag: Dag, root: Map, shape: tuple[Size, ...], factor: float = 1.0, path: tuple[tuple[Map, Expr], ...] = ()
) -> Iterator[_Term]:
    """The products that ``root``, of ``shape``, is a sum of, among other terms: those that nobody else reads, with all on the
    way."""
    if len(path) == MOST_SUMS:
        return
    found = list(_linear(root.body, factor))
    for number, load in found:
        if not _reads_all(dag, root, load, shape) or sum(other is load for _, other in found) > 1:
            continue
        t = dag.get(root.inputs[load.attr])
        base = _behind_reshapes(dag, t)
        if not _is_alone(dag, t.node, base.node):
            continue
        way = (*path, (root, load))
        if isinstance(base.node, GemmNode):
            yield _Term(product=base.node, factor=number, path=way)
        elif isinstance(base.node, Map) and not base.node.keep:
            yield from _terms(dag, base.node, base.shape, number, way)


def _is_alone(dag: Dag, node: TNode, last: TNode) -> bool:
    """Whether one reader reads ``node``, and each that it is a view of up to ``last``."""
    while len(dag.uses.get(id(node), ())) == 1 and not dag.is_output(node):  # what was made since has no readers yet
        if node is last:
            return True
        assert isinstance(node, View)
        node = dag.get(node.base).node
    return False


def _share_of(dag: Dag, product: GemmNode, chain: _Chain) -> float:
    """Of what ``chain`` begins with ``product`` multiplies so many times by weights, row by row; 0 where it does not."""
    if type(product) is not GemmNode or product is chain.outer or constant_matrix(dag, product.b) is None:
        return 0.0
    share, x = _behind_scales(dag, dag.get(product.a))
    same = x.node is chain.x.node and x.output == chain.x.output
    return share if same and product.b.shape[-1] == chain.right.shape[1] else 0.0


def _may_go_on(dag: Dag, base: GemmNode, chain: _Chain) -> bool:
    """Whether a kernel goes on with the sums of ``base``."""
    narrow = isinstance(chain.rank, int) and chain.rank <= LARGEST_RANK
    return narrow and all(t.dtype is DType.F32 for t in (dag.get(base.a), dag.get(base.b), chain.left, chain.right))


def _is_less_work(chain: _Chain) -> bool:
    k, r, n = int(chain.left.shape[0]), int(chain.left.shape[1]), int(chain.right.shape[1])  # type: ignore[arg-type]  # known
    return k * n <= r * (k + n)


# -- what is made of it


def _folded(dag: Dag, base: GemmNode, factor: float, chain: _Chain) -> Tensor:
    """``base`` with W + factor * A B."""
    weights = constant_matrix(dag, base.b)
    assert weights is not None
    added = _product(chain, factor)
    here = axes(2)
    body = E.call("add", E.load(0, *here, dtype=weights.dtype), E.load(1, *here, dtype=added.dtype))
    whole = Tensor(weights.shape, DType.F32, Map(inputs=(weights, added), body=body, sources=chain.sources))
    return Tensor(_shape(dag, base), DType.F32, _times(dag.get(base.a), whole, base.sources | chain.sources))


def _continued(dag: Dag, base: GemmNode, factor: float, chain: _Chain) -> Tensor:
    """``base`` that goes on with the product of factor * middle and B."""
    a, middle = dag.get(base.a), chain.middle
    if middle.shape[:-1] != a.shape[:-1]:
        middle = middle.reshape((*a.shape[:-1], middle.shape[-1]))
    middle = _scaled(middle, factor, chain.sources)
    right = chain.right.expand((*a.shape[:-2], *chain.right.shape))
    node = LowRankNode(a=a, b=dag.get(base.b), left=middle, right=right, sources=base.sources | chain.outer.sources)
    return Tensor(_shape(dag, base), DType.F32, node)


def _product(chain: _Chain, scale: float) -> Tensor:
    """``scale`` * A B."""
    shape = (chain.left.shape[0], chain.right.shape[1])
    node = GemmNode(a=chain.left, b=chain.right, sources=chain.sources)
    return _scaled(Tensor(shape, DType.F32, node), scale, chain.sources)


def _times(a: Tensor, weights: Tensor, sources: frozenset[int]) -> GemmNode:
    return GemmNode(a=a, b=weights.expand((*a.shape[:-2], *weights.shape)), sources=sources)


def _scaled(t: Tensor, factor: float, sources: frozenset[int]) -> Tensor:
    if factor == 1.0:
        return t
    body = E.call("mul", E.load(0, *axes(t.rank), dtype=t.dtype), E.const(factor))
    return Tensor(t.shape, t.dtype, Map(inputs=(t,), body=body, sources=sources))


def _shape(dag: Dag, product: GemmNode) -> tuple[Size, ...]:
    return (*dag.get(product.a).shape[:-1], product.b.shape[-1])


def _leave_out(dag: Dag, term: _Term) -> None:
    """Let sums be without ``term``."""
    for node, load in reversed(term.path):
        rest = _without(node.body, load)
        if rest is None:
            continue  # nothing but the term: what reads it is without it
        dag.replace(node, tensor_of(dag, rest, node.inputs, _like(dag, node), node.sources))
        return
    raise AssertionError("a sum has the other product, too")


def _like(dag: Dag, node: Map) -> Tensor:
    """A tensor of the result of ``node``."""
    readers = dag.uses[id(node)]
    found = [t for r in readers for t in dag.operands(r) if t.node is node]
    return found[0] if found else next(t for t in dag.outputs if t.node is node)


def _without(e: Expr, gone: Expr) -> Expr | None:
    """The sum ``e`` without its term ``gone``; None where nothing is left."""
    if e is gone:
        return None
    if e.kind != "call" or e.attr not in ("add", "sub", "mul", "div"):
        return e
    kept = [_without(a, gone) for a in e.args]
    left, right = kept
    if e.attr in ("mul", "div"):
        return None if left is None or right is None else E.call(e.attr, left, right)
    if left is None:
        return right if right is None or e.attr == "add" else E.call("neg", right)
    return left if right is None else E.call(e.attr, left, right)


def _remark(context: Context, text: str, product: GemmNode) -> None:
    context.remarks.append((text, NodeId(min(product.sources))))


def _run(draft: Draft) -> None:
    target = draft.target
    folds = target is None or not target.strict
    continues = target is not None and target.continues_sums
    merge_low_rank(draft.dag, draft.context, folds=folds, continues=continues)


PASS = Pass(
    name="merge_low_rank",
    doc="low-rank products are part of the product that they are added to",
    requires=(Fact.TENSORS, Fact.REPEATS),
    establishes=(Fact.LOW_RANK,),
    run=_run,
)
