"""Where lazy tensors lie: each as an operand, which is a strided view of a value of the program.

    Permute(Reshape(leaf x))    ->    Operand(value of x, shape, strides)

A view is strides over what it is a view of; one that strides cannot say is copied. Outputs of the graph are written by the
node that computes them where that is possible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.scheduling.compose import axes
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.scheduling.groups import Groups
from xyntra_ep.fusion.scheduling.strides import apply_view
from xyntra_ep.fusion.tensor import Leaf, Permute, Reshape, Tensor, TNode, View
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.ops import CoreOp, Operand, Pointwise, Program, Value, ValueKind, contiguous_strides


class Operands:
    """Of the tensors of ``dag``. Values, copies and all other ops go into ``program``; ``inputs`` numbers the island's inputs."""

    def __init__(self, dag: Dag, groups: Groups, program: Program, inputs: Mapping[str, int]) -> None:
        self._dag = dag
        self._groups = groups
        self._program = program
        self._inputs = inputs
        self._values: dict[tuple[int, int], Operand] = {}
        self._views: dict[int, Operand] = {}
        self._leaves: dict[tuple[str, str], Operand] = {}
        self._current: frozenset[int] = frozenset()

    def begin(self, node: TNode) -> None:
        """From here on copies of what has no graph node of its own are made for ``node``."""
        self._current = node.sources

    # -- where results are stored

    def place_outputs(self, names: Sequence[str]) -> list[tuple[Operand, Tensor]]:
        """Give each output its memory: written by the node that computes it where that is possible, else copied at the end."""
        copies: list[tuple[Operand, Tensor]] = []
        for k, (name, t) in enumerate(zip(names, self._dag.outputs, strict=False)):
            value = self._add_value(Value(kind=ValueKind.OUTPUT, dtype=t.dtype, shape=t.shape, index=k, name=name))
            base = self._in_order(t)
            key = (id(base.node), base.output)
            whole = Operand(value=value, dtype=t.dtype, shape=base.shape, strides=contiguous_strides(base.shape))
            if isinstance(base.node, (Leaf, View)) or key in self._values or not self._groups.is_materialised(base.node):
                copies.append((self._program.operand(value), t))
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

    def destination(self, t: Tensor) -> Operand:
        """Where ``t`` is (to be) stored."""
        key = (id(t.node), t.output)
        if key not in self._values:
            value = self._add_value(Value(kind=ValueKind.TEMP, dtype=t.dtype, shape=t.shape))
            self._values[key] = self._program.operand(value)
        return self._values[key]

    def result(self, node: TNode, output: int, shape: Sequence[Size]) -> Operand | None:
        """Where output number ``output`` is stored; None if nobody reads it."""
        readers = (t for n in self._dag.order for t in self._dag.operands(n))
        for t in (*readers, *self._dag.outputs):
            if t.node is node and t.output == output:
                return self.destination(Tensor(tuple(shape), t.dtype, node, output=output))
        return None

    # -- where tensors are read

    def operand(self, t: Tensor) -> Operand:
        """``t`` as strides over memory, its sizes called as ``t`` calls them."""
        t = self._dag.get(t)
        return replace(self._stored(t), shape=t.shape)

    def unit_inner(self, t: Tensor) -> Operand:
        """``t`` with stride 1 on its last axis (copied when it is not)."""
        operand = self.operand(t)
        return operand if operand.strides[-1] == 1 or operand.shape[-1] == 1 else self.copy(t)

    def _stored(self, t: Tensor) -> Operand:
        """Where ``t`` lies; a reshape that strides cannot say is copied here."""
        node = t.node
        if isinstance(node, Leaf):
            return self._leaf(t, node)
        if not isinstance(node, View):
            return self.destination(t)
        found = self._views.get(id(node))
        if found is None:
            base = self.operand(node.base)
            found = apply_view(base, node.step)
            if found is None:
                copied = self.copy(self._dag.get(node.base))
                found = apply_view(copied, node.step)
                assert found is not None
            self._views[id(node)] = found
        return found

    def _leaf(self, t: Tensor, leaf: Leaf) -> Operand:
        key = (leaf.kind, leaf.name or str(id(leaf)))
        if key not in self._leaves:
            if leaf.kind == "input":
                value = Value(kind=ValueKind.INPUT, dtype=t.dtype, shape=t.shape, index=self._inputs[leaf.name], name=leaf.name)
            elif leaf.kind == "const":
                if leaf.name not in self._program.constants:
                    self._program.constants.append(leaf.name)
                index = self._program.constants.index(leaf.name)
                value = Value(kind=ValueKind.CONST, dtype=t.dtype, shape=t.shape, index=index, name=leaf.name)
            else:
                assert leaf.array is not None
                value = Value(kind=ValueKind.LITERAL, dtype=t.dtype, shape=t.shape, literal=leaf.array.tobytes())
            self._leaves[key] = self._program.operand(self._add_value(value))
        return self._leaves[key]

    # -- what is added to the program

    def copy(self, t: Tensor, to: Operand | None = None) -> Operand:
        """A contiguous copy of ``t``."""
        if to is None:
            value = self._add_value(Value(kind=ValueKind.TEMP, dtype=t.dtype, shape=t.shape))
            to = self._program.operand(value)
        source = self.operand(t)
        body = E.load(0, *axes(t.rank), dtype=t.dtype)
        to = replace(to, shape=t.shape)
        op = Pointwise(domain=t.shape, inputs=(source,), bodies=(body,), outputs=(to,), label="copy")
        self.append(op, t.node.sources or self._current)
        return to

    def append(self, op: CoreOp, sources: frozenset[int]) -> None:
        """``sources``: the graph nodes that ``op`` computes."""
        self._program.ops.append(op)
        self._program.sources.append(tuple(NodeId(i) for i in sorted(sources)))

    def _add_value(self, value: Value) -> int:
        self._program.values.append(value)
        return len(self._program.values) - 1
