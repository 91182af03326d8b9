"""A draft at one moment, as rows: to print, to draw, and to compare with what the next pass makes of it.

%0:f32[d0_0, 64] = input x                          a lazy node: type and sizes, what it is, what it reads,
%2:f32[d0_0, 8] = gemm(%0, %1)   # MatMul(m)        and the graph nodes that it stands for
v2 = gemm(v0, v1[64, 8 : 1, 64]) {epilogue=acc0}    an op: operands with sizes, strides and offset, where they are not plain
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.fusion.passes import Draft
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import Leaf, RowNode, Tensor, TNode, View
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import Operand, Program, Value, ValueKind

_ROOM = 160  # characters of an expression that are shown
_LONGEST = 400  # of all details of a row


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A lazy node, which equals itself alone, or an op, which equals one of the same fields (``what``). ``reads`` are rows;
    ``works``: it computes, as inputs, constants and views do not."""

    what: Hashable
    kind: str
    text: str
    reads: tuple[int, ...]
    sources: frozenset[NodeId]
    works: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """``head`` and ``tail`` are lines that belong to no row. ``lowered``: rows are ops."""

    head: tuple[str, ...]
    rows: tuple[Row, ...]
    tail: tuple[str, ...]
    lowered: bool

    @property
    def work(self) -> int:
        """How many rows compute something."""
        return sum(row.works for row in self.rows)

    @property
    def sources(self) -> frozenset[NodeId]:
        """The graph nodes that are left."""
        return frozenset[NodeId]().union(*(row.sources for row in self.rows))

    def text(self, titles: Mapping[NodeId, str]) -> str:
        """A line for each row, with the ``titles`` of its graph nodes behind."""
        lines = list(self.head)
        for row in self.rows:
            names = ", ".join(titles[n] for n in sorted(row.sources))
            lines.append(row.text + (f"   # {names}" if names else ""))
        return "\n".join(f"  {line}" for line in (*lines, *self.tail))

    def dot(self, titles: Mapping[NodeId, str]) -> str:
        """Graphviz."""
        lines = ["digraph {", "  node [shape=box];"]
        for i, row in enumerate(self.rows):
            label = "\\n".join(_escaped(text) for text in (row.kind, *(titles[n] for n in sorted(row.sources))))
            lines.append(f'  n{i} [label="{label}"{"" if row.works else ", style=dashed"}];')
            lines += [f"  n{j} -> n{i};" for j in dict.fromkeys(row.reads)]
        return "\n".join([*lines, "}"])


def snapshot(draft: Draft) -> Snapshot:
    """``draft`` as it is now."""
    return _of_dag(draft.dag, draft.outputs) if draft.lowered is None else _of_program(draft.lowered)


# -- lazy nodes


def _of_dag(dag: Dag, names: Sequence[str]) -> Snapshot:
    number = {id(node): i for i, node in enumerate(dag.order)}
    seen: dict[int, Tensor] = {}
    for t in (*(t for node in dag.order for t in dag.operands(node)), *dag.outputs):
        seen.setdefault(id(t.node), t)

    def name(t: Tensor) -> str:
        return f"%{number[id(t.node)]}" + (f".{t.output}" if t.output else "")

    rows: list[Row] = []
    for i, node in enumerate(dag.order):
        reads = dag.operands(node)
        kind, details = _kind_of(node)
        t = seen[id(node)]
        operands = "" if isinstance(node, Leaf) else f"({', '.join(map(name, reads))})"
        rows.append(
            Row(
                what=node,
                kind=kind,
                text=f"%{i}:{t.dtype}{_sizes(t.shape)} = {kind}{operands}{details}",
                reads=tuple(number[id(t.node)] for t in reads),
                sources=frozenset(map(NodeId, node.sources)),
                works=not isinstance(node, (Leaf, View)),
            )
        )
    returned = [f"return {output} = {name(t)}" for output, t in zip(names, dag.outputs, strict=False)]
    judged = [f"judge {name(t)}" for t in dag.outputs[len(names) :]]
    return Snapshot(head=(), rows=tuple(rows), tail=(*returned, *judged), lowered=False)


