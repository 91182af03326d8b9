"""Groups that cannot be functions stay single nodes, with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
import pytest

from tests.diagnostics.fused_support import build, drift, feeds_of, fused, run
from xyntra_ep.diagnostics.fused import rewrite as fused_rewrite
from xyntra_ep.diagnostics.fused.graph import source_of
from xyntra_ep.diagnostics.fused.groups import Group, Island, Left, find_groups
from xyntra_ep.fusion.graph import Graph, NodeId
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Operand, Pointwise, Program, Value, ValueKind

CROSSED = """g (float[n] x, float[n] y) => (float[n] u, float[n] v)
 {a = Relu(x) b = Relu(y) u = Mul(a, a) v = Add(b, x)}"""
STRAIGHT = "g (float[n] x) => (float[n] y) {a = Relu(x) b = Neg(a) c = Identity(b) y = Mul(c, c)}"


def graph_of(model: onnx.ModelProto) -> Graph:
    return source_of(model, Path()).graph


def program(sources: Sequence[Sequence[int]], *, constant: Sequence[int] = ()) -> Program:
    """Pointwise ops that came from the nodes ``sources``; those at ``constant`` read a constant, the others the input."""
    shape = (4,)
    values = [
        Value(kind=ValueKind.INPUT, dtype=DType.F32, shape=shape),
        Value(kind=ValueKind.CONST, dtype=DType.F32, shape=shape),
        Value(kind=ValueKind.TEMP, dtype=DType.F32, shape=shape),
    ]
    made = Program(values=values)
    body = E.load(0, E.axis(0), dtype=DType.F32)
    views = [Operand(value=i, dtype=DType.F32, shape=shape, strides=(1,)) for i in range(3)]
    for i, source in enumerate(sources):
        made.ops.append(Pointwise(domain=shape, inputs=(views[i in constant],), bodies=(body,), outputs=(views[2],)))
        made.sources.append(tuple(NodeId(n) for n in source))
    return made


def groups_of(
    model: onnx.ModelProto, sources: Sequence[Sequence[int]], constant: Sequence[int] = ()
) -> tuple[list[Group], list[Left]]:
    graph = graph_of(model)
    nodes = tuple(node.id for node in graph.nodes)
    return find_groups(graph, [Island(nodes=nodes, program=program(sources, constant=constant))])


def test_a_view_between_its_nodes_joins_a_group() -> None:
    groups, left = groups_of(build(STRAIGHT, {}, opset=17), [[0], [1, 3]])
    assert [sorted(g.nodes) for g in groups] == [[1, 2, 3]] and groups[0].extra == {2} and not left


def test_another_kernel_between_its_nodes_forbids_a_group() -> None:
    groups, left = groups_of(build(STRAIGHT, {}, opset=17), [[0, 3], [1]])
    assert groups == []
    assert left == [Left(nodes=(NodeId(0), NodeId(3)), reason="a path between its nodes passes Neg#1")]


def test_a_node_of_two_kernels_belongs_to_the_first() -> None:
    groups, _ = groups_of(build(STRAIGHT, {}, opset=17), [[0, 1], [1, 2, 3]])
    assert [sorted(g.nodes) for g in groups] == [[0, 1], [2, 3]] and groups[1].moved == {1}


def test_the_kernel_of_more_nodes_takes_those_of_its_parts() -> None:
    groups, _ = groups_of(build(STRAIGHT, {}, opset=17), [[1], [1, 2]])
    assert [sorted(g.nodes) for g in groups] == [[1, 2]]


def test_work_on_constants_makes_no_group() -> None:
    groups, _ = groups_of(build(STRAIGHT, {}, opset=17), [[0, 1]], constant=[0])
    assert groups == []


def test_groups_that_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """{Relu(x), Add} and {Relu(y), Mul}: each is convex, but Mul needs the first and Add the second."""
    model = build(CROSSED, {}, opset=17)
    groups, left = groups_of(model, [[0, 3], [1, 2]])
    assert len(groups) == 2 and not left
    monkeypatch.setattr(fused_rewrite, "find_groups", lambda graph, islands: (list(groups), []))
    source, target, summary = fused(model, tmp_path)
    assert len(summary.functions) == 1
    assert [u.reason for u in summary.unfused] == ["its kernel and another wait for each other"]
    assert "stay single nodes: Relu#" in str(summary)
    feeds = feeds_of(model, {"n": 4})
    assert drift(run(target, feeds), run(source, feeds)) == 0
