"""The page of `explain --passes`: what each pass did to the nodes of an island.

g, island0: Transpose x2, MatMul x2, Softmax
  trace                5 nodes -> 3
  fuse_attention       3 -> 1
    fused        MatMul x2, Softmax (scores, p, y)
  lower_to_ops         1 -> 1
    removed      Transpose x2 (t, u)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from xyntra_ep.fusion.graph import NodeId
from xyntra_ep.wording import counted

if TYPE_CHECKING:
    from xyntra_ep.diagnostics.explain import GraphReport, IslandReport
    from xyntra_ep.fusion.dump import Step

_NAMED = 6  # nodes of a line that are named
_Nodes = Mapping[int, tuple[str, str]]  # op type and name, by number


def passes_text(graphs: Sequence[GraphReport], name: str | None) -> str:
    """What passes did to each island, or to the nodes called ``name``; "" where no island has any."""
    parts: list[str] = []
    for graph in graphs:
        wanted = None if name is None else [n for n, (_, called) in graph.nodes.items() if called == name]
        for island in graph.islands:
            inside = island.nodes if wanted is None else [n for n in wanted if n in island.nodes]
            if inside:
                parts.append("\n".join(_island_lines(graph, island, frozenset(inside))))
    return "\n\n".join(parts)


def _island_lines(graph: GraphReport, island: IslandReport, wanted: frozenset[int]) -> Iterator[str]:
    yield f"{graph.name or 'graph'}, {island.name}: {_kinds(graph.nodes, island.nodes)}"
    for number, step in enumerate(island.passes):
        before = counted(step.before, "node") if number == 0 else str(step.before)
        yield f"  {step.name:<20} {before} -> {step.after}"
        yield from (f"    {what:<12} {text}" for what, text in _touched(graph.nodes, step, wanted))


def _touched(nodes: _Nodes, step: Step, wanted: frozenset[int]) -> Iterator[tuple[str, str]]:
    """(what became of them, which nodes), alike groups together; groups without one of ``wanted`` left out."""
    alike: dict[str, list[Sequence[NodeId]]] = {}
    for group in step.fused:
        if not wanted.isdisjoint(group):
            alike.setdefault(_kinds(nodes, group), []).append(group)
    for kinds, of in alike.items():
        yield f"fused x{len(of)}" if len(of) > 1 else "fused", kinds + _names(nodes, of[0], more=len(of) > 1)
    for what, touched in (("changed", step.changed), ("removed", step.removed)):
        found = [n for n in touched if n in wanted]
        if found:
            yield what, _kinds(nodes, found) + _names(nodes, found)
    by_rule: dict[str, list[Sequence[NodeId]]] = {}
    for rule, ruled in step.rules:
        if not wanted.isdisjoint(ruled):
            by_rule.setdefault(rule, []).append(ruled)
    for rule, groups in by_rule.items():
        times = f" x{len(groups)}" if len(groups) > 1 else ""
        yield f"rule{times}", f"{rule}: {_kinds(nodes, groups[0])}{_names(nodes, groups[0], more=len(groups) > 1)}"
    for why in step.refused:
        if not wanted.isdisjoint(why.nodes):
            yield "refused", f"{_kinds(nodes, why.nodes)}{_names(nodes, why.nodes)}: {why}"


def _kinds(nodes: _Nodes, numbers: Sequence[int]) -> str:
    kinds = Counter(nodes[n][0] for n in numbers)
    return ", ".join(kind if n == 1 else f"{kind} x{n}" for kind, n in kinds.most_common())


def _names(nodes: _Nodes, numbers: Sequence[int], more: bool = False) -> str:
    names = [nodes[n][1] for n in numbers if nodes[n][1]]
    shown = names[:_NAMED] + (["..."] if more or len(names) > _NAMED else [])
    return f" ({', '.join(shown)})" if names else ""
