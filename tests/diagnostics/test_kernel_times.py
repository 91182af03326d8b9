from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.diagnostics.test_explain import ENTRY
from xyntra_ep.diagnostics.explain import Explanation, parse
from xyntra_ep.diagnostics.kernel_times import kernel_times, summed
from xyntra_ep.diagnostics.sessions import open_session


@pytest.fixture
def explanation() -> Explanation:
    """One island whose first kernel takes two steps."""
    entry: dict[str, Any] = copy.deepcopy(ENTRY) | {"digest": "d"}
    island = entry["plan"]["islands"][0]
    island["kernels"].append({"label": "shape", "variant": "gemm.tiles_bf16", "nodes": [3]})
    island["steps"] = [[0, 1, 0]]
    return parse([entry])


def row(step: int, ns: int, flops: int = 0, **change: Any) -> dict[str, Any]:
    shared = {"digest": "d", "island": "island0", "alternative": 0, "label": "", "kernel": f"xy_{step}", "calls": 1}
    return {**shared, "step": step, "ns": ns, "flops": flops, "bytes": 2 * flops, **change}


def test_steps_of_a_kernel_are_one_and_the_median_run_counts(explanation: Explanation) -> None:
    runs = [[row(0, ns, 100), row(1, 5, 7), row(2, 10)] for ns in (1, 900, 40)]
    relu, shape = summed(explanation, runs)
    assert (relu.label, relu.nodes, relu.op_types, relu.symbols) == ("relu", ("n0",), ("Relu",), ("xy_0", "xy_2"))
    assert (relu.ns, relu.flops, relu.bytes, relu.calls) == (50, 100, 200, 1), "one run's work, the middle one's time"
    assert (shape.ns, shape.flops, shape.precision, relu.precision) == (5, 7, "bf16", "fp32")


def test_rows_of_another_session_are_left_out(explanation: Explanation) -> None:
    assert summed(explanation, [[row(0, 1, digest="other")]]) == ()


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_session_tells_where_its_time_goes(mlp: Path) -> None:
    session = open_session(mlp, {"claim": "all"}, threads=1)
    feeds = {"x": np.ones((5, 64), np.float32)}
    times = kernel_times(session, lambda: session.run(None, feeds), runs=3)
    by_node = {node: k for k in times.kernels for node in k.nodes}
    assert by_node["act"].flops == 2 * 5 * 64 * 256
    assert by_node["act"].bytes >= 4 * (5 * 64 + 64 * 256 + 5 * 256)
    assert times.runs == 3 and sum(k.ns for k in times.kernels) > 0 and times.run_ns > 0
    assert all(k.symbols and k.calls == 1 for k in times.kernels)
    again = kernel_times(session, lambda: session.run(None, {"x": np.ones((9, 64), np.float32)}), runs=1)
    assert {n: k.flops for k in again.kernels for n in k.nodes}["act"] == 2 * 9 * 64 * 256, "at the shape of the run"
