"""Which nodes are ours, and in which islands.

An island is convex: no path leaves it and comes back. Nodes are taken in topological order; each joins the islands of its
predecessors where no path through an outsider forbids it, islands that meet at a node merge when that stays convex, and a node
without a predecessor of ours joins the latest island that it may. One big island is the usual result.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from xyntra_ep.errors import InternalError, UnsupportedError
from xyntra_ep.fusion.checks import Checks
from xyntra_ep.fusion.estimates.plausible import enlarged, traced_sizes
from xyntra_ep.fusion.graph import Graph, Node, NodeId
from xyntra_ep.fusion.ranks import by_definition, with_ranks
from xyntra_ep.fusion.reason import Kind, Reason
from xyntra_ep.fusion.trace import OPS, Context, SymbolPolicy
from xyntra_ep.guard import guarded
from xyntra_ep.tracea.core_ir.ops import Range

QUANTIZE = "QuantizeLinear"
DEQUANTIZE = "DequantizeLinear"
QUANTISED = "quantised"  # ONNX Runtime multiplies it in 8 bits
FUNCTION_DOMAIN = "ai.xyntra"


def analyse(graph: Graph, tell: Callable[[NodeId, InternalError], None] | None = None) -> tuple[dict[NodeId, Reason], Graph]:
    """Reasons of all nodes that cannot be ours, by tracing the whole graph once; what a declined node makes is then opaque.
    And the graph, with the ranks and plausible sizes that were found on the way. ``tell`` hears of faults of ours, each of which
    costs one node."""
    graph = with_ranks(graph, by_definition(graph))
    context = Context(graph=graph, checks=Checks(speculate=True))
    policy = SymbolPolicy(context, trust=True)
    reasons: dict[NodeId, Reason] = {}
    ranks: dict[str, int] = {}
    position = 0

    def declare(name: str, like: Sequence[Range] = ()) -> None:
        nonlocal position
        p = position
        position += 1
        context.add_input(name, p, lambda value, axis: policy.size(value, axis, p, like))

    for value in graph.values.values():
        if value.name not in graph.producer and not value.is_constant:
            _quietly(declare, value.name, context)
    for node in graph.nodes:
        reason: Reason | None = None
        try:
            with guarded("lowering"):
                obstacle = _obstacle(graph, node)
            if obstacle:
                reason = Reason(kind=Kind.OTHER, text=obstacle, nodes=(node.id,))
            else:
                context.run(node)
        except UnsupportedError as error:
            reason = Reason.of(error, Kind.LEGALITY, [node.id])
            if tell is not None and isinstance(error, InternalError):
                tell(node.id, error)
        if reason is not None:
            reasons[node.id] = reason
            for name in filter(None, node.outputs):
                context.tensors.pop(name, None)
                like = _operand_sizes(context, node, graph.values[name].shape, policy.ranges)
                _quietly(partial(declare, like=like), name, context)
        ranks |= {name: context.tensors[name].rank for name in node.outputs if name in context.tensors}
    graph = with_ranks(graph, ranks)
    ranges = enlarged(policy.ranges, context.tensors.values())
    sizes = ((name, traced_sizes(t, ranges)) for name, t in context.tensors.items())
    return reasons, replace(graph, plausible={name: found for name, found in sizes if found})


def _operand_sizes(context: Context, node: Node, shape: Sequence[object] | None, ranges: Mapping[str, Range]) -> Sequence[Range]:
    """The plausible sizes of the first operand that has as many axes as ``shape``: most operators keep most of them."""
    for name in node.inputs:
        t = context.tensors.get(name)
        if t is not None and shape is not None and t.rank == len(shape):
            return traced_sizes(t, ranges)
    return ()


def _quietly(declare: Callable[[str], None], name: str, context: Context) -> None:
    """A value that cannot be a tensor of ours stays undeclared: its readers decline."""
    try:
        with guarded("lowering"):
            declare(name)
    except InternalError as error:
        context.lost[name] = error
    except UnsupportedError:
        return


def _obstacle(graph: Graph, node: Node) -> str:
    """What is around ``node`` that makes it another's; "" where nothing is."""
    if node.owner:
        return f"taken by {node.owner}"
    return ""


@dataclass(slots=True)
class _Islands:
    """Union-find over island numbers, with the islands that reach each one through outsiders."""

    parent: list[int] = field(default_factory=list)
    blocked: list[set[int]] = field(default_factory=list)

    def new(self) -> int:
        self.parent.append(len(self.parent))
        self.blocked.append(set())
        return len(self.parent) - 1

    def find(self, i: int) -> int:
        while self.parent[i] != i:
            i = self.parent[i]
        return i

    def resolve(self, islands: set[int]) -> set[int]:
        return {self.find(i) for i in islands}

    def may_merge(self, a: int, b: int) -> bool:
        return a not in self.resolve(self.blocked[b]) and b not in self.resolve(self.blocked[a])

    def merge(self, a: int, b: int) -> None:
        self.parent[b] = a
        self.blocked[a] |= self.blocked[b]


