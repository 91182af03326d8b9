"""QEmbedLayerNormalization: tables of bytes, of which only what is looked up is made floats."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.model_text import Array, check, close, cpu
from tests.support.models.onnx_text import model_of
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.tracea.core_ir.ops import ValueKind

RNG = np.random.default_rng(0)
B, S, H = 2, 5, 8
ROWS = {"words": (20, H), "places": (9, H), "kinds": (3, H), "gamma": (H,), "beta": (H,)}
IDS = "int32[B, S] ids"
SEGMENTS, MASK = ", int32[B, S] segments", ", int32[B, S] mask"


def q_embed(dtype: Any, inputs: str = IDS + SEGMENTS, epsilon: str = "", **other: Any) -> onnx.ModelProto:
    limits = np.iinfo(dtype)
    constants: dict[str, Any] = {}
    for i, (name, shape) in enumerate(ROWS.items()):
        constants[name] = RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)
        constants[f"s_{name}"] = np.asarray(0.01 * (i + 1), np.float32)
        constants[f"z_{name}"] = np.asarray(limits.min + 50 * i, dtype)
    constants |= other
    if "segments" not in inputs:
        constants = {name: value for name, value in constants.items() if "kinds" not in name}
    names = ["ids", "segments", "words", "places", "kinds", "gamma", "beta", "mask"]
    names += [f"{kind}_{name}" for kind in "sz" for name in ROWS]
    given = [*constants, *re.findall(r"\] (\w+)", inputs)]
    operands = ", ".join(name if name in given else "" for name in names)
    text = f"""g ({inputs}) => (float[a, b, c] y, int32[d] ones) {{
        y, ones = com.microsoft.QEmbedLayerNormalization {epsilon} ({operands}) }}"""
    return model_of(text, constants, contrib=True)


def feeds(model: onnx.ModelProto) -> dict[str, Array]:
    limits = {"ids": 20, "segments": 3, "mask": 2}
    return {i.name: RNG.integers(0, limits[i.name], (B, S)).astype(np.int32) for i in model.graph.input}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("inputs", [IDS, IDS + SEGMENTS, IDS + MASK, IDS + SEGMENTS + MASK])
@pytest.mark.parametrize("epsilon", ["", "<epsilon = 0.01>"])
def test_as_onnx_runtime_has_it(epsilon: str, inputs: str, dtype: Any) -> None:
    model = q_embed(dtype, inputs, epsilon)
    check(model, feeds(model))


def test_what_it_stands_for() -> None:
    """The floats of all tables, by NumPy: a scale that belongs to another table would show."""
    model = q_embed(np.uint8)
    given = feeds(model)
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    words, places, kinds, gamma, beta = (
        (constants[name].astype(np.float64) - constants[f"z_{name}"]) * constants[f"s_{name}"] for name in ROWS
    )
    total = words[given["ids"]] + places[np.arange(S)] + kinds[given["segments"]]
    centred = total - total.mean(-1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * gamma + beta
    got, ones = one_island(model).run(given)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert not ones.any()


def test_tables_stay_bytes() -> None:
    """No operation makes floats of a whole table."""
    made = [value.shape for value in one_island(q_embed(np.uint8)).program.values if value.kind is ValueKind.TEMP]
    assert ROWS["words"] not in made and ROWS["places"] not in made


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"s_words": np.full(3, 0.1, np.float32)}, "a scale is not one number"),
        ({"z_beta": np.zeros(H, np.uint8)}, "a zero point is not one number"),
        ({"gamma": np.zeros(H - 1, np.uint8)}, "the scale or shift has another shape than the tokens or the tables"),
        ({"places": np.zeros((9, H + 1), np.uint8)}, "the tables have different widths"),
    ],
)
def test_declined(other: dict[str, Array], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        one_island(q_embed(np.uint8, IDS + SEGMENTS, "", **other))


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_what_a_quantiser_makes_is_claimed(tmp_path: Path) -> None:
    """Of the embeddings that ONNX Runtime's transformer optimiser fuses."""
    from onnxruntime.quantization import quantize_dynamic

    floats = {name: RNG.standard_normal(shape).astype(np.float32) for name, shape in ROWS.items()}
    text = f"""g ({IDS}{SEGMENTS}{MASK}) => (float[a, b, c] y, int32[d] ones) {{
        y, ones = com.microsoft.EmbedLayerNormalization (ids, segments, words, places, kinds, gamma, beta, mask) }}"""
    files = tmp_path / "floats.onnx", tmp_path / "bytes.onnx"
    onnx.save(model_of(text, floats, contrib=True), files[0])
    quantize_dynamic(*files, op_types_to_quantize=["EmbedLayerNormalization"])
    model = onnx.load(files[1])
    assert [node.op_type for node in model.graph.node] == ["QEmbedLayerNormalization"]
    session, given = planned(model), feeds(model)
    assert explain(session).claimed == 1
    close(session.run(None, given), cpu(model, given))
