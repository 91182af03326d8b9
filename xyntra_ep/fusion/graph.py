"""The ONNX graph as Xyntra sees it: typed, immutable rows, printable as text, DOT and JSON.

It is built once per GetCapability call (provider/) and never edited: tracing reads it, partitioning groups its nodes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NewType

import numpy as np
from numpy.typing import NDArray

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Range

NodeId = NewType("NodeId", int)  # position in Graph.nodes, which is a topological order
DeclaredDim = int | str | None  # size, symbolic name, or unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphValue:
    """A named value. ``shape`` is what the model declares (a hint, except for static sizes of graph inputs); None: no rank."""

    name: str
    dtype: DType | None
    elem_type: int
    shape: tuple[DeclaredDim, ...] | None
    is_input: bool = False
    is_output: bool = False
    is_constant: bool = False
    constant_bytes: int = 0
    has_zeros: bool = False  # perhaps many, of a constant; never where products by zero count
    read: Callable[[], NDArray[Any]] | None = None  # constant data without a copy, valid while planning


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """``id`` is the position in the graph, ``ort_id`` the number ORT knows it by. Missing optional inputs are ''."""

    id: NodeId
    ort_id: int
    name: str
    op_type: str
    domain: str
    version: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)
    implicit_inputs: tuple[str, ...] = ()
    owner: str = ""  # another provider that has it already
    has_subgraph: bool = False

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute; strings as str."""
        value = self.attrs.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def need(self, name: str) -> Any:
        if name not in self.attrs:
            raise UnsupportedError(f"attribute {name} is missing")
        return self.attr(name)

    @property
    def title(self) -> str:
        return f"{self.op_type}({self.name})" if self.name else f"{self.op_type}#{self.id}"


@dataclass(frozen=True, kw_only=True)
class Graph:
    nodes: tuple[Node, ...]
    values: Mapping[str, GraphValue]
    opsets: Mapping[str, int] = field(default_factory=dict)
    name: str = ""
    is_subgraph: bool = False  # the body of an If or Loop: nobody checks the sizes of what is fed to it
    is_exact: bool = False  # what is declared about shapes holds: who made the graph sees to it
    strict: bool = False  # option fp32_strict: NaN and Inf show where they do in ONNX Runtime, and nowhere else
    channel_block: int = 0  # channels side by side in tensors of com.microsoft.nchwc on this machine; 0: not known
    dim_hints: Mapping[str, int] = field(default_factory=dict)  # option dim_hints: what named dimensions usually are
    plausible: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)  # sizes of values, found while tracing all of it

    @cached_property
    def producer(self) -> Mapping[str, NodeId]:
        return {o: n.id for n in self.nodes for o in n.outputs if o}

    @cached_property
    def consumers(self) -> Mapping[str, tuple[NodeId, ...]]:
        found: dict[str, list[NodeId]] = {}
        for n in self.nodes:
            for name in dict.fromkeys((*n.inputs, *n.implicit_inputs)):
                if name:
                    found.setdefault(name, []).append(n.id)
        return {name: tuple(ids) for name, ids in found.items()}

    def predecessors(self, node: Node) -> set[NodeId]:
        return {self.producer[i] for i in (*node.inputs, *node.implicit_inputs) if i in self.producer}

    def boundary(self, members: Iterable[NodeId]) -> tuple[list[str], list[str]]:
        """(values flowing in, values flowing out) of a set of nodes, constants left out, in order of first appearance."""
        inside = set(members)
        ordered = sorted(inside)
        made = {o for i in ordered for o in self.nodes[i].outputs if o}
        inputs = dict.fromkeys(
            name
            for i in ordered
            for name in self.nodes[i].inputs
            if name and name not in made and not self.values[name].is_constant
        )
        outputs = [
            o
            for i in ordered
            for o in self.nodes[i].outputs
            if o and (self.values[o].is_output or any(c not in inside for c in self.consumers.get(o, ())))
        ]
        return list(inputs), outputs

    # -- printing

    def _typed(self, name: str) -> str:
        v = self.values.get(name)
        if v is None or not name:
            return name or "_"
        dims = "?" if v.shape is None else "x".join("?" if d is None else str(d) for d in v.shape)
        return f"%{name}:{v.dtype or v.elem_type or '?'}[{dims}]"

    def text(self) -> str:
        """One line per node: outputs = op(inputs) {attributes}."""
        lines = [f"graph {self.name} (" + ", ".join(self._typed(v.name) for v in self.values.values() if v.is_input) + ")"]
        for n in self.nodes:
            attrs = ", ".join(f"{k}={_short(v)}" for k, v in sorted(n.attrs.items()))
            ins = ", ".join(f"%{i}" if i else "_" for i in n.inputs)
            lines.append(
                f"  {', '.join(self._typed(o) for o in n.outputs)} = {n.op_type}-{n.version}({ins})"
                + (f" {{{attrs}}}" if attrs else "")
            )
        lines.append("  return " + ", ".join(f"%{v.name}" for v in self.values.values() if v.is_output))
        return "\n".join(lines)

    def dot(self, island_of: Mapping[int, int] | None = None) -> str:
        """Graphviz; islands (node id -> number) become colours."""
        lines = ["digraph {", "  node [shape=box, style=filled, fillcolor=white];"]
        for n in self.nodes:
            colour = "" if island_of is None or n.id not in island_of else f', fillcolor="/set312/{island_of[n.id] % 12 + 1}"'
            lines.append(f'  n{n.id} [label="{n.op_type}"{colour}];')
            for i in dict.fromkeys(n.inputs):
                if i in self.producer:
                    lines.append(f"  n{self.producer[i]} -> n{n.id};")
        return "\n".join([*lines, "}"])

    def json(self) -> str:
        rows = [
            {
                "id": n.id,
                "name": n.name,
                "op_type": n.op_type,
                "domain": n.domain,
                "version": n.version,
                "inputs": list(n.inputs),
                "outputs": list(n.outputs),
                "attributes": {k: _short(v) for k, v in sorted(n.attrs.items())},
            }
            for n in self.nodes
        ]
        return json.dumps({"name": self.name, "nodes": rows}, indent=1)


def _short(value: Any) -> str:
    text = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
