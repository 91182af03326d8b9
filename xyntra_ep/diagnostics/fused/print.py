"""The graph with its islands for people (text, DOT) and programs (JSON)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from xyntra_ep.diagnostics.fused.groups import Partition
from xyntra_ep.fusion.graph import Graph
from xyntra_ep.fusion.trace import CONTROL_FLOW

Printer = Callable[[Graph, Partition], str]


def as_text(graph: Graph, partition: Partition) -> str:
    """A line per node with its island's number in front, or the reason why it has none behind.

    [0]  %y:f32[n] = Add-14(%x, %x)
    [-]  %z:f32[n] = Det-11(%y)   # unsupported
    """
    home = partition.island_of
    first, *nodes, last = graph.text().splitlines()
    lines = [first]
    for node, line in zip(graph.nodes, nodes, strict=True):
        reason = str(partition.declined.get(node.id, ""))
        if reason == CONTROL_FLOW:
            reason += ", its bodies are graphs of their own and not drawn"
        lines.append(f"[{home.get(node.id, '-')}]{line}" + (f"   # {reason}" if reason else ""))
    return "\n".join([*lines, last])


def as_dot(graph: Graph, partition: Partition) -> str:
    """Graphviz, a colour for each island."""
    return graph.dot({int(n): island for n, island in partition.island_of.items()})


def as_json(graph: Graph, partition: Partition) -> str:
    """The graph's rows, each with ``island`` (null: none) and ``declined`` (why)."""
    home = partition.island_of
    described = json.loads(graph.json())
    for node, row in zip(graph.nodes, described["nodes"], strict=True):
        row["island"] = home.get(node.id)
        why = partition.declined.get(node.id)
        row["declined"] = None if why is None else why.text
    return json.dumps(described, indent=1)


PRINTERS: Mapping[str, Printer] = {"dot": as_dot, "json": as_json, "text": as_text}
