"""Random models through tracing, fusion and scheduling, against ONNX Runtime: every alternative that applies is right, no
operator declines, and nothing is refused that ONNX Runtime accepts."""

from __future__ import annotations

import onnxruntime as ort
import pytest

from tests.support.models.alternatives import alternatives
from tests.support.models.model_text import cpu
from tests.support.models.random_models import RandomModel, same_values


@pytest.mark.parametrize("n_nodes", [12, 40])
@pytest.mark.parametrize("block", range(10))
def test_against_onnxruntime(block: int, n_nodes: int) -> None:
    for seed in range(block * 10, block * 10 + (10 if n_nodes < 20 else 4)):
        random = RandomModel(seed, n_nodes)
        islands = alternatives(random.model)
        for run in range(3):
            feeds = random.feeds(run)
            try:
                want = cpu(random.model, feeds)
            except ort.capi.onnxruntime_pybind11_state.Fail:
                continue  # names that lie about sizes: ONNX Runtime reuses memory by them and refuses
            applied = [i for i in islands if i.applies(feeds)]
            assert applied
            for island in applied:
                problem = same_values(island.run(feeds), want)
                assert not problem, f"seed {seed}, sizes {random.sizes(run)}: {problem}\n{random.text()}"


def test_a_seed_is_a_model() -> None:
    first, second = RandomModel(7), RandomModel(7)
    assert first.text() == second.text() and first.sizes(3) == second.sizes(3)
