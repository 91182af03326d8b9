"""Models as converters of scikit-learn write them, in sessions: trees, ZipMap and strings stay, what is around them is ours."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.conformance.node_cases import session_options
from tests.support.models.ml_models import Array, ml_model, ml_node, tree
from tests.support.sessions import planned
from tests.tolerances import difference
from xyntra_ep.diagnostics.explain import explain

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
X = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
SCALER = ml_node("Scaler", "x", "s", offset=[0.1, 0.2, 0.3], scale=[1.0, 2.0, 0.5])
LINEAR: dict[str, Any] = {
    "coefficients": [1.0, 0.5, -1.0, -0.5, 2.0, 0.25],
    "intercepts": [0.1, -0.1],
    "post_transform": "LOGISTIC",
}


def _same(model: ModelProto, declined: set[str]) -> None:
    """Only ``declined`` stays, and the results are ONNX Runtime's, also of one sample and of none."""
    ours = planned(model)
    theirs = ort.InferenceSession(model.SerializeToString(), session_options(), providers=["CPUExecutionProvider"])
    assert {row.op_type for graph in explain(ours).graphs for row in graph.declined} == declined
    for n in (9, 1, 0):
        for got, want in zip(ours.run(None, {"x": X[:n]}), theirs.run(None, {"x": X[:n]}), strict=True):
            if isinstance(want, list):
                got, want = (np.array([sorted(row.items()) for row in rows]).astype(np.float32) for rows in (got, want))
            a, b = np.asarray(got), np.asarray(want)
            assert list(a) == list(b) if b.dtype == object else not difference(a, b)


def test_a_linear_model_whole() -> None:
    nodes = [SCALER, ml_node("LinearClassifier", "s", "label raw", classlabels_ints=[4, 2], **LINEAR)]
    nodes += [ml_node("Normalizer", "raw", "p", norm="L1")]
    _same(ml_model(nodes, {"x": X}, {"label": TensorProto.INT64, "p": TensorProto.FLOAT}, fixed=False), set())


def test_a_tree_in_the_middle() -> None:
    """Of its results nobody says how many axes they have."""
    nodes = [
        SCALER,
        tree("s", "a scores", labels={"classlabels_int64s": [0, 1]}),
        ml_node("Normalizer", "scores", "p", norm="L1"),
        helper.make_node("Concat", ["p", "s"], ["both"], axis=1),
        ml_node(
            "LinearClassifier", "both", "label raw", classlabels_ints=[1, 0], coefficients=[0.5, -1.0, 2.0, 0.25, 1.0],
            intercepts=[0.1],
        ),
        helper.make_node("Cast", ["a"], ["of_tree"], to=TensorProto.FLOAT),
    ]  # fmt: skip
    outputs = {"label": TensorProto.INT64, "raw": TensorProto.FLOAT, "of_tree": TensorProto.FLOAT}
    _same(ml_model(nodes, {"x": X}, outputs), {"TreeEnsembleClassifier"})


def test_zip_map_stays() -> None:
    nodes = [SCALER, ml_node("LinearClassifier", "s", "label raw", classlabels_ints=[4, 2], **LINEAR)]
    nodes += [ml_node("ZipMap", "raw", "p", classlabels_int64s=[4, 2])]
    _same(ml_model(nodes, {"x": X}, {"label": TensorProto.INT64, "p": 0}), {"ZipMap"})


def test_labels_that_are_strings_stay() -> None:
    nodes = [SCALER, ml_node("LinearClassifier", "s", "label raw", classlabels_strings=["no", "yes"], **LINEAR)]
    nodes += [ml_node("Normalizer", "raw", "p", norm="L1")]
    _same(ml_model(nodes, {"x": X}, {"label": 0, "p": TensorProto.FLOAT}), {"LinearClassifier"})


def _failing(model: ModelProto, x: Array) -> str:
    with pytest.raises(Exception) as error:
        planned(model).run(None, {"x": x})
    return str(error.value)


@pytest.mark.parametrize(
    ("op", "x", "attributes", "text"),
    [
        ("Binarizer", np.array([[1.0, np.nan]], np.float32), {}, "Input data is NaN"),
        ("Scaler", X, {"offset": [1.0, 2.0], "scale": [1.0, 2.0]}, "feature size"),
        ("LinearRegressor", X, {"coefficients": [1.0, 2.0], "intercepts": [1.0]}, "less coefficients"),
    ],
)
def test_what_onnx_runtime_refuses(op: str, x: Array, attributes: dict[str, Any], text: str) -> None:
    assert text in _failing(ml_model([ml_node(op, "x", "y", **attributes)], {"x": x}, {"y": 0}), x)


@pytest.mark.parametrize("column", [-1, 3])
def test_columns_count_from_the_front(column: int) -> None:
    feeds = {"x": X, "i": np.array([0, column])}
    session = planned(ml_model([ml_node("ArrayFeatureExtractor", "x i", "y")], feeds, {"y": 0}))
    assert explain(session).claimed
    with pytest.raises(Exception, match="index is out of range"):
        session.run(None, feeds)
