"""Files that ONNX Runtime's quantisers and its optimiser write: every node is claimed, and the result is the CPU provider's.

Weights have 7 bits (`reduce_range`), so that the CPU provider's products do not saturate on processors without VNNI.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.support.ort_version import newer_ort
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_zoo import model_path, zoo
from xyntra_zoo.quantisers import CALIBRATION_SEEDS, Calibration

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc"), newer_ort]
SAVED = {  # operators that are there for sure
    "mobilenetv2-tiny": {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"},
    "resnet50-tiny": {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm", "NhwcMaxPool"},
}


def _in_qoperator_form(name: str, folder: Path) -> Path:
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    model, prepared, made = zoo[name], folder / "prepared.onnx", folder / "qoperator.onnx"
    quant_pre_process(model_path(model), prepared)
    quantize_static(
        prepared,
        made,
        Calibration(model.feeds(4, 1, seed) for seed in CALIBRATION_SEEDS),
        quant_format=QuantFormat.QOperator,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        reduce_range=True,
    )
    return made


def _saved(source: Path) -> Path:
    """As the CPU provider's session saves it."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.optimized_model_filepath = str(source.with_name("saved.onnx"))
    ort.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
    return source.with_name("saved.onnx")


@pytest.mark.parametrize("name", SAVED)
def test_qoperator(name: str, tmp_path: Path) -> None:
    """The bytes inside are the same: no output differs at all."""
    written = _in_qoperator_form(name, tmp_path)
    feeds = zoo[name].feeds(2, 1, 0)
    for path in (written, _saved(written)):
        model = onnx.load(path)
        operators = {node.op_type for node in model.graph.node}
        assert SAVED[name] - {"NhwcMaxPool"} <= operators
        session = planned(model)
        assert explain(session).claimed == len(model.graph.node), explain(session)
        [want] = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, feeds)
        np.testing.assert_array_equal(session.run(None, feeds)[0], want)
    assert SAVED[name] <= operators
