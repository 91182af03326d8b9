"""Each fused operator, run by ONNX Runtime's CPU provider from its body, equals its float64 meaning."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from xyntra_custom_ops import DOMAIN, CustomOp, Example, to_model
from xyntra_ep.registry import Registry

OPS = Registry[CustomOp]("xyntra_custom_ops", "CUSTOM_OPS")
CALLS = [pytest.param(op, example, id=f"{op.name}-{number}") for op in OPS for number, example in enumerate(op.examples)]


def test_there_are_operators() -> None:
    assert {"Attention", "GemmBiasGelu", "LayerNormResidual", "ConvBiasRelu"} <= set(OPS.names())


@pytest.mark.parametrize("op", list(OPS), ids=lambda op: op.name)
def test_names_agree(op: CustomOp) -> None:
    body = op.function.to_function_proto()
    assert (body.domain, body.name) == (DOMAIN, op.name)
    assert {node.domain for node in body.node} == {""}, "a body uses plain ONNX only"


@pytest.mark.parametrize(("op", "example"), CALLS)
def test_body_computes_the_reference(op: CustomOp, example: Example) -> None:
    random = np.random.default_rng(7)
    model = to_model(op, example)
    onnx.checker.check_model(model)
    names = [value.name for value in model.graph.input]
    feeds = {name: random.standard_normal(shape, dtype=np.float32) for name, shape in zip(names, example.shapes, strict=True)}

    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(None, feeds)

    wanted = op.reference(*(feeds[name].astype(np.float64) for name in names), **example.attributes)
    assert len(got) == len(wanted)
    for left, right in zip(got, wanted, strict=True):
        assert left.shape == right.shape
        assert np.abs(right).max() > 1e-3, "a dead reference proves nothing"
        assert np.abs(left - right).max() <= op.max_err * np.abs(right).max()
