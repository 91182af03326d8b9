from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper


@pytest.fixture(scope="session")
def mlp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x [n, 64] -> MatMul -> Add -> Relu -> MatMul -> Add x, and a Det that nobody but ONNX Runtime computes."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array((rng.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in (("w1", (64, 256)), ("b1", (256,)), ("w2", (256, 64)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h0"], name="fc1"),
        helper.make_node("Add", ["h0", "b1"], ["h1"], name="bias"),
        helper.make_node("Relu", ["h1"], ["h2"], name="act"),
        helper.make_node("MatMul", ["h2", "w2"], ["h3"], name="fc2"),
        helper.make_node("Add", ["h3", "x"], ["y"], name="residual"),
        helper.make_node("Transpose", ["y"], ["yt"], name="turn", perm=[1, 0]),
        helper.make_node("MatMul", ["y", "yt"], ["yy"], name="gram"),
        helper.make_node("Det", ["yy"], ["det"], name="det"),
    ]
    graph = helper.make_graph(
        nodes,
        "mlp",
        [helper.make_tensor_value_info("x", 1, ["n", 64])],
        [helper.make_tensor_value_info("y", 1, ["n", 64]), helper.make_tensor_value_info("det", 1, [])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path = tmp_path_factory.mktemp("model") / "mlp.onnx"
    onnx.save(model, path)
    return path