def _kind_of(node: TNode) -> tuple[str, str]:
    """What a node is called, and its details."""
    if isinstance(node, Leaf):
        return f"{node.kind} {node.name}".strip(), ""
    if isinstance(node, View):
        return type(node.step).__name__.lower(), _details(node.step)
    if isinstance(node, RowNode):
        return "softmax" if node.softmax else "rows", _details(node)
    return type(node).__name__.removesuffix("Node").lower(), _details(node)


# -- ops


def _of_program(program: Program) -> Snapshot:
    symbols = [f"{b.name} = {b.kind} {b.index} of input {b.input}" for b in program.bindings]
    symbols += [f"{name} = {size}" for name, size in program.definitions]
    values = [f"v{i}:{v.dtype}{_sizes(v.shape)} = {_holds(v)}" for i, v in enumerate(program.values)]
    writers: dict[int, list[int]] = {}
    rows: list[Row] = []
    for i, (op, sources) in enumerate(zip(program.ops, program.sources, strict=True)):
        outputs = op.written
        written = ", ".join(_operand(program, o) for o in outputs)
        read = ", ".join(_operand(program, o) for o in op.inputs)
        rows.append(
            Row(
                what=op,
                kind=op.label,
                text=f"{written} = {op.label}({read}){_details(op)}",
                reads=tuple(j for o in op.inputs for j in writers.get(o.value, ())),
                sources=frozenset(map(NodeId, sources)),
            )
        )
        for o in outputs:
            writers.setdefault(o.value, []).append(i)
    tail = [f"if {guard}" for guard in program.guards]
    tail += [f"check {condition}: {message}" for condition, message in program.checks]
    tail += [f"judge v{value}: {message}" for value, message in program.faults]
    return Snapshot(head=(*symbols, *values), rows=tuple(rows), tail=tuple(tail), lowered=True)


def _holds(value: Value) -> str:
    return str(value.kind) if value.kind in (ValueKind.TEMP, ValueKind.LITERAL) else f"{value.kind} {value.name}"


def _operand(program: Program, operand: Operand) -> str:
    plain = program.operand(operand.value)
    if (operand.shape, operand.strides, operand.offset) == (plain.shape, plain.strides, plain.offset):
        return f"v{operand.value}"
    offset = f" : {operand.offset}" if operand.offset != 0 else ""
    return f"v{operand.value}[{_joined(operand.shape)} : {_joined(operand.strides)}{offset}]"


# -- fields


def _details(what: object) -> str:
    """The fields that say more than what is read and written."""
    text = ", ".join(_fields(what))
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return f" {{{text}}}" if text else ""


def _fields(what: object) -> Iterator[str]:
    assert dataclasses.is_dataclass(what)
    for field in dataclasses.fields(what):
        text = "" if field.name in ("sources", "label") else _written(getattr(what, field.name))
        if text:
            yield f"{field.name}={text}"


def _written(value: object) -> str:
    """A field's value; nothing of an operand, which is shown as such, and of what is not there."""
    if value is None or value is False or isinstance(value, (Tensor, Operand)):
        return ""
    if isinstance(value, Expr):
        return _expression(value)
    if isinstance(value, tuple):
        parts = [text for part in value if (text := _written(part))]
        return f"({', '.join(parts)})" if parts else ""
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__.lower()}({', '.join(_fields(value))})"
    return str(value)


def _expression(root: Expr) -> str:
    """As `repr` has it, as far as there is room: what is shared is written each time, so that the whole can be endless."""
    parts: list[str] = []
    room = _ROOM
    stack: list[Expr | str] = [root]
    while stack and room > 0:
        item = stack.pop()
        if isinstance(item, Expr) and item.kind in ("load", "call"):
            opening, closing = (f"in{item.attr}[", "]") if item.kind == "load" else (f"{item.attr}(", ")")
            stack.append(closing)
            for k, argument in reversed(list(enumerate(item.args))):
                stack += [argument, ", "] if k else [argument]
            stack.append(opening)
            continue
        parts.append(item if isinstance(item, str) else repr(item))
        room -= len(parts[-1])
    return "".join(parts) + ("..." if stack else "")


def _sizes(shape: Sequence[Size]) -> str:
    return f"[{_joined(shape)}]"


def _joined(sizes: Sequence[Size]) -> str:
    return ", ".join(map(str, sizes))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
