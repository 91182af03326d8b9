"""From ONNX nodes to lazy tensors: walks nodes in order and calls each op's function.

An op is one row, `OpSpec` (op_spec.py), in a file of fusion/onnx_ops. Its ``lower`` gets the context, the node and its input
tensors (None for a missing optional one) and returns its output tensor or tensors. ``UnsupportedError`` from it is the recorded
reason for a decline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import InternalError, UnsupportedError
from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.estimates.plausible import Sizes
from xyntra_ep.fusion.frames import elementwise
from xyntra_ep.fusion.graph import Graph, GraphValue, Node, NodeId
from xyntra_ep.fusion.op_spec import OpSpec as OpSpec
from xyntra_ep.fusion.op_spec import admit, admit_types
from xyntra_ep.fusion.structure import conditions
from xyntra_ep.fusion.tensor import Leaf, Map, Reshape, RowNode, Tensor, TNode, View, from_content, literal
from xyntra_ep.guard import guarded
from xyntra_ep.registry import Registry
from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import Size, symbol
from xyntra_ep.tracea.core_ir.dtypes import FOUR_BITS, DType, unpack_nibbles
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Binding, Range, ReduceKind, Stage, SymbolKind

FIRST = NodeId(0)
CONTROL_FLOW = "control-flow"  # the reason of a node with bodies: those are graphs of their own, and planned as such
SMALL_CONSTANT_BYTES = 1024  # the graph digest covers constants up to this size, so plans may depend on their bytes


OPS: Registry[OpSpec] = Registry("xyntra_ep.fusion.onnx_ops", "OPS")


def find_op(node: Node) -> OpSpec:
    """The row for a node; declines a node that has none or that it was not written for."""
    if node.has_subgraph:
        raise UnsupportedError(CONTROL_FLOW)
    key = f"{node.domain}.{node.op_type}" if node.domain and node.domain != "ai.onnx" else node.op_type
    if key not in OPS:
        raise UnsupportedError("unsupported")
    spec = OPS[key]
    admit(spec, node)
    return spec


@dataclass(slots=True, kw_only=True)
class Context:
    """One walk over (part of) a graph."""

    graph: Graph
    checks: Checks = field(default_factory=Checks)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    faults: list[tuple[Tensor, str]] = field(default_factory=list)  # bools: one is true, and the run fails with the message
    judged: set[tuple[int, int, Expr]] = field(default_factory=set)  # data of which `faults` has the judgement
    lost: dict[str, InternalError] = field(default_factory=dict)  # values that a fault of ours left undeclared
    depends: set[str] = field(default_factory=set)  # large constants whose bytes decided something
    remarks: list[tuple[str, NodeId]] = field(default_factory=list)  # why what was made of a node is not what one would expect
    current: NodeId = FIRST

    # -- what op functions use

    def map(self, inputs: Sequence[Tensor], body: Callable[..., Expr], dtype: DType) -> Tensor:
        """Elementwise over the broadcast shape."""
        return elementwise(self.checks, inputs, body, dtype)

    def require(self, condition: Size, message: str) -> None:
        """A condition on sizes without which the run fails with ``message``."""
        self.checks.require(condition, message)

    def require_equal(self, a: Size, b: Size, message: str) -> None:
        self.checks.require_equal(a, b, message)

    def require_data(self, t: Tensor, wrong: Callable[[Expr, Expr], Expr], message: str) -> None:
        """A condition on the elements of ``t``: a run in which ``wrong(element, its place in the last axis)`` is true of one
        fails with ``message`` after it was computed.

        What reads memory by these elements must stay inside by itself (`clamp_index`). Constants are to be judged while planning.
        Rows are judged each for itself, so that threads can share the work.
        """
        t = t if t.rank else t.reshape((1,))
        here = [E.axis(i) for i in range(t.rank)]
        body = wrong(E.load(0, *here, dtype=t.dtype), here[-1])
        key = (*_stored(t), body)
        if key in self.judged:
            return
        self.judged.add(key)
        stage = Stage(kind=ReduceKind.MAX, body=body, dtype=DType.BOOL)
        row = RowNode(outer=t.shape[:-1], inner=t.shape[-1:], inputs=(t,), stages=(stage,), outputs=((E.acc_bool(0), True),))
        fault = Tensor(t.shape[:-1], DType.BOOL, row)
        self._finish(fault, self.current)
        self.faults.append((fault, self.checks.located(message)))

    def remark(self, text: str) -> None:
        """Something about the current node that `explain` is to show beside its kernels."""
        self.remarks.append((text, self.current))

    def constant(self, t: Tensor, what: str) -> NDArray[Any]:
        """The bytes of a constant of any size (small ones: ``t.array``); the plan then depends on them."""
        if isinstance(t.node, Leaf) and t.node.kind == "const" and t.node.array is None:
            value = self.graph.values[t.node.name]
            assert value.read is not None
            self.depends.add(t.node.name)
            return value.read()
        return t.array(what)

    def packed(self, name: str) -> tuple[Tensor, tuple[int, ...]]:
        """The bytes of constant ``name``, of integers of 4 bits, and its shape: for whoever reads few of them (`nibble`)."""
        shape = tuple(d for d in self.graph.values[name].shape or () if isinstance(d, int))
        return _packed(name, math.prod(shape)), shape

    # -- the walk

    def add_input(self, name: str, position: int, symbols: Callable[[GraphValue, int], Size]) -> None:
        """Declare island input ``name``; ``symbols(value, axis)`` gives each dimension's size and adds guards."""
        value = self.graph.values[name]
        if value.dtype is None:
            raise UnsupportedError("dtype")
        if value.shape is None:
            raise UnsupportedError("unknown rank")
        shape = tuple(symbols(value, axis) for axis in range(len(value.shape)))
        self.tensors[name] = Tensor(shape, value.dtype, Leaf(kind="input", name=name))

    def tensor(self, name: str) -> Tensor | None:
        if not name:
            return None
        found = self.tensors.get(name)
        if found is None:
            value = self.graph.values[name]
            if name in self.lost:
                raise self.lost[name]
            if not value.is_constant:
                raise UnsupportedError(_stranger(value))
            found = self.tensors[name] = _constant_tensor(value)
        return found

    def run(self, node: Node) -> None:
        """Trace one node; its outputs become known. A fault of ours costs this node (InternalError)."""
        with guarded("lowering"):
            self._run(node)

    def _run(self, node: Node) -> None:
        spec = find_op(node)
        self.current = node.id
        self.checks.where = node.title
        inputs = [self.tensor(name) for name in node.inputs]
        admit_types(spec, inputs)
        result = spec.lower(self, node, inputs)
        outputs = [result] if isinstance(result, Tensor) else list(result)
        for name, t in zip(node.outputs, outputs, strict=False):
            if not name:
                continue
            declared = self.graph.values[name]
            if declared.dtype is not t.dtype:
                if not declared.elem_type:
                    raise UnsupportedError(f"nobody says what type output {name} has")
                raise UnsupportedError(f"dtype {declared.dtype or f'{declared.elem_type} of ONNX'}")
            self.tensors[name] = t
            self._finish(t, node.id)
        missing = [name for name in node.outputs[len(outputs) :] if name]
        if missing:
            raise UnsupportedError(f"output {missing[0]} is not computed")

    def _finish(self, result: Tensor, node: NodeId) -> None:
        """Of all that was built for ``result`` (nodes already marked belong to operands): note the graph node, and demand what
        it demands of sizes."""
        stack = [result]
        while stack:
            t = stack.pop()
            if t.node.sources or isinstance(t.node, Leaf):
                continue
            t.node.sources = frozenset({node})
            for condition, message in conditions(t, self.checks):
                self.checks.require(condition, message)
            stack.extend(operands_of(t.node))


