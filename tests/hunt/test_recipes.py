"""Every operator that XyntraEP claims is hunted, and every recipe makes its operator."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest

from tests.hunt.generation.builder import Builder, Rejected
from tests.hunt.generation.generator import OPSETS, function_bodies
from tests.hunt.recipes import RECIPES
from xyntra_ep.fusion.trace import OPS

TRIES = 40
CHAIN = "chain."


def test_every_operator_has_a_recipe() -> None:
    missing = [row.name for row in OPS if row.name not in RECIPES]
    assert not missing, f"write a recipe in tests/hunt/recipes for {missing}"


def test_no_recipe_without_an_operator() -> None:
    assert [row.name for row in RECIPES if row.name not in OPS and not row.name.startswith(CHAIN)] == []


@pytest.mark.parametrize("name", [row.name for row in RECIPES])
def test_recipe_makes_its_operator(name: str) -> None:
    row = RECIPES[name]
    ort.set_default_logger_severity(4)
    opset = min(row.until, max(OPSETS)) if row.until < max(OPSETS) else max(row.since, 18)
    if row.since > max(OPSETS):
        pytest.skip(f"ONNX Runtime loads opsets up to {max(OPSETS)}")
    reasons: list[str] = []
    for seed in range(TRIES):
        b = Builder(rng=np.random.default_rng(seed), opset=opset, functions=function_bodies())
        try:
            row.build(b)
        except Rejected as error:
            reasons.append(str(error))
            continue
        made = {f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in b.nodes}
        assert name in made or name.startswith(CHAIN)
        return
    if all("NOT_IMPLEMENTED" in reason for reason in reasons):
        pytest.skip("ONNX Runtime's CPU provider has no kernel for it")
    pytest.fail(f"no node in {TRIES} tries: {set(reasons)}")
