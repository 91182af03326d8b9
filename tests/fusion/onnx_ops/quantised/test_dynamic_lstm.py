"""DynamicQuantizeLSTM against ONNX Runtime, through the interpreter: every form, and what is declined.

ONNX Runtime quantises together the states that a thread of it computes, so it has a thread for each row here. Both decide in f32
what a state rounds to; where their states differ in the last bit that may be another byte, and so in what follows. The seeds
are such that it is not, but where a test says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from tests.support.models.graph_from_model import graph_from_model, interpret_model
from tests.support.models.quantised_lstm import DEPTH, by_rows, quantised_lstm
from xyntra_ep.fusion.partition import analyse
from xyntra_ep.tracea.core_ir.ops.memory import Array

MAX_ERR = 4e-6  # what is not integers
DIRECTIONS = ("forward", "reverse", "bidirectional")
WEIGHTS = [  # type, one for each column, zero point
    (np.int8, False, 0), (np.int8, False, -7), (np.int8, True, 0),
    (np.uint8, False, 0), (np.uint8, False, 128), (np.uint8, True, 113),
]  # fmt: skip


def check(model: onnx.ModelProto, feeds: dict[str, Array], max_err: float = MAX_ERR) -> None:
    with np.errstate(all="ignore"):
        got = interpret_model(model, feeds)
    for a, b in zip(got, by_rows(model, feeds), strict=True):
        assert a.shape == b.shape
        assert np.abs(a - b).max(initial=0) <= max_err * max(1.0, np.abs(b).max(initial=0))


def reasons(model: onnx.ModelProto) -> set[str]:
    declined, _ = analyse(graph_from_model(model))
    return {reason.text for reason in declined.values()}


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize(("dtype", "each", "zero"), WEIGHTS)
class TestWeights:
    def test_all_that_may_be_given(self, dtype: Any, each: bool, zero: int, direction: str) -> None:
        how: dict[str, Any] = {"dtype": dtype, "each": each, "zero": zero, "direction": direction}
        check(*quantised_lstm(**how))
        check(*quantised_lstm(**how, rows=1, width=17))
        check(*quantised_lstm(**how, lengths=[2, 0, 4]))

    def test_nothing_that_is_optional(self, dtype: Any, each: bool, zero: int, direction: str) -> None:
        check(*quantised_lstm(given=(), dtype=dtype, each=each, zero=zero, direction=direction))

    def test_matrices_at_run_time(self, dtype: Any, each: bool, zero: int, direction: str) -> None:
        fed = ("X", "W", "R", "h", "c", "B", "W_scale", "R_scale")
        check(*quantised_lstm(fed=fed, dtype=dtype, each=each, zero=zero, direction=direction))


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [[4, 4, 4], [1, 1, 2], [0, 3, 0], [3, 1, 2]])
def test_lengths(lengths: list[int], direction: str) -> None:
    """What lies behind the longest sequence has no part in the range of X."""
    for fed in (("X", "lengths"), ("X",)):
        model, feeds = quantised_lstm(direction=direction, lengths=lengths, given=("B",), fed=fed)
        feeds["X"][max(lengths) :] *= 100
        feeds["X"][: max(lengths), 0] *= 3
        check(model, feeds)


@pytest.mark.parametrize("outputs", [("Y",), ("Y_h",), ("Y_c",), ("Y_h", "Y_c")])
def test_some_outputs(outputs: tuple[str, ...]) -> None:
    check(*quantised_lstm(outputs=outputs, direction="bidirectional"))


@pytest.mark.parametrize(
    "attributes",
    [{"clip": 0.4}, {"input_forget": 1}, {"activations": ["HardSigmoid", "Softsign", "Tanh"]}, {"activations": ["Tanh"] * 3}],
)
def test_attributes(attributes: dict[str, Any]) -> None:
    check(*quantised_lstm(**attributes))


@pytest.mark.parametrize(("steps", "rows"), [(1, 1), (1, 7), (9, 1), (2, 16)])
@pytest.mark.parametrize("width", [1, 3, 32, 70])
def test_sizes(width: int, steps: int, rows: int) -> None:
    check(*quantised_lstm(steps=steps, rows=rows, width=width))


def test_numbers_of_one_sign_or_none() -> None:
    model, feeds = quantised_lstm()
    for sign in (1.0, -1.0, 0.0):
        check(model, {name: sign * np.abs(a) for name, a in feeds.items()})


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    """As it does in ONNX Runtime with one thread."""
    model, feeds = quantised_lstm(rows=2)
    alone = interpret_model(model, feeds)
    feeds["h"] = feeds["h"] * np.array([1, 50], np.float32)[:, None]
    for a, b in zip(alone, interpret_model(model, feeds), strict=True):
        of_row = -2
        np.testing.assert_array_equal(np.take(a, 0, of_row), np.take(b, 0, of_row))
        assert (np.take(a, 1, of_row) != np.take(b, 1, of_row)).any()


@pytest.mark.parametrize(
    ("how", "name", "value", "reason"),
    [
        ({}, "W_scale", np.ones((1, 1, 24), np.float32), "W_scale of rank 3"),
        ({}, "R_scale", np.ones(2, np.float32), "the shape of R_scale does not fit"),
        ({}, "R", np.ones((1, 6, 20), np.int8), "the shape of R does not fit"),
        ({}, "W", np.ones((DEPTH, 24), np.int8), "W of rank 2"),
        ({"each": True}, "R_zero", np.full((1, 24), 3, np.int8), "columns of R have zero points of their own"),
        ({"each": True, "dtype": np.uint8}, "W_zero", np.arange(24, dtype=np.uint8)[None], "columns of W have zero points"),
        ({"activations": ["Tanh", "Tanh"]}, "", None, "2 of 3 activations"),
    ],
)  # fmt: skip
def test_declined(how: dict[str, Any], name: str, value: Any, reason: str) -> None:
    model, _ = quantised_lstm(**how)
    for t in model.graph.initializer:
        if t.name == name:
            t.CopyFrom(numpy_helper.from_array(value, name))
    [found] = reasons(model)
    assert found.startswith(reason)


def test_zero_points_of_columns_are_known_before() -> None:
    model, _ = quantised_lstm(each=True, fed=("X", "R_zero"))
    assert reasons(model) == {"R_zero_point of columns is not constant"}


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("weight_type", [QuantType.QInt8, QuantType.QUInt8])
def test_what_quantize_dynamic_makes_of_an_lstm(weight_type: QuantType, per_channel: bool, tmp_path: Path) -> None:
    """It is claimed as a whole, and as near to the floats as ONNX Runtime."""
    rng = np.random.default_rng(0)
    width, depth = 32, 12
    shapes = {"w": (1, 4 * width, depth), "r": (1, 4 * width, width), "b": (1, 8 * width)}
    data = {name: rng.uniform(-0.2, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    node = helper.make_node("LSTM", ["X", *data], ["y", "h"], hidden_size=width)
    ends = [helper.make_tensor_value_info("X", 1, ["T", 1, depth])], [helper.make_tensor_value_info(n, 1, None) for n in "yh"]
    graph = helper.make_graph([node], "g", *ends, [numpy_helper.from_array(a, name) for name, a in data.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    before, after = tmp_path / "floats.onnx", tmp_path / "bytes.onnx"
    onnx.save(model, before)
    quantize_dynamic(before, after, weight_type=weight_type, per_channel=per_channel)
    quantised = onnx.load(after)
    assert [n.op_type for n in quantised.graph.node] == ["DynamicQuantizeLSTM"]
    assert not reasons(quantised)
    feeds = {"X": rng.standard_normal((6, 1, depth)).astype(np.float32)}
    check(quantised, feeds)
    for a, b in zip(interpret_model(quantised, feeds), by_rows(model, feeds), strict=True):
        assert np.abs(a - b).max() < 0.01
