"""The graph, printed and asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.support.models.graph_from_model import graph_from_model
from tests.support.models.model_text import parse
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.graph import Graph, GraphValue, NodeId

GRAPH = graph_from_model(
    parse(
        """(float[N,4] x, float[?,M] unused) => (float[] y, float[] z) <float c = {2.0}, float[4] empty = {1.,2.,3.,4.}>
        { a = Mul(x, c) s = Softmax<axis = 1>(a) y = Clip(s, , c) z = Neg(a) }"""
    )
)


def test_text() -> None:
    assert GRAPH.text().splitlines() == [
        "graph g (%x:f32[Nx4], %unused:f32[?xM])",
        "  %a:f32[Nx4] = Mul-14(%x, %c)",
        "  %s:f32[Nx4] = Softmax-13(%a) {axis=1}",
        "  %y:f32[Nx4] = Clip-13(%s, _, %c)",
        "  %z:f32[Nx4] = Neg-13(%a)",
        "  return %y, %z",
    ]


def test_unknown_ranks_and_types_print() -> None:
    values = {"v": GraphValue(name="v", dtype=None, elem_type=8, shape=None, is_input=True)}
    assert Graph(nodes=(), values=values).text().startswith("graph  (%v:8[?])")


def test_long_attributes_are_cut() -> None:
    graph = graph_from_model(parse("(float[N] x) => (float[] y) { y = Foo<a = [" + ",".join(["12345"] * 30) + "]>(x) }"))
    assert "..." in graph.text() and max(map(len, graph.text().splitlines())) < 150


def test_dot() -> None:
    dot = GRAPH.dot({0: 0, 1: 0})
    assert dot.startswith("digraph {") and dot.endswith("}")
    assert '  n0 [label="Mul", fillcolor="/set312/1"];' in dot and '  n3 [label="Neg"];' in dot
    assert "  n0 -> n1;" in dot and "  n1 -> n2;" in dot and "n3 -> " not in dot


def test_json() -> None:
    read = json.loads(GRAPH.json())
    assert read["name"] == "g" and [n["op_type"] for n in read["nodes"]] == ["Mul", "Softmax", "Clip", "Neg"]
    assert read["nodes"][1]["attributes"] == {"axis": "1"} and read["nodes"][2]["inputs"] == ["s", "", "c"]


def test_producers_and_consumers() -> None:
    assert GRAPH.producer == {"a": 0, "s": 1, "y": 2, "z": 3}
    assert GRAPH.consumers["a"] == (1, 3) and GRAPH.consumers["c"] == (0, 2)
    assert GRAPH.predecessors(GRAPH.nodes[3]) == {0}


def test_boundary() -> None:
    """Constants are no inputs; what the outside or the caller reads is an output."""
    assert GRAPH.boundary([NodeId(0), NodeId(1)]) == (["x"], ["a", "s"])
    assert GRAPH.boundary([NodeId(2)]) == (["s"], ["y"])
    assert GRAPH.boundary([n.id for n in GRAPH.nodes]) == (["x"], ["y", "z"])


def test_a_body_reads_from_around_it() -> None:
    """What an If needs from outside keeps its producer's result alive."""
    graph = graph_from_model(
        parse(
            """(bool c, float[N] x) => (float[] y)
            { h = Exp(x) y = If (c) <then_branch = t () => (float[N] a) { a = Relu(h) },
                                    else_branch = e () => (float[N] b) { b = Neg(h) }> }"""
        )
    )
    assert graph.nodes[1].has_subgraph


def test_attributes() -> None:
    node = GRAPH.nodes[1]
    assert node.attr("axis") == 1 and node.attr("missing", 7) == 7 and node.title == "Softmax#1"
    with pytest.raises(UnsupportedError, match="attribute missing is missing"):
        node.need("missing")


def test_arrays_print_by_type_and_shape() -> None:
    from xyntra_ep.fusion.graph import _short

    assert _short(np.zeros((2, 3), np.float32)) == "float32[2, 3]"
