"""The fused operators of ai.xyntra: whole nodes, the meaning of their function bodies."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.graph_from_model import graph_from_model, interpret_model
from xyntra_custom_ops import DOMAIN, CustomOp, Example, to_model
from xyntra_ep.fusion.trace import OPS
from xyntra_ep.registry import Registry

CUSTOM_OPS: Registry[CustomOp] = Registry("xyntra_custom_ops", "CUSTOM_OPS")
CASES = [(op.name, i) for op in CUSTOM_OPS for i in range(len(op.examples))]


def test_every_custom_operator_has_a_row() -> None:
    missing = [op.name for op in CUSTOM_OPS if f"{DOMAIN}.{op.name}" not in OPS]
    assert not missing


@pytest.mark.parametrize(("name", "index"), CASES)
def test_like_its_reference(name: str, index: int) -> None:
    op = CUSTOM_OPS[name]
    example: Example = op.examples[index]
    model = to_model(op, example)
    assert [n.op_type for n in graph_from_model(model).nodes] == [name]
    rng = np.random.default_rng(index)
    feeds = {v.name: rng.standard_normal(s).astype(np.float32) for v, s in zip(model.graph.input, example.shapes, strict=True)}
    wanted = op.reference(*(a.astype(np.float64) for a in feeds.values()), **example.attributes)
    for got, want in zip(interpret_model(model, feeds), wanted, strict=True):
        assert np.abs(got - want).max() <= op.max_err * np.abs(want).max()