def _stranger(value: GraphValue) -> str:
    """Why ``value``, which nothing of ours makes, cannot be read."""
    if value.dtype is not None:
        return f"unknown rank of input {value.name}"
    return f"dtype of input {value.name}" if value.elem_type else f"no known tensor type of input {value.name}"


def _stored(t: Tensor) -> tuple[int, int]:
    """What holds the elements of ``t``, whatever shape they are given: a node and which of its results."""
    while isinstance(t.node, View) and isinstance(t.node.step, Reshape):
        t = t.node.base
    return id(t.node), t.output


def operands_of(node: TNode) -> list[Tensor]:
    """Tensors that ``node`` reads."""
    found: list[Tensor] = []
    for name, several in _operand_fields(type(node)):
        value = getattr(node, name)
        if several:
            found.extend(value)
        else:
            found.append(value)
    return found


_OPERAND_FIELDS: dict[type[TNode], tuple[tuple[str, bool], ...]] = {}


def _operand_fields(kind: type[TNode]) -> tuple[tuple[str, bool], ...]:
    """(name, whether it holds several) of the fields that hold tensors."""
    known = _OPERAND_FIELDS.get(kind)
    if known is None:
        known = tuple((f.name, f.type != "Tensor") for f in fields(kind) if f.type in ("Tensor", "tuple[Tensor, ...]"))
        _OPERAND_FIELDS[kind] = known
    return known


def _constant_tensor(value: GraphValue) -> Tensor:
    if value.elem_type in FOUR_BITS:
        return _of_four_bits(value, FOUR_BITS[value.elem_type])
    if value.dtype is None:
        raise UnsupportedError("dtype")
    if value.shape is None or value.read is None or not all(isinstance(d, int) for d in value.shape):
        raise UnsupportedError("constant of unknown shape")
    shape = tuple(d for d in value.shape if isinstance(d, int))
    array = value.read() if value.constant_bytes <= SMALL_CONSTANT_BYTES else None
    content = None
    if array is not None and not value.dtype.is_float and array.size <= 128:
        return Tensor(
            shape,
            value.dtype,
            Leaf(kind="const", name=value.name, array=array),
            content=from_content(array.reshape(shape).astype(np.int64).tolist()).content if array.size else array.astype(object),
        )
    sparse = value.read if value.has_zeros else None
    return Tensor(shape, value.dtype, Leaf(kind="const", name=value.name, array=array, sparse=sparse), content=content)


