"""Operators of which ONNX infers no type: what a file shows is what a session does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from tests.diagnostics.fused_support import drift, run
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.fused.model import fuse, picture

ML, MICROSOFT = "ai.onnx.ml", "com.microsoft"


def model_of(nodes: list[NodeProto], width: int = 64) -> ModelProto:
    """x [N, 4] -> y; a weight w [4, width] and a row mean [4] are there for whoever wants them."""
    rng = np.random.default_rng(0)
    arrays = {"mean": rng.standard_normal(4), "w": rng.standard_normal((4, width))}
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", None])
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    opsets = [helper.make_opsetid(domain, version) for domain, version in (("", 17), (ML, 3), (MICROSOFT, 1), ("my.own", 1))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


SCALED = [
    helper.make_node("Scaler", ["x"], ["a"], domain=ML, offset=[0.5] * 4, scale=[2.0] * 4),
    helper.make_node("Sub", ["a", "mean"], ["b"]),
    helper.make_node("MatMul", ["b", "w"], ["c"]),
    helper.make_node("Normalizer", ["c"], ["d"], domain=ML, norm="L2"),
    helper.make_node("Exp", ["d"], ["y"]),
]
CONTRIBUTED = [
    helper.make_node("Gelu", ["x"], ["a"], domain=MICROSOFT),
    helper.make_node("Sub", ["a", "mean"], ["b"]),
    helper.make_node("MatMul", ["b", "w"], ["y"]),
]


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("nodes", [SCALED, CONTRIBUTED], ids=["scikit-learn", "contributed"])
@pytest.mark.parametrize("width", [3, 128], ids=["small", "large"])  # large: of weights the question has the shapes only
def test_a_file_shows_what_a_session_takes(nodes: list[NodeProto], width: int, tmp_path: Path) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "f.onnx"
    onnx.save(model_of(nodes, width), source)
    summary = fuse(source, target)
    found = explain(source, options={"claim": "all"})
    assert found.claimed == found.total == len(nodes) and not summary.declined and summary.islands == 1
    assert summary.nodes_after < len(nodes)
    feeds = {"x": np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)}
    assert drift(run(target, feeds), run(source, feeds)) <= 2e-5


def test_what_nobody_knows_is_said(tmp_path: Path) -> None:
    nodes = [helper.make_node("Mine", ["x"], ["a"], domain="my.own"), helper.make_node("Exp", ["a"], ["y"])]
    onnx.save(model_of(nodes), path := tmp_path / "m.onnx")
    _, mine, exp, _ = picture(path, "text").splitlines()
    assert mine == "[-]  %a:?[?] = Mine-1(%x)   # unsupported"
    assert exp.endswith("# no known tensor type of input a")
    said = str(fuse(path, tmp_path / "f.onnx"))
    assert "2 nodes in 0 islands became 2, none of them a function: XyntraEP could take no node\n" in said


def test_bodies_are_left_and_that_is_said(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[n, 8] x, int64 m) => (float[n, 8] y) {
        a = Exp(x)
        l = Loop(m, , a) <body = b (int64 i, bool go, float[n, 8] u) => (bool on, float[n, 8] v) {
            on = Identity(go)
            v = If(go) <then_branch = t () => (float[n, 8] p) { p = Tanh(u) },
                        else_branch = e () => (float[n, 8] q) { q = Neg(u) }> }>
        y = Identity(l) }"""
    onnx.save(onnx.parser.parse_model(text), path := tmp_path / "m.onnx")
    summary = fuse(path, tmp_path / "f.onnx")
    assert summary.bodies == {"Loop": 4}
    said = str(summary)
    assert "  bodies of Loop, 4 nodes in them, stay as they are; a session fuses each as a graph of its own\n" in said
    assert "control-flow" not in said and "none of them a function: each kernel computes a single node\n" in said
    assert "# control-flow, its bodies are graphs of their own and not drawn" in picture(path, "text")
