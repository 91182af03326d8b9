"""Inputs as a model file declares them, without a session."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from xyntra_bench.declared import check_inputs, declared_inputs
from xyntra_bench.errors import BenchError
from xyntra_bench.plan import Case
from xyntra_zoo import model_path, zoo


@pytest.mark.parametrize("name", ["bert-base-tiny", "mobilenetv2-tiny", "gpt2-decode-tiny"])
def test_they_are_those_of_a_session(name: str) -> None:
    path = model_path(zoo[name])
    asked = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).get_inputs()
    assert [(d.name, d.type, list(d.shape)) for d in declared_inputs(path)] == [(v.name, v.type, v.shape) for v in asked]


def test_weights_among_the_inputs_are_none(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, None]) for name in ("x", "w", "y")]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [2, 1], [1.0, 2.0])
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", values[:2], values[2:], [weight])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    (found,) = declared_inputs(tmp_path / "m.onnx")
    assert (found.name, found.type, found.shape) == ("x", "tensor(float)", (2, None))
    with pytest.raises(BenchError, match=r"input x: dim None is dynamic. give --shape x=2x128"):
        check_inputs([Case(model="m", file=str(tmp_path / "m.onnx"))])
    check_inputs([Case(model="m", file=str(tmp_path / "m.ort"))])  # which only a session reads


def test_what_is_no_model_is_said(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_text("garbage")
    with pytest.raises(BenchError, match=r"m\.onnx: not an ONNX model. export one"):
        check_inputs([Case(model="m", file=str(tmp_path / "m.onnx"))])


def test_single_integers_that_are_made_up_are_told(tmp_path: Path) -> None:
    values = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in (("trips", []), ("k", [1]), ("y", [1]))
    ]
    graph = helper.make_graph([helper.make_node("Add", ["trips", "k"], ["y"])], "g", values[:2], values[2:])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    cases = [Case(model="m", file=str(tmp_path / "m.onnx"))]
    assert check_inputs(cases) == "trips=3, k=3" and check_inputs(cases, ["k"]) == "trips=3"