def _of_four_bits(value: GraphValue, dtype: DType) -> Tensor:
    """A constant of integers in half a byte, unpacked: nothing that computes knows of them. A large one is read where it lies."""
    if value.shape is None or value.read is None or not all(isinstance(d, int) for d in value.shape):
        raise UnsupportedError("constant of unknown shape")
    shape = tuple(d for d in value.shape if isinstance(d, int))
    count = math.prod(shape)
    if value.constant_bytes <= SMALL_CONSTANT_BYTES:
        return literal(unpack_nibbles(value.read().reshape(-1).view(np.uint8), count, dtype).reshape(shape), dtype)
    body = nibble(0, [E.axis(i) for i in range(len(shape))], shape, dtype)
    return Tensor(shape, dtype, Map(inputs=(_packed(value.name, count),), body=body))


def _packed(name: str, count: int) -> Tensor:
    return Tensor((-(-count // 2),), DType.U8, Leaf(kind="const", name=name))


def nibble(operand: int, at: Sequence[Expr], shape: Sequence[int], dtype: DType) -> Expr:
    """An element of a constant of ``shape``, two of which lie in each byte of ``operand``."""
    place: Expr = E.const(0)
    for i, index in enumerate(at):
        place = E.call("add", place, E.call("mul", index, E.const(math.prod(shape[i + 1 :]))))
    byte = E.load(operand, E.call("div", place, E.const(2)), dtype=DType.U8)
    is_low = E.call("eq", E.call("mod", place, E.const(2)), E.const(0))
    element = E.call("where", is_low, E.call("bitand", byte, E.const(15)), E.call("div", byte, E.const(16)))
    return E.call("sub", E.call("bitxor", element, E.const(8)), E.const(8)) if dtype is DType.I8 else element


class TraceError(UnsupportedError):
    """A node of an island that turned out not to be ours (``node``), and why (``cause``)."""

    def __init__(self, node: NodeId, error: UnsupportedError) -> None:
        super().__init__(error.what, where=error.where, hint=error.hint)
        self.node = node
        self.cause = error


class SymbolPolicy:
    """Turns declared input dimensions into symbols. Every run-time dimension is bound as its own raw symbol; with ``trust`` the
    model's hints (equal names, static sizes of inner values) are used under a guard, without it nothing is assumed."""

    def __init__(self, context: Context, trust: bool) -> None:
        self._context = context
        self._trust = trust
        self._plausible = Sizes.of(context.graph)
        self.ranges: dict[str, Range] = {}  # of the symbols, by name: what they are taken for in estimates
        self._named: dict[str, Size] = {}

    def size(self, value: GraphValue, axis: int, position: int, like: Sequence[Range] = ()) -> Size:
        assert value.shape is not None
        declared = value.shape[axis]
        graph = self._context.graph
        if isinstance(declared, int) and (graph.is_exact or (value.is_input and not graph.is_subgraph)):
            return declared  # ORT refuses feeds that differ
        if graph.is_exact and isinstance(declared, str) and declared in self._named:
            return self._named[declared]
        name = f"d{position}_{axis}"
        raw = symbol(name)
        self.ranges[name] = plausible = self._plausible.of_axis(value, axis, like)
        self._context.bindings.append(Binding(name=name, kind=SymbolKind.DIM, input=position, index=axis, plausible=plausible))
        if declared is None or not (self._trust or graph.is_exact):
            return raw
        if isinstance(declared, int):
            self._context.checks.guards.append(dims.eq(raw, declared))
            return declared
        known = self._named.setdefault(declared, raw)
        if known != raw and not graph.is_exact:
            self._context.checks.guards.append(dims.eq(raw, known))
        return known


def trace(graph: Graph, nodes: Sequence[NodeId], inputs: Sequence[str], trust: bool) -> Context:
    """Trace ``nodes`` (in order) with ``inputs`` as island inputs; raises TraceError naming the node that cannot be done."""
    context = Context(graph=graph, checks=Checks(speculate=trust))
    policy = SymbolPolicy(context, trust)
    for position, name in enumerate(inputs):
        with guarded("lowering"):
            context.add_input(name, position, lambda value, axis, p=position: policy.size(value, axis, p))  # type: ignore[misc]  # default binds p
    for i in nodes:
        try:
            context.run(graph.nodes[i])
        except UnsupportedError as error:
            raise TraceError(i, error) from error
    return context
