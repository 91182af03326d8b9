"""EmbedLayerNormalization, against ONNX Runtime's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.models.onnx_text import assert_same, model_of

RNG = np.random.default_rng(0)
B, S = 2, 5


def _f32(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("operands", "outputs"),
    [
        ("ids, kinds, words, places, types, gamma, beta, mask", "y, ones"),
        ("ids, , words, places, , gamma, beta, mask, at", "y, ones, sum"),
        ("ids, , words, places, , gamma, beta", "y, ones"),
        ("ids, , words, places, , gamma, beta, , all_at", "y, ones"),
        ("ids, , words, places, , gamma, beta, , each_at", "y, ones"),
    ],
)
def test_embeddings(operands: str, outputs: str) -> None:
    declared = {"y": "float[a, b, c] y", "ones": "int32[d] ones", "sum": "float[a, b, c] sum"}
    inputs = {
        "ids": ("int32[B, S] ids", RNG.integers(0, 20, (B, S)).astype(np.int32)),
        "kinds": ("int32[B, S] kinds", RNG.integers(0, 2, (B, S)).astype(np.int32)),
        "mask": ("int32[B, S] mask", (RNG.random((B, S)) < 0.6).astype(np.int32)),
        "at": ("int32[1, S] at", RNG.integers(0, 9, (1, S)).astype(np.int32)),
        "all_at": ("int32[P, S] all_at", RNG.integers(0, 9, (1, S)).astype(np.int32)),  # which of the two a run shows
        "each_at": ("int32[P, S] each_at", RNG.integers(0, 9, (B, S)).astype(np.int32)),
    }
    used = {name: found for name, found in inputs.items() if name in operands.replace(" ", "").split(",")}
    model = model_of(
        f"""g ({", ".join(kind for kind, _ in used.values())}) => ({", ".join(declared[o] for o in outputs.split(", "))}) {{
            {outputs} = com.microsoft.EmbedLayerNormalization <epsilon = 0.01> ({operands})
        }}""",
        {"words": _f32(20, 8), "places": _f32(9, 8), "types": _f32(2, 8), "gamma": _f32(8), "beta": _f32(8)},
        contrib=True,
    )
    assert_same(model, {name: values for name, (_, values) in used.items()})
