"""Operators of ai.onnx.ml against ONNX Runtime's kernels, of all shapes that it takes, and what stays with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tests.support.models.graph_from_model import trace_model
from tests.support.models.ml_models import Array, single
from tests.support.models.onnx_text import assert_same
from xyntra_ep.errors import UnsupportedError

SHAPES = [(1, 5), (7, 5), (0, 5), (19, 1), (5,), (33, 21)]
WIDE = (np.float32, np.int64, np.int32)
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def _draw(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Halves and zeros among them, so that there are ties."""
    drawn = np.random.default_rng(seed).normal(0, 3, shape)
    return np.where(np.abs(drawn) < 1, np.round(drawn * 2) / 2, drawn).astype(dtype)


def _list(n: int, seed: int = 1) -> list[float]:
    return [float(v) for v in _draw((n,), seed=seed)]


def _check(op: str, *feeds: Array, **attributes: Any) -> None:
    """Of known and of unknown sizes."""
    named = {f"x{i}": a for i, a in enumerate(feeds)}
    for fixed in (False, True):
        assert_same(single(op, named, fixed=fixed, **attributes), named)


def _declined(op: str, *feeds: Array, **attributes: Any) -> str:
    with pytest.raises(UnsupportedError) as error:
        trace_model(single(op, {f"x{i}": a for i, a in enumerate(feeds)}, **attributes))
    return error.value.what


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", WIDE)
def test_scaler(shape: tuple[int, ...], dtype: Any) -> None:
    x, n = _draw(shape, dtype), shape[-1]
    _check("Scaler", x, offset=_list(n), scale=_list(n, 2))
    _check("Scaler", x, offset=[0.5], scale=[-2.0])


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("norm", [{}, {"norm": "MAX"}, {"norm": "L1"}, {"norm": "L2"}], ids=str)
def test_normalizer(shape: tuple[int, ...], dtype: Any, norm: Mapping[str, Any]) -> None:
    x = _draw(shape, dtype)
    if x.size > 7:
        x[..., 0, :] = 0
    _check("Normalizer", x, **norm)


def test_a_row_over_nothing_stays() -> None:
    """Minus zero, too; and what is largest is not what is largest without a sign."""
    x = np.array([[0, -0.0, 0], [-1, 0, -0.0], [-4, -2, -1]], np.float32)
    for norm in ("MAX", "L1", "L2"):
        _check("Normalizer", x, norm=norm)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("replaced", [0.0, float("nan")])
def test_imputer_of_floats(shape: tuple[int, ...], replaced: float) -> None:
    x, n = _draw(shape), shape[-1]
    x[x == 0.5] = np.nan
    for values in (_list(n), [7.0], _list(n + 1)):
        _check("Imputer", x, imputed_value_floats=values, replaced_value_float=replaced)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_imputer_of_integers(shape: tuple[int, ...]) -> None:
    x, n = _draw(shape, np.int64), shape[-1]
    for values in (list(range(n)), [2**62 + 1]):
        _check("Imputer", x, imputed_value_int64s=values, replaced_value_int64=1)
    _check("Imputer", x, imputed_value_int64s=[5])


@pytest.mark.parametrize("shape", [*SHAPES, (), (2, 3, 4)], ids=str)
def test_binarizer(shape: tuple[int, ...]) -> None:
    _check("Binarizer", _draw(shape))
    _check("Binarizer", _draw(shape), threshold=0.5)


