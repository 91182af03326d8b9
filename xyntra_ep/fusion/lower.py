"""From lazy tensors to core-IR ops: a group of nodes becomes an op with its epilogue, in an order that can run.

    Dag -> Groups -> for each node whose result is stored: its op, over operands (`operands.py`)

Which nodes share an op is what `groups.py` decided; rules for expressions (`rules/`) are applied to each body.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xyntra_ep.fusion.egraph import Algebra
from xyntra_ep.fusion.operands import Operands
from xyntra_ep.fusion.scheduling.compose import Composer, axes, is_identity
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.scheduling.groups import Groups
from xyntra_ep.fusion.scheduling.long_rows import count_the_longer
from xyntra_ep.fusion.scheduling.pieces import by_extent, pieces
from xyntra_ep.fusion.scheduling.strides import apply_view, part_of
from xyntra_ep.fusion.scheduling.weights import filled
from xyntra_ep.fusion.tensor import (
    AttentionNode,
    BlockGemmNode,
    ConcatNode,
    ConvNode,
    GemmNode,
    Leaf,
    LowRankNode,
    Map,
    Permute,
    RecurrentNode,
    RowNode,
    ScanNode,
    Tensor,
    TNode,
    TopKNode,
    View,
)
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, assuming
from xyntra_ep.tracea.core_ir.dtypes import BYTES, DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    BlockGemm,
    Conv,
    CoreOp,
    Gemm,
    LowRankGemm,
    Operand,
    Pointwise,
    Product,
    Program,
    Recurrence,
    RowOutput,
    RowReduce,
    Scan,
    TopK,
)


def lower(dag: Dag, program: Program, inputs: Sequence[str], outputs: Sequence[str], algebra: Algebra) -> list[int]:
    """Fill ``program``, whose symbols are bound, with the values and ops of ``dag``, their expressions simplified by ``algebra``.
    ``inputs`` and ``outputs`` are graph names in order; the dag's further outputs are no outputs of the graph, and the numbers of
    their values are returned."""
    groups = Groups(dag)
    operands = Operands(dag, groups, program, {name: i for i, name in enumerate(inputs)})
    lowering = _Lowering(dag, groups, operands, program, algebra)
    copies = operands.place_outputs(outputs)
    for node in dag.order:
        if not isinstance(node, (Leaf, View)) and groups.is_materialised(node):
            lowering.emit(node)
    for operand, tensor in copies:
        operands.copy(tensor, operand)
    return [operands.destination(t).value for t in dag.outputs[len(outputs) :]]


class _Lowering:
    """A method for each kind of node."""

    def __init__(self, dag: Dag, groups: Groups, operands: Operands, program: Program, algebra: Algebra) -> None:
        self._algebra = algebra
        self._rules: dict[str, None] = {}  # that were applied to the op being made
        self._dag = dag
        self._groups = groups
        self._operands = operands
        self._program = program

    def emit(self, node: TNode) -> None:
        """Append the op that computes ``node``, and copies that it needs."""
        self._operands.begin(node)
        match node:
            case Map():
                anchor = self._groups.anchor_of(node)
                t = self._groups.shape_of(node)
                if isinstance(anchor, GemmNode):
                    self._gemm(anchor, node, t)
                elif isinstance(anchor, BlockGemmNode):
                    self._block_gemm(anchor, node, t)
                elif isinstance(anchor, ConvNode):
                    self._conv(anchor, node, t)
                elif isinstance(anchor, RowNode):
                    self._row(anchor, node, t)
                else:
                    self._map(node, t, self._operands.destination(t))
            case GemmNode():
                self._gemm(node, None, self._groups.shape_of(node))
            case BlockGemmNode():
                self._block_gemm(node, None, self._groups.shape_of(node))
            case ConvNode():
                self._conv(node, None, self._groups.shape_of(node))
            case RowNode():
                self._row(node, None, None)
            case AttentionNode():
                self._attention(node)
            case ConcatNode():
                self._concat(node)
            case ScanNode():
                self._scan(node)
            case TopKNode():
                self._top_k(node)
            case RecurrentNode():
                self._recurrence(node)
            case _:
                raise AssertionError(f"no emission for {type(node).__name__}")

    # -- expressions

    def _composer(self, anchor: TNode | None = None, first: Sequence[Tensor] = ()) -> Composer:
        """Inlines what the groups say; loads of ``anchor`` become its accumulator or its own expression."""

        def source(t: Tensor, index: list[Expr]) -> Expr | None:
            if anchor is not None and t.node is anchor:
                assert is_identity(index, t.shape)
                return self._anchor_value(anchor, composer, index, t.dtype)
            if isinstance(t.node, Map) and not self._groups.is_root(t.node):
                return composer.inline(t.node, index)
            return None

        composer = Composer(self._dag, source, first)
        return composer

    def _anchor_value(self, anchor: TNode, composer: Composer, index: Sequence[Expr], dtype: DType) -> Expr:
        if isinstance(anchor, RowNode):
            return composer.body(anchor.outputs[0][0], anchor.inputs, [E.axis(place) for place in anchor.places])
        return _sum_of(dtype)

    def _finish(self, root: Map | None, composer: Composer, t: Tensor) -> Expr:
        return _sum_of(t.dtype) if root is None else self._simplify(composer.inline(root, axes(t.rank)))

    def _simplify(self, e: Expr) -> Expr:
        found = self._algebra.simplify(e)
        self._rules |= dict.fromkeys(found.rules)
        return found.expr

    def _append(self, op: CoreOp, sources: frozenset[int]) -> None:
        self._operands.append(op, sources)
        self._program.rules += [(rule, tuple(sorted(sources))) for rule in self._rules]
        self._rules = {}

    def _sources(self, composer: Composer, *nodes: TNode | None) -> frozenset[int]:
        found: frozenset[int] = frozenset()
        for n in (*composer.members, *nodes):
            if n is not None:
                found |= n.sources
        return found

    # -- ops

    def _map(self, node: Map, t: Tensor, to: Operand) -> None:
        composer = self._composer()
        body = self._simplify(composer.inline(node, axes(t.rank)))
        inputs = tuple(self._operands.operand(o) for o in composer.operands)
        to = replace(to, shape=t.shape)
        for alike in by_extent(pieces(body, t.shape)):
            places = tuple(part_of(to, p.axis, p.start, p.extent) if t.rank else to for p in alike)
            bodies = tuple(p.body for p in alike)
            op = Pointwise(domain=places[0].shape, inputs=inputs, bodies=bodies, outputs=places, label="pointwise")
            self._append(op, self._sources(composer))

    def _gemm(self, node: GemmNode, root: Map | None, t: Tensor) -> None:
        factors = [node.a, node.b, *([node.left, node.right] if isinstance(node, LowRankNode) else [])]
        composer = self._composer(node, factors)
        epilogue = self._finish(root, composer, t)
        inputs = [self._operands.operand(o) for o in composer.operands]
        for i in range(0, len(factors), 2):
            a, b = inputs[i : i + 2]
            inputs[i] = replace(a, shape=(*t.shape[:-1], a.shape[-1]))
            inputs[i + 1] = replace(b, shape=(*t.shape[:-2], a.shape[-1], t.shape[-1]))
        output = replace(self._operands.destination(t), shape=t.shape)
        kind, label = (LowRankGemm, "low-rank gemm") if isinstance(node, LowRankNode) else (Gemm, "gemm")
        zeros = filled(self._dag, node.b)
        op = kind(
            inputs=tuple(inputs), epilogue=epilogue, output=output, product=_product_of(inputs[0]), label=label, filled=zeros
        )
        with assuming(self._program.assumed):
            op = count_the_longer(op)
        self._append(op, self._sources(composer, node))

    def _block_gemm(self, node: BlockGemmNode, root: Map | None, t: Tensor) -> None:
        composer = self._composer(node, [node.a, node.q, node.scales, *node.zeros])
        epilogue = self._finish(root, composer, t)
        a, *rest = (self._operands.operand(o) for o in composer.operands)
        op = BlockGemm(
            inputs=(replace(a, shape=(*t.shape[:-1], a.shape[-1])), *rest),
            bits=node.bits,
            block=node.block,
            has_zeros=bool(node.zeros),
            allows=node.allows,
            epilogue=epilogue,
            output=replace(self._operands.destination(t), shape=t.shape),
            label="block gemm",
        )
        self._append(op, self._sources(composer, node))

    def _conv(self, node: ConvNode, root: Map | None, t: Tensor) -> None:
        """The tensor is stored [N, spatial..., M]; the op is stated over [N, M, spatial...]."""
        composer = self._composer(node, [node.x, node.w])
        epilogue = self._finish(root, composer, t)
        to_logical = (0, *range(2, t.rank), 1)  # stored axis i is logical axis to_logical[i]
        epilogue = E.rewrite(epilogue, lambda e: E.axis(to_logical[e.attr]) if e.kind == "axis" else None)
        stored = self._operands.destination(t)
        order = (0, t.rank - 1, *range(1, t.rank - 1))
        output = Operand(
            value=stored.value,
            dtype=stored.dtype,
            shape=tuple(stored.shape[i] for i in order),
            strides=tuple(stored.strides[i] for i in order),
            offset=stored.offset,
        )
        x, *rest = (self._operands.operand(o) for o in composer.operands)
        x = replace(x, shape=(t.shape[0], *x.shape[1:]))  # the batch as what comes after it calls it
        op = Conv(
            inputs=(x, *rest),
            product=_product_of(x),
            strides=node.strides,
            dilations=node.dilations,
            pads=node.pads,
            group=node.group,
            epilogue=epilogue,
            output=output,
            label="conv",
        )
        self._append(op, self._sources(composer, node))

    def _row(self, node: RowNode, root: Map | None, t: Tensor | None) -> None:
        composer = self._composer(node if root is not None else None)
        everywhere = axes(len(node.outer) + len(node.inner))
        bodies = [self._simplify(composer.body(s.body, node.inputs, everywhere)) for s in node.stages]
        stages = tuple(replace(s, body=body) for s, body in zip(node.stages, bodies, strict=True))
        outputs: list[RowOutput] = []
        if root is not None:
            assert t is not None
            body = self._finish(root, composer, t)  # over the axes as they are stored
            order = node.order or range(t.rank)
            body = E.rewrite(body, lambda e: E.axis(order[e.attr]) if e.kind == "axis" else None)
            outputs.append(RowOutput(body=body, operand=_as_rows(self._operands.destination(t), node), per_row=False))
        else:
            for k, (body, per_row) in enumerate(node.outputs):
                both = (*node.outer, *node.inner)
                shape = node.outer if per_row else [both[i] for i in node.order or range(len(both))]
                found = self._operands.result(node, k, shape)
                if found is None:
                    continue  # nobody reads this output
                operand = replace(found, shape=node.outer) if per_row else _as_rows(found, node)
                whole = self._simplify(composer.body(body, node.inputs, everywhere))
                outputs.append(RowOutput(body=whole, operand=operand, per_row=per_row))
        op = RowReduce(
            outer=node.outer,
            inner=node.inner,
            inputs=tuple(self._operands.operand(o) for o in composer.operands),
            stages=stages,
            outputs=tuple(outputs),
            label="softmax" if node.softmax else "rows",
        )
        self._append(op, self._sources(composer, node))

    def _attention(self, node: AttentionNode) -> None:
        q, k, v = (self._operands.unit_inner(t) for t in (node.q, node.k, node.v))
        k = replace(k, shape=(*q.shape[:2], *k.shape[2:]))
        v = replace(v, shape=(*k.shape[:3], v.shape[3]))
        composer = self._composer(first=[node.q, node.k, node.v])
        extra = [node.q, node.k, node.v, *node.extra]
        score = self._simplify(composer.body(node.score, extra, axes(4)))
        output = self._operands.destination(self._groups.shape_of(node))
        if not node.by_head:
            moved = apply_view(output, Permute(perm=(0, 2, 1, 3)))
            assert moved is not None
            output = moved
        output = replace(output, shape=(*q.shape[:3], v.shape[3]))
        op = Attention(
            inputs=(q, k, v, *(self._operands.operand(o) for o in composer.operands[3:])),
            score=score,
            no_softmax=node.no_softmax,
            output=output,
            label="attention",
        )
        self._append(op, self._sources(composer, node))

    def _concat(self, node: ConcatNode) -> None:
        whole = self._operands.destination(self._groups.shape_of(node))
        start: Size = 0
        for part in node.parts:
            t = self._dag.get(part)
            slot = replace(part_of(whole, node.axis, start, t.shape[node.axis]), shape=t.shape)
            if isinstance(t.node, Map) and not self._groups.is_root(t.node):
                self._map(t.node, t, slot)
            else:
                self._operands.copy(t, slot)
            start = start + t.shape[node.axis]

    def _scan(self, node: ScanNode) -> None:
        x, t = self._dag.get(node.x), self._groups.shape_of(node)
        op = Scan(
            inputs=(self._operands.operand(x),),
            body=E.load(0, *axes(x.rank), dtype=x.dtype),
            kind=node.kind,
            exclusive=node.exclusive,
            reverse=node.reverse,
            output=self._operands.destination(t),
            label="scan",
        )
        self._append(op, node.sources)

    def _top_k(self, node: TopKNode) -> None:
        x = self._dag.get(node.x)
        shape = (*x.shape[:-1], node.k)
        op = TopK(
            inputs=(self._operands.operand(x),),
            k=node.k,
            largest=node.largest,
            values=self._operands.destination(Tensor(shape, x.dtype, node, output=0)),
            indices=self._operands.destination(Tensor(shape, DType.I64, node, output=1)),
            label="topk",
        )
        self._append(op, node.sources)

    def _recurrence(self, node: RecurrentNode) -> None:
        d, _, b, n = node.domain
        stored = [self._operands.result(node, k, shape) for k, shape in enumerate(node.shapes)]
        if node.batch_first:
            orders = [(2, 1, 0, 3), *[(1, 0, 2)] * len(node.initial)]
        else:
            orders = [(1, 0, 2, 3) if d == 1 else (2, 0, 1, 3), *[(0, 1, 2)] * len(node.initial)]
        output, *finals = (
            None if o is None else replace(o, shape=tuple(o.shape[i] for i in order), strides=tuple(o.strides[i] for i in order))
            for o, order in zip(stored, orders, strict=True)
        )
        if output is not None:
            output = replace(output, shape=node.domain)
        op = Recurrence(
            domain=node.domain,
            inputs=tuple(self._operands.operand(t) for t in (node.weights, *node.lengths, *node.extra)),
            has_lengths=bool(node.lengths),
            reverse=node.reverse,
            initial=node.initial,
            stages=node.stages,
            output=output,
            finals=tuple(None if o is None else replace(o, shape=(d, b, n)) for o in finals),
            label="recurrence",
        )
        self._append(op, node.sources)


def _product_of(a: Operand) -> Product:
    """In what the op multiplies that has ``a`` to the left."""
    return Product.I32 if a.dtype in BYTES else Product.F32


def _sum_of(dtype: DType) -> Expr:
    """What a product that gives ``dtype`` summed up."""
    return E.acc(0) if dtype.is_float else E.acc_int(0)


def _as_rows(stored: Operand, node: RowNode) -> Operand:
    """Where an output with an element for each of a row is ``stored``, over the row's own axes."""
    return replace(stored, shape=(*node.outer, *node.inner), strides=tuple(stored.strides[place] for place in node.places))