def partition(graph: Graph, declined: Container[NodeId]) -> list[list[NodeId]]:
    """Convex islands over the nodes that are not declined, each in topological order."""
    islands = _Islands()
    mine: dict[NodeId, int] = {}
    reaching: dict[NodeId, set[int]] = {}  # islands with any path to (or through) the node, its own included
    outside: dict[NodeId, set[int]] = {}  # islands with a path to the node that passes an outsider of that island
    latest: int | None = None
    for node in graph.nodes:
        above, blocked = set(), set()
        near: dict[int, None] = {}
        for p in graph.predecessors(node):
            home = islands.find(mine[p]) if p in mine else None
            reach, out = islands.resolve(reaching[p]), islands.resolve(outside[p])
            above |= reach
            blocked |= out | (reach - {home} if home is not None else reach)
            if home is not None:
                near[home] = None
        if node.id in declined:
            reaching[node.id], outside[node.id] = above, above
            continue
        home = _join(islands, [*sorted(near), *([islands.find(latest)] if latest is not None else [])], blocked)
        islands.blocked[home] |= blocked - {home}
        mine[node.id] = latest = home
        reaching[node.id] = above | {home}
        outside[node.id] = blocked - {home}
    groups: dict[int, list[NodeId]] = {}
    for node_id, i in mine.items():
        groups.setdefault(islands.find(i), []).append(node_id)
    return _acyclic(graph, [sorted(g) for g in groups.values()])


def _acyclic(graph: Graph, groups: list[list[NodeId]]) -> list[list[NodeId]]:
    """Islands can each be convex and still wait for one another in a ring; the smallest one of a ring is taken apart."""
    while (ring := _ring(graph, groups)) is not None:
        smallest = min(ring, key=lambda i: len(groups[i]))
        groups = [g for i, g in enumerate(groups) if i != smallest] + [[n] for n in groups[smallest]]
    return groups


def _ring(graph: Graph, groups: Sequence[Sequence[NodeId]]) -> list[int] | None:
    """Multi-node islands that cannot be put in an order, None when all can."""
    unit: dict[NodeId, int] = {n: i for i, g in enumerate(groups) for n in g}
    for node in graph.nodes:
        unit.setdefault(node.id, len(groups) + node.id)
    waits: dict[int, set[int]] = {u: set() for u in unit.values()}
    for node in graph.nodes:
        waits[unit[node.id]] |= {unit[p] for p in graph.predecessors(node)} - {unit[node.id]}
    feeds: dict[int, list[int]] = {}
    for u, above in waits.items():
        for a in above:
            feeds.setdefault(a, []).append(u)
    ready = [u for u, above in waits.items() if not above]
    left = {u: len(above) for u, above in waits.items()}
    while ready:
        u = ready.pop()
        del left[u]
        for v in feeds.get(u, ()):
            left[v] -= 1
            if not left[v]:
                ready.append(v)
    ring = [u for u in left if u < len(groups) and len(groups[u]) > 1]
    return ring or None


def _join(islands: _Islands, candidates: Sequence[int], blocked: set[int]) -> int:
    """The island for a node: the first candidate that is not blocked, with every other one that can be merged into it."""
    free = [c for c in dict.fromkeys(candidates) if c not in blocked]
    if not free:
        return islands.new()
    home = free[0]
    for other in free[1:]:
        if islands.find(other) != home and islands.may_merge(home, islands.find(other)):
            islands.merge(home, islands.find(other))
    return home


def unwanted(members: Sequence[NodeId], outputs: Sequence[str], least: int) -> Reason | None:
    """Why an island of ``members`` with these ``outputs`` is none, before anybody looks into it; ``least`` is min_island."""
    text = ""
    if len(members) < least:
        text = f"island of {len(members)} below min_island"
    elif not outputs:
        text = "its result is not used"
    return Reason(kind=Kind.OTHER, text=text, nodes=tuple(members)) if text else None


def awaits_inlining(graph: Graph) -> bool:
    """Whether the graph calls outlined functions (`xyntra fuse` writes them): ORT inlines those and shows the graph again."""
    return any(n.domain == FUNCTION_DOMAIN and f"{n.domain}.{n.op_type}" not in OPS for n in graph.nodes)


def is_convex(graph: Graph, members: Sequence[NodeId]) -> bool:
    """Whether no path between members passes an outsider (a check, independent of how the islands were made)."""
    inside = set(members)
    tainted: set[NodeId] = set()  # outsiders that a member reaches
    for node in graph.nodes:
        above = graph.predecessors(node)
        if node.id in inside:
            if above & tainted:
                return False
        elif above & (inside | tainted):
            tainted.add(node.id)
    return True


def reasons_by_operator(graph: Graph, declined: Mapping[NodeId, Reason]) -> Iterator[tuple[str, int]]:
    """("NonZero(unsupported)", 1), ... most frequent first."""
    counts: dict[str, int] = {}
    for node, reason in declined.items():
        key = f"{graph.nodes[node].op_type}({reason})"
        counts[key] = counts.get(key, 0) + 1
    yield from sorted(counts.items(), key=lambda item: (-item[1], item[0]))
