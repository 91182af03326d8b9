"""Pooling windows that are larger than their image, as exporters write a global pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from onnx import TensorProto

from tests.support.alternatives import one_island
from xyntra_ep.tracea.core_ir.ops import RowReduce


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
