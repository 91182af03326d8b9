"""Small models from ONNX's text form, checked against ONNX Runtime's CPU provider through the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import ModelProto, numpy_helper

from tests.support.models.graph_from_model import interpret_model
from tests.tolerances import difference

Array = NDArray[Any]


def model_of(body: str, constants: Mapping[str, Array] | None = None, opset: int = 20, contrib: bool = False) -> ModelProto:
    """``body`` is a graph: "g (float[N] x) => (float[N] y) { y = Relu(x) }"; ``constants`` become initializers."""
    domains = f'"" : {opset}' + (', "com.microsoft" : 1, "com.microsoft.nchwc" : 1' if contrib else "")
    model = onnx.parser.parse_model(f"<ir_version: 9, opset_import: [{domains}]> {body}")
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in (constants or {}).items())
    return model


def run_cpu(model: ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """What ONNX Runtime computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, dict(feeds))]


def assert_same(model: ModelProto, feeds: Mapping[str, Array]) -> None:
    """The interpreter agrees with ONNX Runtime on every output."""
    wanted = run_cpu(model, feeds)
    with np.errstate(all="ignore"):
        found = interpret_model(model, feeds)
    for value, got, want in zip(model.graph.output, found, wanted, strict=True):
        assert not (text := difference(got, want)), f"{value.name}: {text}"
