"""From nodes to lazy tensors: what declines, with which reason, and where sizes come from."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.graph_from_model import graph_from_model, trace_model
from tests.support.models.model_text import check, close, normal, parse
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion import trace as trace_module
from xyntra_ep.fusion.graph import Graph, Node
from xyntra_ep.fusion.tensor import ConcatNode, GemmNode, Leaf, Map, Tensor, TopKNode
from xyntra_ep.fusion.trace import OpSpec, TraceError, find_op, operands_of, trace
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm


def reason(text: str, opset: int = 18) -> str:
    with pytest.raises(UnsupportedError) as caught:
        trace_model(parse(text, opset))
    return caught.value.what


class TestDeclines:
    def test_unknown_operators_and_domains(self) -> None:
        assert reason("(float[N] x) => (float[] y) { y = Frobnicate(x) }") == "unsupported"

    def test_old_versions(self) -> None:
        assert reason("(float[N] x) => (float[] y) { y = BatchNormalization(x, x, x, x, x) }", 6) == "unsupported at opset 6"

    def test_control_flow(self) -> None:
        text = """(bool c, float[N] x) => (float[] y)
            { y = If (c) <then_branch = t () => (float[N] a) { a = Relu(x) },
                          else_branch = e () => (float[N] b) { b = Neg(x) }> }"""
        assert reason(text) == "control-flow"

    def test_types(self) -> None:
        assert "f64" in reason("(double[N] x) => (double[] y) { y = Relu(x) }") or "dtype" in reason(
            "(double[N] x) => (double[] y) { y = Relu(x) }"
        )

    def test_a_result_of_another_type_than_declared(self) -> None:
        """Our meaning of the operator is then not the model's."""
        graph = graph_from_model(parse("(float[N] x) => (float[N] y) { y = Relu(x) }"))
        values = {**graph.values, "y": dataclasses.replace(graph.values["y"], dtype=DType.F16, elem_type=10)}
        with pytest.raises(TraceError, match="dtype f16") as caught:
            trace(dataclasses.replace(graph, values=values), [graph.nodes[0].id], ["x"], trust=True)
        assert caught.value.node == 0

    def test_more_outputs_than_we_compute(self) -> None:
        assert "indices" in reason("(float[1,1,4,4] x) => (float[] y, int64[] i) { y, i = MaxPool<kernel_shape = [2,2]>(x) }")

    def test_missing_inputs(self) -> None:
        graph = graph_from_model(parse("(float[N] x) => (float[N] y) { y = Add(x, x) }"))
        node = dataclasses.replace(graph.nodes[0], inputs=("x", ""))
        with pytest.raises(TraceError, match="input 1 is missing"):
            trace(dataclasses.replace(graph, nodes=(node,)), [node.id], ["x"], trust=True)

    def test_unknown_ranks(self) -> None:
        with pytest.raises(UnsupportedError, match="unknown rank"):
            trace_model(parse("(float[] x) => (float[] y) { y = Relu(x) }"))

    def test_our_own_mistakes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: object) -> Tensor:
            raise IndexError("off by one")

        monkeypatch.setattr(trace_module, "find_op", lambda node: OpSpec(name="Relu", lower=broken))
        assert reason("(float[N] x) => (float[] y) { y = Relu(x) }") == "internal: IndexError: off by one"


class TestOptionalInputs:
    def test_left_out_in_the_middle(self) -> None:
        check(parse("(float[N] x) => (float[] y) <float c = {0.5}> { y = Clip(x, , c) }"), {"x": normal(5)})

    def test_left_out_at_the_end(self) -> None:
        check(parse("(float[N] x) => (float[] y) <float c = {0.5}> { y = Clip(x, c) }"), {"x": normal(5)})

    def test_outputs_left_out(self) -> None:
        """The CPU provider reads through a null pointer here; we have nothing to compare with but the data."""
        x = normal(4, 5)
        model = parse("(float[4,N] x) => (float[] b) <int64[2] s = {1,3}> { , b = Split<axis = 0>(x, s) }")
        close(one_island(model).run({"x": x}), [x[1:]])


class TestSymbols:
    def test_names_are_hints(self) -> None:
        """Every run-time size is bound on its own; that equal names are equal is a guard."""
        _, context = trace_model(parse("(float[N,M] x, float[N,M] z) => (float[] y) { y = Mul(x, z) }"))
        assert len(context.bindings) == 4 and len(context.checks.guards) == 2
        _, plain = trace_model(parse("(float[N,M] x, float[N,M] z) => (float[] y) { y = Mul(x, z) }"), trust=False)
        assert not plain.checks.guards and len(plain.checks.conditions) == 2

    def test_static_sizes_of_a_body_are_hints_too(self) -> None:
        """Nobody checks what a Loop feeds."""
        graph = graph_from_model(parse("(float[1] s) => (float[] t) { t = Tanh(s) }"))

        def bindings(g: Graph) -> int:
            return len(trace(g, [g.nodes[0].id], ["s"], trust=False).bindings)

        assert bindings(graph) == 0
        assert bindings(dataclasses.replace(graph, is_subgraph=True)) == 1

    def test_the_depth_of_a_product_is_that_of_its_weights(self) -> None:
        model = parse("(float[M,K] x) => (float[] y) { y = MatMul(x, w) }", w=normal(8, 6))
        (gemm,) = check(model, {"x": normal(5, 8)}).ops(Gemm)
        assert gemm.inputs[0].shape[-1] == 8 and gemm.inputs[1].shape == (8, 6)

    def test_large_constants_that_decide_are_noted(self) -> None:
        """The digest of a graph covers small constants only."""
        large = normal(trace_module.SMALL_CONSTANT_BYTES)
        _, context = trace_model(parse("(float[N] x) => (float[] y) { y = Mul(x, c) }", c=large))
        assert not context.depends
        found = context.tensor("c")
        assert found is not None
        np.testing.assert_array_equal(context.constant(found, "c"), large)
        assert context.depends == {"c"}


class TestMarks:
    def test_operands_by_field(self) -> None:
        x = Tensor((symbol("n"), 4), DType.F32, Leaf(kind="input", name="x"))
        assert operands_of(GemmNode(a=x, b=x)) == [x, x]
        assert operands_of(ConcatNode(parts=(x, x, x), axis=0)) == [x, x, x]
        assert operands_of(TopKNode(x=x, k=3, largest=True)) == [x]
        assert operands_of(Leaf(kind="input", name="x")) == []

    def test_every_node_is_marked_with_its_own_number(self) -> None:
        graph, context = trace_model(parse("(float[N] x) => (float[] y) { a = Exp(x) b = Neg(a) y = Add(a, b) }"))
        for node in graph.nodes:
            t = context.tensors[node.outputs[0]]
            assert isinstance(t.node, Map) and t.node.sources == {node.id}


def test_domains_are_part_of_a_name() -> None:
    def node(op_type: str, domain: str) -> Node:
        graph = graph_from_model(parse("(float[N] x) => (float[] y) { y = Relu(x) }"))
        return dataclasses.replace(graph.nodes[0], op_type=op_type, domain=domain)

    assert find_op(node("Relu", "")) is find_op(node("Relu", "ai.onnx"))
    with pytest.raises(UnsupportedError, match="unsupported"):
        find_op(node("Relu", "com.example"))
