"""From lazy tensors to a core-IR program: views become strides, groups become ops with epilogues, in an order that can run.

outputs -> Dag -> settle_repeats, join_projections, fuse_attention, fuse_rows -> Groups -> one core op per materialised node
    -> Program -> one name for sizes that must be equal
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xyntra_ep.fusion.attention_fusion import fuse_attention
from xyntra_ep.fusion.compose import Composer, axes, is_identity
from xyntra_ep.fusion.dag import Dag
from xyntra_ep.fusion.formulas import Formulas
from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.groups import Groups
from xyntra_ep.fusion.horizontal import join_projections
from xyntra_ep.fusion.long_rows import count_the_longer
from xyntra_ep.fusion.pieces import by_extent, pieces
from xyntra_ep.fusion.repeats import settle_repeats
from xyntra_ep.fusion.row_fusion import fuse_rows
from xyntra_ep.fusion.rules import simplify
from xyntra_ep.fusion.strides import apply_view, part_of
from xyntra_ep.fusion.synonyms import rename
from xyntra_ep.fusion.tensor import (
    AttentionNode,
    ConcatNode,
    ConvNode,
    GemmNode,
    Leaf,
    Map,
    Permute,
    RecurrentNode,
    Reshape,
    RowNode,
    ScanNode,
    Tensor,
    TNode,
    TopKNode,
    View,
)
from xyntra_ep.fusion.trace import Context
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, assuming
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import (
    Attention,
    Conv,
    CoreOp,
    Gemm,
    Operand,
    Pointwise,
    Program,
    Recurrence,
    RowOutput,
    RowReduce,
    Scan,
    Stage,
    TopK,
    Value,
    ValueKind,
    contiguous_strides,
)


def build_program(context: Context, inputs: Sequence[str], outputs: Sequence[str]) -> Program:
    """The program of an island from its traced ``context``; ``inputs`` and ``outputs`` are graph names in order."""
    dag = Dag([*(context.tensors[name] for name in outputs), *(t for t, _ in context.faults)])
    settle_repeats(dag, context.checks)
    join_projections(dag)
    fuse_attention(dag, context.checks, Formulas(dag, context))
    fuse_rows(dag)
    builder = _Builder(dag, {name: i for i, name in enumerate(inputs)})
    builder.program.bindings = list(context.bindings)
    builder.program.definitions = list(context.checks.definitions)
    builder.program.guards = list(context.checks.guards)
    builder.program.checks = list(context.checks.conditions)
    program = builder.build(outputs)
    program.faults = [(v, message) for v, (_, message) in zip(builder.faults, context.faults, strict=True)]
    rename(program, context.checks.synonyms())
    return program


class _Builder:
    def __init__(self, dag: Dag, inputs: Mapping[str, int]) -> None:
        self.program = Program()
        self._dag = dag
        self._groups = Groups(dag)
        self._inputs = inputs
        self._values: dict[tuple[int, int], Operand] = {}
        self._views: dict[int, Operand] = {}
        self._leaves: dict[tuple[str, str], Operand] = {}
        self._current: frozenset[int] = frozenset()
        self.faults: list[int] = []

    def build(self, names: Sequence[str]) -> Program:
        copies = self._place_outputs(names)
        for node in self._dag.order:
            if not isinstance(node, (Leaf, View)) and self._groups.is_materialised(node):
                self._emit(node)
        for operand, tensor in copies:
            self._copy(tensor, operand)
        self.faults = [self._destination(t).value for t in self._dag.outputs[len(names) :]]
        return self.program

    # -- values

    def _add_value(self, value: Value) -> int:
        self.program.values.append(value)
        return len(self.program.values) - 1

    def _place_outputs(self, names: Sequence[str]) -> list[tuple[Operand, Tensor]]:
        """Give each output its memory: written by the node that computes it where that is possible, else copied at the end."""
        copies: list[tuple[Operand, Tensor]] = []
        for k, (name, t) in enumerate(zip(names, self._dag.outputs, strict=False)):
            value = self._add_value(Value(kind=ValueKind.OUTPUT, dtype=t.dtype, shape=t.shape, index=k, name=name))
            base = self._in_order(t)
            key = (id(base.node), base.output)
            whole = Operand(value=value, dtype=t.dtype, shape=base.shape, strides=contiguous_strides(base.shape))
            if isinstance(base.node, (Leaf, View)) or key in self._values or not self._groups.is_materialised(base.node):
                copies.append((self.program.operand(value), t))
            else:
                self._values[key] = whole
        return copies

    def _in_order(self, t: Tensor) -> Tensor:
        """What stores the elements of ``t`` in their order: reshapes, and permutations there and back, are followed."""
        while isinstance(t.node, View):
            base = self._dag.get(t.node.base)
            if isinstance(t.node.step, Permute):
                if not (isinstance(base.node, View) and isinstance(base.node.step, Permute)):
                    break
                if any(base.node.step.perm[p] != i for i, p in enumerate(t.node.step.perm)):
                    break
                base = self._dag.get(base.node.base)
            elif not isinstance(t.node.step, Reshape):
                break
            t = base
        return t

    def _destination(self, t: Tensor) -> Operand:
        """Where ``t`` is (to be) stored."""
        key = (id(t.node), t.output)
        if key not in self._values:
            value = self._add_value(Value(kind=ValueKind.TEMP, dtype=t.dtype, shape=t.shape))
            self._values[key] = self.program.operand(value)
        return self._values[key]

    def _leaf(self, t: Tensor, leaf: Leaf) -> Operand:
        key = (leaf.kind, leaf.name or str(id(leaf)))
        if key not in self._leaves:
            if leaf.kind == "input":
                value = Value(kind=ValueKind.INPUT, dtype=t.dtype, shape=t.shape, index=self._inputs[leaf.name], name=leaf.name)
            elif leaf.kind == "const":
                if leaf.name not in self.program.constants:
                    self.program.constants.append(leaf.name)
                index = self.program.constants.index(leaf.name)
                value = Value(kind=ValueKind.CONST, dtype=t.dtype, shape=t.shape, index=index, name=leaf.name)
            else:
                assert leaf.array is not None
                value = Value(kind=ValueKind.LITERAL, dtype=t.dtype, shape=t.shape, literal=leaf.array.tobytes())
            self._leaves[key] = self.program.operand(self._add_value(value))
        return self._leaves[key]

    def operand(self, t: Tensor) -> Operand:
        """``t`` as strides over memory, its sizes called as ``t`` calls them."""
        t = self._dag.get(t)
        return replace(self._stored(t), shape=t.shape)

    def _stored(self, t: Tensor) -> Operand:
        """Where ``t`` lies; a reshape that strides cannot say is copied here."""
        node = t.node
        if isinstance(node, Leaf):
            return self._leaf(t, node)
        if not isinstance(node, View):
            return self._destination(t)
        found = self._views.get(id(node))
        if found is None:
            base = self.operand(node.base)
            found = apply_view(base, node.step)
            if found is None:
                copied = self._copy(self._dag.get(node.base))
                found = apply_view(copied, node.step)
                assert found is not None
            self._views[id(node)] = found
        return found

    def _copy(self, t: Tensor, to: Operand | None = None) -> Operand:
        """A contiguous copy of ``t``."""
        if to is None:
            value = self._add_value(Value(kind=ValueKind.TEMP, dtype=t.dtype, shape=t.shape))
            to = self.program.operand(value)
        source = self.operand(t)
        body = E.load(0, *axes(t.rank), dtype=t.dtype)
        to = replace(to, shape=t.shape)
        op = Pointwise(domain=t.shape, inputs=(source,), bodies=(body,), outputs=(to,), label="copy")
        self._append(op, t.node.sources or self._current)
        return to

    def _unit_inner(self, t: Tensor) -> Operand:
        """``t`` with stride 1 on its last axis (copied when it is not)."""
        operand = self.operand(t)
        return operand if operand.strides[-1] == 1 or operand.shape[-1] == 1 else self._copy(t)

    # -- ops

    def _append(self, op: CoreOp, sources: frozenset[int]) -> None:
        self.program.ops.append(op)
        self.program.sources.append(tuple(NodeId(i) for i in sorted(sources)))

    def _composer(self, anchor: TNode | None = None, first: Sequence[Tensor] = ()) -> Composer:
        """Inlines what the groups say; loads of ``anchor`` become its accumulator or its own expression."""

        def source(t: Tensor, index: list[Expr]) -> Expr | None:
            if anchor is not None and t.node is anchor:
                assert is_identity(index, t.shape)
                return self._anchor_value(anchor, composer, index)
            if isinstance(t.node, Map) and not self._groups.is_root(t.node):
                return composer.inline(t.node, index)
            return None

        composer = Composer(self._dag, source, first)
        return composer

    def _anchor_value(self, anchor: TNode, composer: Composer, index: Sequence[Expr]) -> Expr:
        if isinstance(anchor, RowNode):
            return composer.body(anchor.outputs[0][0], anchor.inputs, [E.axis(place) for place in anchor.places])
        return E.acc(0)

    def _emit(self, node: TNode) -> None:
        self._current = node.sources
        match node:
            case Map():
                anchor = self._groups.anchor_of(node)
                t = self._groups.shape_of(node)
                if isinstance(anchor, GemmNode):
                    self._gemm(anchor, node, t)
                elif isinstance(anchor, ConvNode):
                    self._conv(anchor, node, t)
                elif isinstance(anchor, RowNode):
                    self._row(anchor, node, t)
                else:
                    self._map(node, t, self._destination(t))
            case GemmNode():
                self._gemm(node, None, self._groups.shape_of(node))
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

    def _sources(self, composer: Composer, *nodes: TNode | None) -> frozenset[int]:
        found: frozenset[int] = frozenset()
        for n in (*composer.members, *nodes):
            if n is not None:
                found |= n.sources
        return found

    def _map(self, node: Map, t: Tensor, to: Operand) -> None:
        composer = self._composer()
        body = simplify(composer.inline(node, axes(t.rank)))
        inputs = tuple(self.operand(o) for o in composer.operands)
        to = replace(to, shape=t.shape)
        for alike in by_extent(pieces(body, t.shape)):
            places = tuple(part_of(to, p.axis, p.start, p.extent) if t.rank else to for p in alike)
            bodies = tuple(p.body for p in alike)
            op = Pointwise(domain=places[0].shape, inputs=inputs, bodies=bodies, outputs=places, label="pointwise")
            self._append(op, self._sources(composer))

    def _finish(self, root: Map | None, composer: Composer, rank: int) -> Expr:
        return E.acc(0) if root is None else simplify(composer.inline(root, axes(rank)))

    def _gemm(self, node: GemmNode, root: Map | None, t: Tensor) -> None:
        composer = self._composer(node, [node.a, node.b])
        epilogue = self._finish(root, composer, t.rank)
        a, b, *rest = (self.operand(o) for o in composer.operands)
        a = replace(a, shape=(*t.shape[:-1], a.shape[-1]))
        b = replace(b, shape=(*t.shape[:-2], a.shape[-1], t.shape[-1]))
        output = replace(self._destination(t), shape=t.shape)
        op = Gemm(inputs=(a, b, *rest), epilogue=epilogue, output=output, label="gemm")
        with assuming(self.program.assumed):
            op = count_the_longer(op)
        self._append(op, self._sources(composer, node))

    def _conv(self, node: ConvNode, root: Map | None, t: Tensor) -> None:
        """The tensor is stored [N, spatial..., M]; the op is stated over [N, M, spatial...]."""
        composer = self._composer(node, [node.x, node.w])
        epilogue = self._finish(root, composer, t.rank)
        to_logical = (0, *range(2, t.rank), 1)  # stored axis i is logical axis to_logical[i]
        epilogue = E.rewrite(epilogue, lambda e: E.axis(to_logical[e.attr]) if e.kind == "axis" else None)
        stored = self._destination(t)
        order = (0, t.rank - 1, *range(1, t.rank - 1))
        output = Operand(
            value=stored.value,
            dtype=stored.dtype,
            shape=tuple(stored.shape[i] for i in order),
            strides=tuple(stored.strides[i] for i in order),
            offset=stored.offset,
        )
        op = Conv(
            inputs=tuple(self.operand(o) for o in composer.operands),
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
        stages = tuple(
            Stage(kind=s.kind, body=simplify(composer.body(s.body, node.inputs, everywhere)), dtype=s.dtype) for s in node.stages
        )
        outputs: list[RowOutput] = []
        if root is not None:
            assert t is not None
            body = self._finish(root, composer, t.rank)  # over the axes as they are stored
            order = node.order or range(t.rank)
            body = E.rewrite(body, lambda e: E.axis(order[e.attr]) if e.kind == "axis" else None)
            outputs.append(RowOutput(body=body, operand=_as_rows(self._destination(t), node), per_row=False))
        else:
            for k, (body, per_row) in enumerate(node.outputs):
                both = (*node.outer, *node.inner)
                found = self._result(node, k, node.outer if per_row else [both[i] for i in node.order or range(len(both))])
                if found is None:
                    continue  # nobody reads this output
                operand = replace(found, shape=node.outer) if per_row else _as_rows(found, node)
                whole = simplify(composer.body(body, node.inputs, everywhere))
                outputs.append(RowOutput(body=whole, operand=operand, per_row=per_row))
        op = RowReduce(
            outer=node.outer,
            inner=node.inner,
            inputs=tuple(self.operand(o) for o in composer.operands),
            stages=stages,
            outputs=tuple(outputs),
            label="softmax" if node.softmax else "rows",
        )
        self._append(op, self._sources(composer, node))

    def _result(self, node: TNode, output: int, shape: Sequence[Size]) -> Operand | None:
        """Where output number ``output`` is stored; None if nobody reads it."""
        readers = (t for n in self._dag.order for t in self._dag.operands(n))
        for t in (*readers, *self._dag.outputs):
            if t.node is node and t.output == output:
                return self._destination(Tensor(tuple(shape), t.dtype, node, output=output))
        return None

    def _attention(self, node: AttentionNode) -> None:
        q, k, v = (self._unit_inner(t) for t in (node.q, node.k, node.v))
        k = replace(k, shape=(*q.shape[:2], *k.shape[2:]))
        v = replace(v, shape=(*k.shape[:3], v.shape[3]))
        composer = self._composer(first=[node.q, node.k, node.v])
        extra = [node.q, node.k, node.v, *node.extra]
        score = simplify(composer.body(node.score, extra, axes(4)))
        output = self._destination(self._groups.shape_of(node))
        if not node.by_head:
            moved = apply_view(output, Permute(perm=(0, 2, 1, 3)))
            assert moved is not None
            output = moved
        output = replace(output, shape=(*q.shape[:3], v.shape[3]))
        op = Attention(
            inputs=(q, k, v, *(self.operand(o) for o in composer.operands[3:])),
            score=score,
            no_softmax=node.no_softmax,
            output=output,
            label="attention",
        )
        self._append(op, self._sources(composer, node))

    def _concat(self, node: ConcatNode) -> None:
        whole = self._destination(self._groups.shape_of(node))
        start: Size = 0
        for part in node.parts:
            t = self._dag.get(part)
            slot = replace(part_of(whole, node.axis, start, t.shape[node.axis]), shape=t.shape)
            if isinstance(t.node, Map) and not self._groups.is_root(t.node):
                self._map(t.node, t, slot)
            else:
                self._copy(t, slot)
            start = start + t.shape[node.axis]

    def _scan(self, node: ScanNode) -> None:
        x, t = self._dag.get(node.x), self._groups.shape_of(node)
        op = Scan(
            inputs=(self.operand(x),),
            body=E.load(0, *axes(x.rank), dtype=x.dtype),
            kind=node.kind,
            exclusive=node.exclusive,
            reverse=node.reverse,
            output=self._destination(t),
            label="scan",
        )
        self._append(op, node.sources)

    def _top_k(self, node: TopKNode) -> None:
        x = self._dag.get(node.x)
        shape = (*x.shape[:-1], node.k)
        op = TopK(
            inputs=(self.operand(x),),
            k=node.k,
            largest=node.largest,
            values=self._destination(Tensor(shape, x.dtype, node, output=0)),
            indices=self._destination(Tensor(shape, DType.I64, node, output=1)),
            label="topk",
        )
        self._append(op, node.sources)

    def _recurrence(self, node: RecurrentNode) -> None:
        d, _, b, n = node.domain
        stored = [self._result(node, k, shape) for k, shape in enumerate(node.shapes)]
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
            inputs=tuple(self.operand(t) for t in (node.weights, *node.lengths, *node.extra)),
            has_lengths=bool(node.lengths),
            reverse=node.reverse,
            initial=node.initial,
            stages=node.stages,
            output=output,
            finals=tuple(None if o is None else replace(o, shape=(d, b, n)) for o in finals),
            label="recurrence",
        )
        self._append(op, node.sources)


def _as_rows(stored: Operand, node: RowNode) -> Operand:
    """Where an output with an element for each of a row is ``stored``, over the row's own axes."""
    return replace(stored, shape=(*node.outer, *node.inner), strides=tuple(stored.strides[place] for place in node.places))
