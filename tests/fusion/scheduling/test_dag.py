"""The graph of lazy tensors keeps its order and its uses while nodes are replaced."""

from __future__ import annotations

import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import parse
from xyntra_ep.fusion.passes.fuse_rows import fuse_rows
from xyntra_ep.fusion.scheduling.dag import Dag
from xyntra_ep.fusion.tensor import Tensor, TNode
from xyntra_ep.fusion.trace import trace

NORM = """m{i} = ReduceMean<axes = [{axis}]>(x{i}) d{i} = Sub(x{i}, m{i}) q{i} = Mul(d{i}, d{i})
    v{i} = ReduceMean<axes = [{axis}]>(q{i}) s{i} = Sqrt(v{i}) x{j} = Div(d{i}, s{i})"""


def dag_of(nodes: str, outputs: str) -> Dag:
    model = parse(f"(float[2,3,4] x0) => ({outputs}) {{ {nodes} }}", 17)
    graph = graph_from_model(model)
    context = trace(graph, [n.id for n in graph.nodes], ["x0"], trust=True)
    return Dag([context.tensors[o.name] for o in model.graph.output])


def uses(dag: Dag) -> dict[int, set[int]]:
    return {node: {id(r) for r in readers} for node, readers in dag.uses.items()}


@pytest.mark.parametrize("axis", [1, 2])  # the rows of axis 1 are a permutation of what is stored
@pytest.mark.parametrize("outputs", ["float[] x3", "float[] x3, float[] x1, float[] m1"])
def test_a_substitution_leaves_what_a_fresh_look_finds(axis: int, outputs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = dag_of(" ".join(NORM.format(i=i, j=i + 1, axis=axis) for i in range(3)), outputs)
    substitute, seen = Dag.substitute, []

    def checked(self: Dag, node: TNode, by: Tensor) -> None:
        substitute(self, node, by)
        kept, order = uses(self), {id(n): i for i, n in enumerate(self.order)}
        assert all(order[id(t.node)] < order[id(n)] == self.position(n) for n in self.order for t in self.operands(n))
        self.refresh()
        assert kept == uses(self) and set(order) == {id(n) for n in self.order}
        seen.append(node)

    monkeypatch.setattr(Dag, "substitute", checked)
    assert fuse_rows(dag) and seen
