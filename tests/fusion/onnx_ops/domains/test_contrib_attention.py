"""What the transformer optimizer writes, against ONNX Runtime's kernels."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.support.models.onnx_text import Array, assert_same, model_of

RNG = np.random.default_rng(0)
B, S, T, N, H = 2, 5, 7, 3, 4


def _f32(*shape: int) -> NDArray[np.float32]:
    return RNG.standard_normal(shape).astype(np.float32)


MASKS: dict[str, tuple[str, Array]] = {
    "flags": ("int32[B, T] m", np.array([[1] * T, [1, 0, 1, 1, 1, 0, 0]], np.int32)),
    "flags of each query": ("int32[B, S, T] m", (RNG.random((B, S, T)) < 0.7).astype(np.int32)),
    "ends": ("int32[B] m", np.array([T, 4], np.int32)),
    "ends, and what kernels that pack tokens want": ("int32[P] m", np.array([4, T, 0, 3, 5, 0, 3, 5], np.int32)),
}


@pytest.mark.parametrize("attributes", ["", "scale = 0.25, mask_filter_value = -3.0", "unidirectional = 1"])
@pytest.mark.parametrize("mask", ["", *MASKS])
def test_multi_head_attention(mask: str, attributes: str) -> None:
    keys, declared, feeds = (S, "", {})
    if mask and "unidirectional" not in attributes:
        keys = T
    if mask:
        kind, values = MASKS[mask]
        declared = f", {kind if keys == T else kind.replace('T', 'S')}"
        feeds["m"] = values[..., :keys] if values.ndim > 1 else np.minimum(values, keys)
    length = "T" if keys == T else "S"
    settings = ", ".join(filter(None, [f"num_heads = {N}", attributes]))
    model = model_of(
        f"""g (float[B, S, {N * H}] q, float[B, {length}, {N * H}] k, float[B, {length}, {N * H}] v{declared})
            => (float[a, b, c] y) {{
            y = com.microsoft.MultiHeadAttention <{settings}> (q, k, v, bias{", m" if mask else ""})
        }}""",
        {"bias": _f32(3 * N * H)},
        contrib=True,
    )
    assert_same(model, {"q": _f32(B, S, N * H), "k": _f32(B, keys, N * H), "v": _f32(B, keys, N * H), **feeds})


@pytest.mark.parametrize("shape", [(B, N, S, T), (1, N, S, T), (B, 1, S, T), (1, 1, S, T)])
def test_bias_of_the_scores_and_the_past(shape: tuple[int, ...]) -> None:
    past = T - S
    model = model_of(
        f"""g (float[B, S, {N * H}] q, float[B, S, {N * H}] k, float[B, S, {N * H}] v, float[{", ".join(map(str, shape))}] add,
               float[B, {N}, P, {H}] pk, float[B, {N}, P, {H}] pv)
            => (float[a, b, c] y, float[a, d, e, f] nk, float[a, d, e, f] nv) {{
            y, nk, nv = com.microsoft.MultiHeadAttention <num_heads = {N}, unidirectional = 1> (q, k, v, , , add, pk, pv)
        }}""",
        contrib=True,
    )
    feeds = {name: _f32(B, S, N * H) for name in "qkv"}
    assert_same(model, {**feeds, "add": _f32(*shape), "pk": _f32(B, N, past, H), "pv": _f32(B, N, past, H)})


def test_keys_and_values_in_heads_already() -> None:
    model = model_of(
        f"""g (float[B, S, {N * H}] q, float[B, {N}, T, {H}] k, float[B, {N}, T, {H}] v) => (float[a, b, c] y) {{
            y = com.microsoft.MultiHeadAttention <num_heads = {N}> (q, k, v)
        }}""",
        contrib=True,
    )
    assert_same(model, {"q": _f32(B, S, N * H), "k": _f32(B, N, T, H), "v": _f32(B, N, T, H)})


@pytest.mark.parametrize(
    ("mask", "attributes"),
    [
        ("", ""),
        ("flags", ""),
        ("ends", "unidirectional = 1"),
        ("ends and starts", "mask_filter_value = -50.0"),
        ("either", ""),
        ("flags", "qkv_hidden_sizes = [12, 12, 6]"),
    ],
)
def test_attention_with_its_projections(mask: str, attributes: str) -> None:
    masks: dict[str, tuple[str, Array]] = {
        "flags": ("int32[B, S] m", np.array([[1] * S, [1, 1, 1, 0, 0]], np.int32)),
        "ends": ("int32[B] m", np.array([S, 3], np.int32)),
        "ends and starts": (f"int32[{2 * B}] m", np.array([S, 4, 0, 1], np.int32)),
        "either": ("int32[X] m", np.array([S, 3], np.int32)),
    }
    batch = str(B) if mask == "ends and starts" else "B"
    kind, values = masks.get(mask, ("", np.zeros(0)))
    width = 30 if "qkv" in attributes else 3 * N * H
    settings = ", ".join(filter(None, [f"num_heads = {N}", attributes]))
    model = model_of(
        f"""g (float[{batch}, S, 9] x{", " + kind if mask else ""}) => (float[a, b, c] y) {{
            y = com.microsoft.Attention <{settings}> (x, w, bias{", m" if mask else ""})
        }}""",
        {"w": _f32(9, width), "bias": _f32(width)},
        contrib=True,
    )
    assert_same(model, {"x": _f32(B, S, 9), **({"m": values} if mask else {})})
    if mask == "either":
        assert_same(model, {"x": _f32(B, S, 9), "m": masks["ends and starts"][1]})


def test_attention_with_the_past() -> None:
    model = model_of(
        f"""g (float[B, S, 9] x, float[2, B, {N}, P, {H}] past) => (float[a, b, c] y, float[d, e, f, g, h] present) {{
            y, present = com.microsoft.Attention <num_heads = {N}, unidirectional = 1> (x, w, bias, , past)
        }}""",
        {"w": _f32(9, 3 * N * H), "bias": _f32(3 * N * H)},
        contrib=True,
    )
    for queries in (1, S):
        assert_same(model, {"x": _f32(B, queries, 9), "past": _f32(2, B, N, 3, H)})


@pytest.mark.parametrize("attributes", ["", "interleaved = 1", f"rotary_embedding_dim = 2, num_heads = {N}"])
@pytest.mark.parametrize("offset", [True, False])
@pytest.mark.parametrize("flat", [True, False])
def test_rotary_embedding(attributes: str, offset: bool, flat: bool) -> None:
    half = 1 if "rotary" in attributes else H // 2
    x = _f32(B, S, N * H) if flat else _f32(B, N, S, H)
    positions = np.array([3]) if offset else RNG.integers(0, 16, (B, S))
    model = model_of(
        f"""g (float[{", ".join(map(str, x.shape))}] x, int64[{", ".join(map(str, positions.shape))}] at) => (float[{"a, b, c" if flat else "a, b, c, d"}] y) {{
            y = com.microsoft.RotaryEmbedding {f"<{attributes}>" if attributes else ""} (x, at, cos, sin)
        }}""",  # noqa: E501
        {"cos": _f32(16, half), "sin": _f32(16, half)},
        contrib=True,
    )
    assert_same(model, {"x": x, "at": positions})
