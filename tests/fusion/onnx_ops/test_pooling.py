"""Pooling windows that are larger than their image, as exporters write a global pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import cpu, normal, parse
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.tracea.core_ir.ops import Pointwise, RowReduce


def model(op: str, **attributes: int | list[int]) -> onnx.ModelProto:
    node = oh.make_node(op, ["x"], ["y"], **attributes)  # type: ignore[arg-type]  # its stub gives all keywords one type
    x = oh.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 7, 7])
    y = oh.make_tensor_value_info("y", TensorProto.FLOAT, None)
    return oh.make_model(oh.make_graph([node], "pool", [x], [y]), opset_imports=[oh.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(("op", "reduce"), [("AveragePool", np.mean), ("MaxPool", np.max)])
def test_a_window_larger_than_the_image_visits_the_image_only(op: str, reduce: Callable[..., Any]) -> None:
    island = one_island(model(op, kernel_shape=[1280, 1280], strides=[1280, 1280], ceil_mode=1))
    (rows,) = island.ops(RowReduce)
    assert rows.inner == (7, 7)
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 7)).astype(np.float32)
    (got,) = island.run({"x": x})
    np.testing.assert_allclose(got, reduce(x, axis=(2, 3), keepdims=True), rtol=1e-5, atol=1e-6)


def test_padding_keeps_the_taps_before_the_image() -> None:
    island = one_island(model("MaxPool", kernel_shape=[20, 3], pads=[10, 1, 10, 1]))
    (rows,) = island.ops(RowReduce)
    assert rows.inner == (17, 3)


@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("opset", [11, 22])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1]])
def test_padding_is_counted_up_to_its_end(pads: list[int], opset: int) -> None:
    """A window that is larger than the padded image is the only one. It is cut there, from opset 19 on."""
    attributes = f"count_include_pad=1, kernel_shape=[2,3], strides=[3,4], pads={pads}"
    pool = parse(f"(float[N,2,H,W] x) => (float[] y) {{ y = AveragePool<{attributes}>(x) }}", opset)
    session = planned(pool, {"claim": "all"})
    assert explain(session).claimed == 1
    for height, width in ((1, 1), (1, 5), (2, 2), (6, 9)):
        x = normal(2, 2, height, width)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], cpu(pool, {"x": x})[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_planes_stay_planes(op: str) -> None:
    """An image that comes channels first is not turned before its pool, nor is the result behind it."""
    attributes = "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]"
    x = normal(2, 5, 9, 17)
    for image in ("H,W", "9,17"):
        pooled = parse(f"(float[N,5,{image}] x) => (float[] y) {{ y = {op}<{attributes}>(x) }}")
        island = one_island(pooled)
        (pool,) = island.ops(RowReduce)
        assert not island.ops(Pointwise)
        assert pool.outer[1] == 5
        (got,) = island.run({"x": x})
        np.testing.assert_allclose(got, cpu(pooled, {"x": x})[0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "(float[N,8,9,9] x) => (float[] y) { c = Conv(x, w) y = MaxPool<kernel_shape=[2,2]>(c) }",
        "(float[N,9,9,8] x) => (float[] y) { c = Transpose<perm=[0,3,1,2]>(x) y = MaxPool<kernel_shape=[2,2]>(c) }",
        "(float[N,8,9,9] x) => (float[] y) { y = MaxPool<kernel_shape=[2,9]>(x) }",
        "(float[N,8,9,99] x) => (float[] y) { y = MaxPool<kernel_shape=[2,2], strides=[1,5]>(x) }",
        "(float[N,8,9,99] x) => (float[] y) { y = MaxPool<kernel_shape=[2,33]>(x) }",
    ],
    ids=["convolution", "channels last", "short rows", "far apart", "wide"],
)
def test_where_channels_make_better_neighbours_they_are_last(text: str) -> None:
    island = one_island(parse(text, w=normal(8, 8, 3, 3)))
    (pool,) = island.ops(RowReduce)
    assert pool.outer[-1] == 8
