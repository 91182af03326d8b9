"""Graphs that are made to keep whoever looks through them busy: a session is there at once, and nothing is our fault."""

from __future__ import annotations

import numpy as np
import onnx.numpy_helper
import onnx.parser
import onnxruntime as ort
import pytest

import xyntra_ep

pytestmark = pytest.mark.compiler("cc")


def claimed(nodes: list[str], weights: dict[str, tuple[int, ...]]) -> bool:
    """Whether a session of the graph as it stands has all of it."""
    text = f'<ir_version: 10, opset_import: ["" : 18]> g (float[N,8] x) => (float[N,8] y) {{ {" ".join(nodes)} }}'
    model = onnx.parser.parse_model(text)
    for name, shape in weights.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.full(shape, 1e-9, np.float32), name))
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=[("XyntraEP", {"claim": "all"})])
    found = xyntra_ep.explain(session)
    return found.claimed == found.total and not found.faults


def test_constants_with_more_ways_to_them_than_can_be_walked() -> None:
    steps = [f"d{i} = Neg(c{i}) c{i + 1} = Sub(c{i}, d{i})" for i in range(100)]  # 2^100 ways
    assert claimed(["c0 = Add(W, W)", *steps, "y = MatMul(x, c100)"], {"W": (8, 8)})


def test_an_adapter_far_from_its_product() -> None:
    steps = [f"p{i + 1} = Add(p{i}, c)" for i in range(1500)]
    begin = ["p0 = MatMul(x, W)", "t = MatMul(x, A)", "u = MatMul(t, B)"]
    assert claimed([*begin, *steps, "y = Add(p1500, u)"], {"W": (8, 8), "A": (8, 2), "B": (2, 8), "c": (8,)})
