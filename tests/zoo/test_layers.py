"""The decomposed forms mean what they are named after, by numpy in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort
import pytest

from xyntra_zoo.graph_builder import GraphBuilder, Value
from xyntra_zoo.layers import gelu_erf, gelu_tanh, layer_norm, layer_norm_decomposed, linear, linear_2d
from xyntra_zoo.params import Init, RandomParams

F64 = npt.NDArray[np.float64]
X = np.random.default_rng(0).normal(0, 2, (5, 7, 16)).astype(np.float32)
P = RandomParams(3)
EPS = 1e-2  # large enough that a wrong epsilon shows


def compute(layer: Callable[[GraphBuilder, Value], Value], x: npt.NDArray[Any]) -> Any:
    g = GraphBuilder("layer", opset=17)
    g.output("y", layer(g, g.input("x", np.float32, list(x.shape))), ["..."] * x.ndim)
    session = ort.InferenceSession(g.model().SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def norm(x: F64) -> F64:
    variance = x.var(axis=-1, keepdims=True)
    normal = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(variance + EPS)
    return np.asarray(normal * P("n.weight", (16,), Init.GAIN) + P("n.bias", (16,), Init.BIAS))


def affine(x: F64) -> F64:
    return np.asarray(x @ P("fc.weight", (4, 16), Init.LINEAR).T.astype(np.float64) + P("fc.bias", (4,), Init.BIAS))


def erf(x: F64) -> F64:
    return np.asarray([math.erf(v) for v in x.flat]).reshape(x.shape)


CASES: dict[str, tuple[Callable[[GraphBuilder, Value], Value], Callable[[F64], F64]]] = {
    "gelu_erf": (gelu_erf, lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2)))),
    "gelu_tanh": (
        gelu_tanh,
        lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    ),
    "layer_norm": (lambda g, x: layer_norm_decomposed(g, P, x, "n", 16, EPS), norm),
    "layer_norm_node": (lambda g, x: layer_norm(g, P, x, "n", 16, EPS), norm),
    "linear": (lambda g, x: linear(g, P, x, "fc", 16, 4), affine),
}


@pytest.mark.parametrize("name", CASES)
def test_layers_against_numpy(name: str) -> None:
    layer, reference = CASES[name]
    np.testing.assert_allclose(compute(layer, X), reference(X.astype(np.float64)), atol=1e-5)


def test_linear_on_two_dims() -> None:
    expected = affine(X[0].astype(np.float64))
    np.testing.assert_allclose(compute(lambda g, x: linear_2d(g, P, x, "fc", 16, 4), X[0]), expected, atol=1e-5)


def test_each_tensor_has_a_stream_of_its_own() -> None:
    a, b = (P(name, (1000,), Init.BIAS) for name in ("a", "b"))
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.2
    np.testing.assert_array_equal(a, RandomParams(3)("a", (1000,), Init.BIAS))


@pytest.mark.parametrize(
    ("init", "shape", "mean", "std"),
    [
        (Init.LINEAR, (50, 400), 0.0, 1 / 20),
        (Init.CONV1D, (400, 50), 0.0, 1 / 20),
        (Init.CONV, (50, 20, 3, 3), 0.0, math.sqrt(2 / 180)),
        (Init.GAIN, (20_000,), 1.0, 0.1),
        (Init.VARIANCE, (20_000,), 1.0, 0.1),
    ],
)
def test_weights_have_the_scale_that_keeps_signals_alive(init: Init, shape: tuple[int, ...], mean: float, std: float) -> None:
    tensor = P("w", shape, init)
    assert tensor.dtype == np.float32
    assert tensor.mean() == pytest.approx(mean, abs=0.02)
    assert tensor.std() == pytest.approx(std, rel=0.1)
