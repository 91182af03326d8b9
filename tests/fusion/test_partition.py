"""Islands are convex and can be put in an order, whatever is declined."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import parse
from xyntra_ep.fusion.graph import Graph, GraphValue, Node, NodeId
from xyntra_ep.fusion.partition import analyse, is_convex, partition, reasons_by_operator
from xyntra_ep.tracea.core_ir.dtypes import DType


def dag(reads: Sequence[Sequence[int]]) -> Graph:
    """Node i reads the nodes ``reads[i]``."""
    names = ["x", *(f"v{i}" for i in range(len(reads)))]
    values = {n: GraphValue(name=n, dtype=DType.F32, elem_type=1, shape=(4,), is_input=n == "x") for n in names}
    nodes = tuple(
        Node(
            id=NodeId(i),
            ort_id=100 + i,
            name=f"n{i}",
            op_type="Sum",
            domain="",
            version=13,
            inputs=tuple(f"v{j}" for j in above) or ("x",),
            outputs=(f"v{i}",),
        )
        for i, above in enumerate(reads)
    )
    return Graph(nodes=nodes, values=values)


def has_order(graph: Graph, groups: Sequence[Sequence[NodeId]]) -> bool:
    """Whether islands and single outsiders can run one after another (Kahn)."""
    unit = {n: i for i, g in enumerate(groups) for n in g}
    for n in graph.nodes:
        unit.setdefault(n.id, len(unit) + len(groups))
    waits: dict[int, set[int]] = {u: set() for u in unit.values()}
    for n in graph.nodes:
        waits[unit[n.id]] |= {unit[p] for p in graph.predecessors(n)} - {unit[n.id]}
    while ready := [u for u, w in waits.items() if not w]:
        for u in ready:
            del waits[u]
        for w in waits.values():
            w.difference_update(ready)
    return not waits


def islands_of(reads: Sequence[Sequence[int]], declined: Sequence[int]) -> list[list[NodeId]]:
    graph = dag(reads)
    groups = partition(graph, {NodeId(i) for i in declined})
    mine = sorted(n for g in groups for n in g)
    assert mine == sorted({n.id for n in graph.nodes} - set(declined)), "every node is in one island"
    for g in groups:
        assert g == sorted(g) and is_convex(graph, g)
    assert has_order(graph, groups)
    return groups


@st.composite
def random_dags(draw: st.DrawFn) -> tuple[list[list[int]], list[int]]:
    n = draw(st.integers(1, 24))
    reads = [sorted(draw(st.sets(st.integers(max(0, i - 8), i - 1), max_size=3))) if i else [] for i in range(n)]
    declined = sorted(draw(st.sets(st.integers(0, n - 1), max_size=n // 2)))
    return reads, declined


@settings(max_examples=600)
@given(random_dags())
def test_random_graphs(case: tuple[list[list[int]], list[int]]) -> None:
    islands_of(*case)


@settings(max_examples=100)
@given(random_dags())
def test_nothing_declined_is_one_island(case: tuple[list[list[int]], list[int]]) -> None:
    assert len(islands_of(case[0], [])) == 1


def test_a_path_through_an_outsider_splits() -> None:
    """0 -> 1 (declined) -> 2, and 0 -> 2."""
    assert islands_of([[], [0], [0, 1]], [1]) == [[0], [2]]


def test_beside_an_outsider_nothing_splits() -> None:
    """0 -> 1, 0 -> 2 (declined): 1 stays with 0."""
    assert islands_of([[], [0], [0], [1]], [2]) == [[0, 1, 3]]


def test_two_islands_that_wait_for_each_other() -> None:
    """a0 -> o0 -> b1 and b0 -> o1 -> a1, with a0 -> a1 and b0 -> b1: each convex, together a ring."""
    islands_of([[], [], [0], [1], [0, 3], [1, 2]], [2, 3])


def test_islands_that_reach_one_another_are_not_merged() -> None:
    """0 -> 1 (declined) -> 2; 3 stays with 2; 4 reads 0 and 3: merging both sides would have to be taken apart again."""
    assert [2, 3] in islands_of([[], [0], [1], [], [0, 3]], [1])


def test_convexity_is_judged_independently() -> None:
    graph = dag([[], [0], [1]])
    assert is_convex(graph, [NodeId(0), NodeId(1)])
    assert not is_convex(graph, [NodeId(0), NodeId(2)])


def reasons(graph: Graph) -> dict[str, str]:
    return {graph.nodes[n].op_type: reason.text for n, reason in analyse(graph)[0].items()}


def test_reasons() -> None:
    graph = graph_from_model(
        parse("(float[N] x) => (float[N] y, int64[A,B] z) { z = NonZero(x) s = Unknown(x) t = Relu(s) y = Exp(x) }")
    )
    assert reasons(graph) == {"NonZero": "unsupported", "Unknown": "unsupported", "Relu": "no known tensor type of input s"}
    assert next(reasons_by_operator(graph, analyse(graph)[0])) == ("NonZero(unsupported)", 1)


def test_nodes_after_a_declined_one_are_ours() -> None:
    graph = graph_from_model(parse("(float[N] x) => (float[A,B] y) { z = NonZero(x) f = Cast<to = 1>(z) y = Exp(f) }"))
    assert reasons(graph) == {"NonZero": "unsupported"}


def test_quantised_neighbours_are_ours_together() -> None:
    graph = graph_from_model(
        parse(
            """(float[4,8] x) => (float[4,8] y) <float s = {0.1}, uint8 z = {0}>
            { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) m = Relu(d)
              q2 = QuantizeLinear(m, s, z) y = DequantizeLinear(q2, s, z) }"""
        )
    )
    assert reasons(graph) == {}


def test_control_flow_stays() -> None:
    graph = graph_from_model(
        parse(
            """(bool c, float[N] x) => (float[N] y)
            { y = If (c) <then_branch = t () => (float[N] a) { a = Relu(x) },
                          else_branch = e () => (float[N] b) { b = Exp(x) }> }"""
        )
    )
    assert reasons(graph) == {"If": "control-flow"}
