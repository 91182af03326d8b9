"""ONNX's Attention becomes one core operation, whatever its mask and however its heads are shared."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.models.alternatives import one_island
from tests.support.models.graph_from_model import trace_model
from tests.support.models.model_text import check, normal, parse
from tests.support.models.onnx_text import assert_same, model_of
from tests.support.ort_version import is_older_ort, newer_ort
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.tracea.core_ir.ops import Attention, Gemm

CASES = [
    ("", "", ""),
    ("is_causal = 1", "", ""),
    ("softcap = 2.0, scale = 0.5", "", ""),
    ("", ", float[S, T] mask", ", mask"),
    ("", ", float[B, 1, S, T] mask", ", mask"),
    # With rows that see no key at all.
    pytest.param("is_causal = 1", ", bool[B, 1, S, T] mask", ", mask", marks=newer_ort),
]


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize(("attributes", "declared", "operand"), CASES)
def test_one_operation(attributes: str, declared: str, operand: str, kv_heads: int) -> None:
    call = f"Attention <{attributes}> (q, k, v{operand})" if attributes else f"Attention (q, k, v{operand})"
    model = model_of(
        f"""g (float[B, 4, S, 8] q, float[B, {kv_heads}, T, 8] k, float[B, {kv_heads}, T, 6] v{declared})
            => (float[B, 4, S, 6] y) {{ y = {call} }}""",
        opset=23,
    )
    graph, context = trace_model(model)
    inputs, outputs = graph.boundary([n.id for n in graph.nodes])
    program = build_program(context, inputs, outputs)
    assert sum(isinstance(op, Attention) for op in program.ops) == 1
    assert not any(isinstance(op, Gemm) for op in program.ops)

    rng = np.random.default_rng(0)
    batch, queries, keys = 2, 5, 5
    feeds: dict[str, np.ndarray[Any, np.dtype[Any]]] = {
        "q": rng.standard_normal((batch, 4, queries, 8)).astype(np.float32),
        "k": rng.standard_normal((batch, kv_heads, keys, 8)).astype(np.float32),
        "v": rng.standard_normal((batch, kv_heads, keys, 6)).astype(np.float32),
    }
    if declared:
        shape = (queries, keys) if "[S" in declared else (batch, 1, queries, keys)
        mask = rng.standard_normal(shape).astype(np.float32)
        feeds["mask"] = mask > -1 if "bool" in declared else mask
    assert_same(model, feeds)


@pytest.mark.parametrize(("batch", "queries"), [(0, 3), (2, 0), (0, 0)])
@pytest.mark.parametrize("opset", [24, 25])
def test_nothing_to_attend(opset: int, batch: int, queries: int) -> None:
    """ONNX Runtime's kernel refuses it; from opset 25 on it has none, and computes the body of the function."""
    model = parse("(float[B,2,S,4] q, float[B,2,T,4] k) => (float[B,2,S,4] y) { y = Attention (q, k, k) }", opset)
    feeds = {"q": normal(batch, 2, queries, 4), "k": normal(batch, 2, 5, 4)}
    if opset == 25 and not is_older_ort():
        check(model, feeds)
    for island in (one_island(model, trust) for trust in (True, False)):
        assert any("must be greater than 0" in said for said in island.refusals(feeds)) == (opset == 24)
        assert any("KV sequence length" in said for said in island.refusals({**feeds, "k": feeds["k"][:, :, :0]}))


@pytest.mark.parametrize(
    ("keys", "said"), [((3, 2, 5, 4), "different batch sizes"), ((2, 2, 5, 3), "queries and keys have different head sizes")]
)
def test_keys_that_do_not_fit(keys: tuple[int, ...], said: str) -> None:
    model = parse("(float[B,2,S,4] q, float[C,2,T,D] k) => (float[B,2,S,D] y) { y = Attention (q, k, k) }", 25)
    feeds = {"q": normal(2, 2, 3, 4), "k": normal(*keys)}
    assert any(said in text for text in one_island(model, False).refusals(feeds))
