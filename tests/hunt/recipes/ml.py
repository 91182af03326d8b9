"""Operators of ai.onnx.ml, as pipelines of scikit-learn have them: features scaled, filled in, put together, a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.hunt.generation.builder import Builder, Value
from tests.hunt.generation.feeds import Fill, Kind
from tests.hunt.recipes._row import Build, Recipe, maybe

ML = "ai.onnx.ml"
FEATURES = (np.float32, np.float32, np.float32, np.int64, np.int32, np.float64)
POST_TRANSFORMS = (None, "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def _samples(b: Builder, dtypes: tuple[Any, ...] = FEATURES) -> Value:
    return b.any((b.pick(dtypes),), least=1, most=3 if b.chance(0.03) else 2)


def _width(b: Builder, x: Value) -> int:
    """The number of columns; another one now and then."""
    return max(0, x.shape[-1] + b.pick((-1, 1))) if b.chance(b.contrary) else x.shape[-1]


def _list(b: Builder, n: int) -> list[float] | None:
    """None for none: an attribute cannot be an empty list."""
    return [float(v) for v in Fill().draw(b.rng, (n,), np.dtype(np.float32))] or None


def _scaler(b: Builder) -> None:
    x = _samples(b)
    n = 1 if b.chance(0.2) else _width(b, x)
    b.one("Scaler", [x], domain=ML, offset=_list(b, n), scale=_list(b, n))


def _normalizer(b: Builder) -> None:
    b.one("Normalizer", [_samples(b)], domain=ML, norm=b.pick((None, "MAX", "L1", "L2")))


def _imputer(b: Builder) -> None:
    x = _samples(b, (np.float32, np.float32, np.int64))
    n = 1 if b.chance(0.3) else _width(b, x)
    if x.dtype == np.int64:
        b.one(
            "Imputer",
            [x],
            domain=ML,
            imputed_value_int64s=[b.whole(-9, 9) for _ in range(n)] or None,
            replaced_value_int64=b.whole(-2, 2),
        )
        return
    replaced = b.pick((float("nan"), 0.0, 1.0, None))
    b.one("Imputer", [x], domain=ML, imputed_value_floats=_list(b, n), replaced_value_float=replaced)


def _binarizer(b: Builder) -> None:
    b.one("Binarizer", [b.any((np.float32,), most=3)], domain=ML, threshold=b.pick((None, 0.5, -1.0)))


def _array_feature_extractor(b: Builder) -> None:
    x = b.any((b.pick(FEATURES),), least=1, most=3)
    n = x.shape[-1]
    if b.chance(0.3):  # numbers that are data
        y = b.input([b.extent()], np.int64, Fill(Kind.INDEX, 0, max(1, min(x.extents[-1]))))
    else:
        y = b.ints([b.whole(0, max(0, n - 1)) for _ in range(b.whole(1, 4))])
    b.one("ArrayFeatureExtractor", [x, y], domain=ML)


def _feature_vectorizer(b: Builder) -> None:
    """Not of an empty batch, which ends ONNX Runtime's process."""
    x = b.any((b.pick(FEATURES),), least=1, most=2, where=lambda v: all(n > 0 for n in v.extents[0]))
    others = [b.input([x.extents[0], b.extent()][: x.rank], x.dtype) for _ in range(b.whole(0, 2))]
    parts = [x, *others]
    widths = [max(0, v.shape[-1] + b.pick((0, 0, 0, 1, -1))) for v in parts]
    b.one("FeatureVectorizer", parts, domain=ML, inputdimensions=widths)


def _linear(op: str) -> Build:
    def build(b: Builder) -> None:
        is_classifier = op == "LinearClassifier"
        x = _samples(b, FEATURES if is_classifier else (np.float32,))
        targets = b.pick((1, 1, 2, 3, 5))
        attrs: dict[str, Any] = {"coefficients": _list(b, targets * _width(b, x)), "post_transform": b.pick(POST_TRANSFORMS)}
        intercepts = _list(b, targets)
        if is_classifier:
            labels = [int(v) for v in b.rng.permutation(9)[: max(2, targets)]]
            made = b.node(op, [x], outputs=2, domain=ML, intercepts=intercepts, classlabels_ints=labels, **attrs)
            if b.chance(0.3):
                b.one("Normalizer", [made[1]], domain=ML, norm="L1")
            return
        b.one(op, [x], domain=ML, targets=targets, intercepts=maybe(b, intercepts, 0.8), **attrs)

    return build


ROWS = [
    Recipe(name=f"{ML}.Scaler", build=_scaler),
    Recipe(name=f"{ML}.Normalizer", build=_normalizer),
    Recipe(name=f"{ML}.Imputer", build=_imputer),
    Recipe(name=f"{ML}.Binarizer", build=_binarizer, weight=0.5),
    Recipe(name=f"{ML}.ArrayFeatureExtractor", build=_array_feature_extractor),
    Recipe(name=f"{ML}.FeatureVectorizer", build=_feature_vectorizer),
    *(Recipe(name=f"{ML}.{op}", build=_linear(op)) for op in ("LinearRegressor", "LinearClassifier")),
]
