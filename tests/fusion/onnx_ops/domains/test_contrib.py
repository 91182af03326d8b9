"""Operators of ONNX Runtime's own domain, against its kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.onnx_text import assert_same, model_of

RNG = np.random.default_rng(0)


def _f32(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    "call",
    [
        "com.microsoft.Gelu(x)",
        "com.microsoft.BiasGelu(x, bias)",
        "com.microsoft.FastGelu(x, bias)",
        "com.microsoft.FastGelu(x)",
        "com.microsoft.QuickGelu(x)",
        "com.microsoft.QuickGelu <alpha = 0.5> (x)",
        "com.microsoft.SkipLayerNormalization <epsilon = 0.01> (x, skip, bias)",
        "com.microsoft.SkipLayerNormalization <epsilon = 0.01> (x, skip, bias, gamma, bias)",
        "com.microsoft.SkipSimplifiedLayerNormalization <epsilon = 0.01> (x, skip, gamma, bias)",
        "com.microsoft.FusedMatMul <transB = 1, alpha = 0.25> (x, skip)",
        "com.microsoft.FusedMatMul <transA = 1> (x, skip)",
        "SimplifiedLayerNormalization <axis = -1> (x, gamma)",
    ],
)
def test_like_ort(call: str) -> None:
    body = f"g (float[B, S, 8] x, float[B, S, 8] skip) => (float[a, b, c] y) {{ y = {call} }}"
    model = model_of(body, {"bias": _f32(8), "gamma": _f32(8)}, contrib=True)
    assert_same(model, {"x": _f32(2, 3, 8), "skip": _f32(2, 3, 8)})


def test_skip_layer_normalization_gives_its_sum() -> None:
    model = model_of(
        """g (float[B, S, 8] x, float[B, S, 8] skip) => (float[B, S, 8] y, float[B, S, 8] sum) {
            y, m, v, sum = com.microsoft.SkipLayerNormalization (x, skip, gamma)
        }""",
        {"gamma": _f32(8)},
        contrib=True,
    )
    for unwanted in (1, 2):
        model.graph.node[0].output[unwanted] = ""
    assert_same(model, {"x": _f32(2, 3, 8), "skip": _f32(2, 3, 8)})
