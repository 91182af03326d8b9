"""Option ``policy`` in sessions: what it chooses, and that this is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.provider.devices.test_automatic import NO_DOUBT, placed
from tests.provider.devices.test_automatic import session as automatic_session
from tests.support.fake_cuda import FakeCuda
from tests.support.models.model_text import cpu, normal, parse
from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.fusion.estimates.cost import Comparison, Estimate
from xyntra_ep.options import Goal
from xyntra_ep.provider import planner
from xyntra_ep.tracea import Context, Policy
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
CONV = "(float[1, 64, 28, 28] x) => (float[1, 64, 28, 28] y) { y = Conv <pads=[1, 1, 1, 1]> (x, w) }"


def conv() -> onnx.ModelProto:
    return parse(CONV, 20, w=normal(64, 64, 3, 3) / np.float32(24))


def test_a_convolution_that_is_to_hold_little_keeps_no_transformed_weights() -> None:
    sizes: dict[str, Any] = {"n": 1, "c": 256, "h": 14, "w": 14, "m": 256, "k": 3, "stride": 1, "pad": 1, "group": 1}
    fast, light = (
        Context(caps=AVX2, policy=Policy(goal=goal)).plan_kernel("conv", **sizes) for goal in (Goal.LATENCY, Goal.MEMORY)
    )
    assert fast.variant == "conv.nhwc_winograd" and light.variant == "conv.nhwc_direct"
    assert fast.cost_ns < light.cost_ns <= 2.5 * fast.cost_ns
    why = dict(light.rejected)["conv.nhwc_winograd"]
    assert why.startswith("holds ") and why.endswith(f" against {256 * 256 * 9 * 4}"), "the weights, packed, and nothing else"
    assert (fast.goal, light.goal) == ("latency", "memory") and dict(light.reasons)["kernels"].startswith("the one that holds")
    assert "policy=memory, kernels: the one that holds the least memory" in str(light)


@pytest.mark.parametrize("goal", [goal for goal in Goal if goal is not Goal.BALANCED])
def test_a_session_computes_the_same_and_says_its_rules(goal: Goal) -> None:
    x = normal(1, 64, 28, 28, seed=5)
    session = planned(conv(), {"policy": goal, "claim": "all"})
    np.testing.assert_allclose(session.run(None, {"x": x})[0], cpu(conv(), {"x": x})[0], rtol=0, atol=2e-4)
    found = explain(session)
    (graph,) = found.graphs
    assert graph.goal == goal and graph.policy == dict(Policy(goal=goal).reasons())
    for name, why in graph.policy.items():
        assert f"policy={goal}, {name}: {why}" in str(found)


def test_who_says_nothing_is_told_nothing() -> None:
    found = explain(planned(conv(), {"claim": "all"}))
    assert found.graphs[0].goal == Goal.BALANCED and "policy=" not in str(found)


@pytest.mark.parametrize(("goal", "on"), [("latency", {4}), ("throughput", {1}), ("balanced", {1, 4})])
def test_claims_are_judged_on_the_threads_of_the_goal(
    goal: str, on: set[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    threads: set[int] = set()
    real = Comparison.total

    def watched(self: Comparison) -> Estimate:
        threads.update(self._threads)
        return real(self)

    monkeypatch.setattr(Comparison, "total", watched)
    monkeypatch.setattr(Policy, "threads", lambda self, cores, real=Policy.threads: real(self, 4))
    planned(conv(), {"policy": goal, "cache_dir": str(tmp_path)})
    assert threads == on


@pytest.mark.compiler("nvrtc")
def test_a_gpu_that_nobody_names_is_not_for_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    FakeCuda(monkeypatch, tmp_path)
    monkeypatch.setenv("XYNTRA_CUDA_DEVICES", "1")
    monkeypatch.setattr(planner, "DEVICE_DOUBT", NO_DOUBT)
    assert placed(automatic_session(tmp_path / "cache", policy="latency")).device
    graph = placed(automatic_session(tmp_path / "cache", policy="memory"))
    assert not graph.device and graph.placement == "policy=memory"