@pytest.mark.parametrize("shape", [*SHAPES, (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", WIDE)
def test_array_feature_extractor(shape: tuple[int, ...], dtype: Any) -> None:
    for columns in ([0], [shape[-1] - 1, 0, 0], [[0], [shape[-1] - 1]]):
        _check("ArrayFeatureExtractor", _draw(shape, dtype), np.array(columns, np.int64))


@pytest.mark.parametrize("dtype", WIDE)
def test_feature_vectorizer(dtype: Any) -> None:
    """Not of nothing: ONNX Runtime 1.32 ends the process there."""
    x, y = _draw((4, 3), dtype), _draw((4, 2), dtype)
    for widths in ([3, 2], [2, 4], [0, 2], [5, 1]):
        _check("FeatureVectorizer", x, y, inputdimensions=widths)
    _check("FeatureVectorizer", x[0], y[:1], inputdimensions=[3, 3])
    _check("FeatureVectorizer", x.reshape(2, 2, 3), inputdimensions=[5])
    _check("FeatureVectorizer", x[:, :0], y, inputdimensions=[1, 2])


@pytest.mark.parametrize("how", POST_TRANSFORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("targets", [1, 2, 3])
def test_linear_regressor(shape: tuple[int, ...], targets: int, how: str) -> None:
    x, weights = _draw(shape), _list(targets * shape[-1])
    for intercepts in ([], _list(targets), [1.0] * (targets + 1)):  # too many of them are none
        _check("LinearRegressor", x, coefficients=weights, intercepts=intercepts or None, targets=targets, post_transform=how)


@pytest.mark.parametrize("how", POST_TRANSFORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_linear_classifier(shape: tuple[int, ...], classes: int, how: str) -> None:
    linear = {"coefficients": _list(classes * shape[-1]), "intercepts": _list(classes, 3), "post_transform": how}
    for dtype in WIDE:
        _check("LinearClassifier", _draw(shape, dtype), classlabels_ints=[7, -2, 0, 3][: max(2, classes)], **linear)
    _check("LinearClassifier", _draw(shape), classlabels_ints=list(range(max(2, classes))), multi_class=1, **linear)


def test_the_first_of_equal_scores_wins_and_none_is_not_positive() -> None:
    x = np.array([[0.0, 0.0], [1, -1], [np.nan, 0]], np.float32)
    for classes in (1, 3):
        labels = [5, 6, 7][: max(2, classes)]
        zeros = {"coefficients": [0.0] * 2 * classes, "intercepts": [0.0] * classes}
        _check("LinearClassifier", x, classlabels_ints=labels, **zeros)


def test_an_input_of_less_columns_has_the_first_of_the_coefficients() -> None:
    """As ONNX Runtime lays them out."""
    linear = {"coefficients": _list(9), "intercepts": _list(3)}
    _check("LinearRegressor", _draw((4, 2)), targets=3, **linear)
    _check("LinearClassifier", _draw((4, 2)), classlabels_ints=[1, 2, 3], **linear)


LINEAR: Mapping[str, Any] = {"coefficients": [1.0, 2.0, 3.0], "intercepts": [0.5], "classlabels_ints": [0, 1]}


@pytest.mark.parametrize(
    ("op", "shape", "attributes", "reason"),
    [
        ("Scaler", (2, 3, 4), {"offset": [1.0], "scale": [1.0]}, "samples of 3 axes"),
        ("Scaler", (2, 3), {"offset": [1.0], "scale": [1.0, 2.0, 3.0]}, "for each column"),
        ("Scaler", (2, 3), {}, "for each column"),
        ("Normalizer", (2, 3), {"norm": "L3"}, "norm = L3"),
        ("Normalizer", (2, 3, 4), {}, "samples of 3 axes"),
        ("Imputer", (2, 3), {}, "values of one type"),
        ("Imputer", (2, 3), {"imputed_value_int64s": [1]}, "values of one type"),
        ("Imputer", (2, 3), {"imputed_value_floats": [1.0], "imputed_value_int64s": [1]}, "values of one type"),
        ("FeatureVectorizer", (2, 3), {}, "number of columns"),
        ("FeatureVectorizer", (2, 3), {"inputdimensions": [3, 3]}, "number of columns"),
        ("FeatureVectorizer", (2, 3), {"inputdimensions": [-1]}, "number of columns"),
        ("LinearRegressor", (2, 3), {"coefficients": [1.0] * 3, "post_transform": "PROBIT"}, "PROBIT"),
        ("LinearRegressor", (2, 3), {"coefficients": [1.0] * 3, "targets": 0}, "targets and coefficients"),
        ("LinearRegressor", (2, 3), {}, "targets and coefficients"),
        ("LinearClassifier", (2, 3), {**LINEAR, "post_transform": "PROBIT"}, "PROBIT"),
        ("LinearClassifier", (2, 3), {**LINEAR, "intercepts": []}, "for each class"),
        ("LinearClassifier", (2, 3), {**LINEAR, "classlabels_ints": [1]}, "for each class"),
        ("LinearClassifier", (2, 3), {**LINEAR, "classlabels_ints": [1, 2, 3]}, "for each class"),
        ("LinearClassifier", (2, 3), {**LINEAR, "coefficients": [1.0] * 5, "intercepts": [1.0] * 2}, "for each class"),
        ("LinearClassifier", (2, 3, 1), LINEAR, "samples of 3 axes"),
        (
            "LinearClassifier",
            (2, 3),
            {**LINEAR, "classlabels_ints": [], "classlabels_strings": ["a", "b"]},
            "labels that are strings",
        ),
    ],
)  # fmt: skip
def test_declined(op: str, shape: tuple[int, ...], attributes: Mapping[str, Any], reason: str) -> None:
    assert reason in _declined(op, _draw(shape), **{k: v for k, v in attributes.items() if v != []})


@pytest.mark.parametrize(
    ("op", "attributes"),
    [("Scaler", {"offset": [1.0], "scale": [2.0]}), ("Normalizer", {}), ("LinearClassifier", LINEAR)],
)
def test_doubles_stay(op: str, attributes: Mapping[str, Any]) -> None:
    assert "dtype" in _declined(op, _draw((2, 3), np.float64), **attributes)
