"""Which nodes become one kernel: the islands of a graph, and in each island the groups of nodes behind its core-IR ops.

islands = find_islands(graph).islands
groups, left = find_groups(graph, islands)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.fusion.partition import analyse, partition, unwanted
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import TraceError, trace
from xyntra_ep.guard import guarded
from xyntra_ep.tracea.core_ir.ops import CoreOp, Gemm, Program, RowReduce, ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Island:
    """Nodes that one plan computes, and how (the alternative that trusts the model's declared shapes)."""

    nodes: tuple[NodeId, ...]
    program: Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """``declined``: why a node is not in an island."""

    islands: tuple[Island, ...]
    declined: Mapping[NodeId, Reason]

    @property
    def island_of(self) -> dict[NodeId, int]:
        return {n: number for number, island in enumerate(self.islands) for n in island.nodes}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Nodes behind one kernel, its core-IR ``op`` and the ``program`` of its operands. ``moved``: nodes of the op that were given
    to another group. ``extra``: nodes that are not the op's own; views that lie between its nodes, a bias that was moved here."""

    op: CoreOp
    program: Program
    nodes: frozenset[NodeId]
    moved: frozenset[NodeId] = frozenset()
    extra: frozenset[NodeId] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A group that stays as single nodes, and why."""

    nodes: tuple[NodeId, ...]
    reason: str


def find_islands(graph: Graph, least: int = 1) -> Partition:
    """What XyntraEP could claim of ``graph`` (option claim=all) in islands of ``least`` nodes or more, before any kernel is
    compiled."""
    declined, graph = analyse(graph)
    while True:
        before = len(declined)
        islands: list[Island] = []
        for members in partition(graph, declined):
            inputs, outputs = graph.boundary(members)
            if (reason := unwanted(members, outputs, least)) is not None:
                declined.update(dict.fromkeys(members, reason))
                continue
            try:
                traced = trace(graph, members, inputs, trust=True)
                traced.faults.clear()  # whoever runs the functions judges the data
                with guarded("building"):
                    islands.append(Island(nodes=tuple(members), program=build_program(traced, inputs, outputs)))
            except TraceError as error:
                declined[error.node] = Reason.of(error.cause, Kind.LEGALITY, [error.node])
            except UnsupportedError as error:
                declined.update(dict.fromkeys(members, Reason.of(error, Kind.LEGALITY, members)))
        if len(declined) == before:
            return Partition(islands=tuple(islands), declined=declined)


def find_groups(graph: Graph, islands: Sequence[Island]) -> tuple[list[Group], list[Left]]:
    """Disjoint groups of two or more nodes, each closed under paths between its members, in the order of their kernels."""
    raw = [group for island in islands for group in _of_island(island)]
    raw = _with_their_bias(graph, raw)
    home = {n: number for number, island in enumerate(islands) for n in island.nodes}
    owner = {n: number for number, group in enumerate(raw) for n in group.nodes}
    groups: list[Group] = []
    left: list[Left] = []
    for number, group in enumerate(raw):
        between = _between(graph, group.nodes)
        inside = {home[n] for n in group.nodes}
        foreign = [n for n in between if owner.setdefault(n, number) != number or home.get(n) not in inside]
        if foreign:
            reason = f"a path between its nodes passes {graph.nodes[foreign[0]].title}"
            left.append(Left(nodes=tuple(sorted(group.nodes)), reason=reason))
        elif len(group.nodes) + len(between) > 1:
            groups.append(replace(group, nodes=group.nodes | between, extra=group.extra | between))
    return groups, left


def _of_island(island: Island) -> list[Group]:
    """Ops whose nodes are all another's join it; a node that several kernels compute belongs to the first."""
    program = island.program
    groups: list[Group] = []
    for op, nodes in _ops_on_inputs(program):
        new = Group(op=op, program=program, nodes=nodes)
        for i in [i for i, g in enumerate(groups) if g.nodes & nodes]:
            old = groups[i]
            if nodes <= old.nodes or old.nodes < nodes:
                best = max((old, new), key=lambda g: (g.op.naming_rank, len(g.nodes)))
                new = replace(best, nodes=old.nodes | new.nodes)
                groups[i] = replace(old, nodes=frozenset())
            else:
                new = replace(new, nodes=new.nodes - old.nodes, moved=new.moved | (new.nodes & old.nodes))
        groups = [g for g in groups if g.nodes]
        if new.nodes:
            groups.append(new)
    return groups


def _ops_on_inputs(program: Program) -> Iterator[tuple[CoreOp, frozenset[NodeId]]]:
    """The ops with their nodes, without work on constants: that is done once, when a session is created."""
    fed: set[int] = {i for i, v in enumerate(program.values) if v.kind is ValueKind.INPUT}
    for op, source in zip(program.ops, program.sources, strict=True):
        if not op.inputs or any(operand.value in fed for operand in op.inputs):  # without inputs: index arithmetic
            fed.update(operand.value for operand in op.written)
            if source:
                yield op, frozenset(NodeId(n) for n in source)


def _with_their_bias(graph: Graph, groups: list[Group]) -> list[Group]:
    """A row kernel may add the bias of the product before it; people and other runtimes look for the bias at the product.

    rows(y + bias + residual), y = x @ w  ->  rows(y' + residual), y' = x @ w + bias
    """
    groups = list(groups)
    owner = {n: i for i, g in enumerate(groups) for n in g.nodes}
    for i, rows in enumerate(groups):
        if not isinstance(rows.op, RowReduce):
            continue
        for n in sorted(rows.nodes):
            product = _product_before(graph, n)
            home = owner.get(product) if product is not None else None
            if home is None or home == i or not isinstance(groups[home].op, Gemm) or len(groups[i].nodes) < 2:
                continue
            groups[home] = replace(groups[home], nodes=groups[home].nodes | {n}, extra=groups[home].extra | {n})
            groups[i] = replace(groups[i], nodes=groups[i].nodes - {n}, moved=groups[i].moved | {n})
    return groups


def _product_before(graph: Graph, n: NodeId) -> NodeId | None:
    """The MatMul to whose result alone the node ``n`` adds a constant of one axis."""
    node = graph.nodes[n]
    if node.op_type != "Add" or node.domain:
        return None
    for product, bias in (node.inputs, node.inputs[::-1]):
        value, maker = graph.values[bias], graph.producer.get(product)
        if maker is None or not value.is_constant or value.shape is None or len(value.shape) != 1:
            continue
        if graph.nodes[maker].op_type == "MatMul" and graph.consumers[product] == (n,) and not graph.values[product].is_output:
            return maker
    return None


def _between(graph: Graph, members: frozenset[NodeId]) -> frozenset[NodeId]:
    """Nodes outside on a path from one member to another; the order of nodes is topological, so they lie between them."""
    low, high = min(members), max(members)
    below: set[NodeId] = set(members)
    for node in graph.nodes[low : high + 1]:
        if graph.predecessors(node) & below:
            below.add(node.id)
    above: set[NodeId] = set(members)
    for node in reversed(graph.nodes[low : high + 1]):
        if node.id in above:
            above |= graph.predecessors(node)
    return frozenset((below & above) - members)
