"""Projections of one tensor become one product; what must not be joined stays apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto, numpy_helper

from tests.support.models.alternatives import one_island
from xyntra_ep.tracea.core_ir.ops import Gemm

K = 6


def model(widths: tuple[int, ...], *, bias: bool, output: str = "", scale_first: bool = False) -> onnx.ModelProto:
    """x [b, s, K] times one weight per width, each [+ bias], reshaped so that its readers are views."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []
    constants.append(numpy_helper.from_array(np.array([0, -1]), "flat"))
    results = []
    for i, n in enumerate(widths):
        constants.append(numpy_helper.from_array(rng.standard_normal((K, n)).astype(np.float32), f"w{i}"))
        nodes.append(oh.make_node("MatMul", ["x", f"w{i}"], [f"m{i}"]))
        last = f"m{i}"
        if bias:
            constants.append(numpy_helper.from_array(rng.standard_normal(n).astype(np.float32), f"b{i}"))
            nodes.append(oh.make_node("Add", [last, f"b{i}"], [f"a{i}"]))
            last = f"a{i}"
        if scale_first and i == 0:
            nodes.append(oh.make_node("Mul", [last, last], ["squared"]))
            last = "squared"
        nodes.append(oh.make_node("Reshape", [last, "flat"], [f"t{i}"]))
        results.append(f"t{i}")
    nodes.append(oh.make_node("Concat", results, ["y"], axis=1))
    outputs = [oh.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    if output:
        outputs.append(oh.make_tensor_value_info(output, TensorProto.FLOAT, None))
    x = oh.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "s", K])
    graph = oh.make_graph(nodes, "projections", [x], outputs, constants)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


def products(island: Any) -> list[Gemm]:
    return [op for op in island.program.ops if isinstance(op, Gemm)]


@pytest.mark.parametrize("bias", [False, True])
def test_projections_of_one_tensor_are_one_product(bias: bool) -> None:
    (product,) = products(one_island(model((3, 5, 4), bias=bias)))
    assert product.output.shape[-1] == 12


def test_a_projection_that_is_an_output_stays_apart() -> None:
    widths = sorted(p.output.shape[-1] for p in products(one_island(model((3, 5, 4), bias=True, output="a1"))))  # type: ignore[type-var]  # ints
    assert widths == [5, 7]


def test_a_projection_with_more_than_a_bias_stays_apart() -> None:
    widths = sorted(p.output.shape[-1] for p in products(one_island(model((3, 5, 4), bias=False, scale_first=True))))  # type: ignore[type-var]  # ints
    assert widths == [3, 9]


@pytest.mark.parametrize("bias", [False, True])
def test_the_joined_product_gives_the_same_numbers(bias: bool) -> None:
    m = model((3, 5, 4), bias=bias)
    x = np.random.default_rng(1).standard_normal((2, 3, K)).astype(np.float32)
    (got,) = one_island(m).run({"x": x})
    weights = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in m.graph.initializer}
    parts = [x.astype(np.float64) @ weights[f"w{i}"] + weights.get(f"b{i}", 0.0) for i in range(3)]
    want = np.concatenate([p.reshape(len(p), -1) for p in parts], axis=1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)  # the result is stored in fp32
