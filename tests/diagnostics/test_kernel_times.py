from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.diagnostics.test_explain import ENTRY
from xyntra_ep.diagnostics.explain import Explanation, explain, parse
from xyntra_ep.diagnostics.kernel_times import Choice, kernel_times, summed, threads_of
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.tracea.doctor.profile import usable_cores


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
    return {**shared, "step": step, "ns": ns, "flops": flops, "bytes": 2 * flops, "cost_ns": 400, "tasks": 1, **change}


def test_steps_of_a_kernel_are_one_and_the_median_run_counts(explanation: Explanation) -> None:
    runs = [[row(0, ns, 100), row(1, 5, 7), row(2, 10)] for ns in (1, 900, 40)]
    relu, shape = summed(explanation, runs)
    assert (relu.label, relu.nodes, relu.op_types, relu.symbols) == ("relu", ("n0",), ("Relu",), ("xy_0", "xy_2"))
    assert (relu.ns, relu.flops, relu.bytes, relu.calls) == (50, 100, 200, 1), "one run's work, the middle one's time"
    assert (shape.ns, shape.flops, shape.precision, relu.precision) == (5, 7, "bf16", "fp32")


def decided(explanation: Explanation, **change: Any) -> Explanation:
    """Its first kernel was chosen for 1000 ns where its steps cost 500, before another for 3000."""
    raw = copy.deepcopy(list(explanation.raw))
    runner_up = ["pointwise.slow", 3000]
    told = {"decided_ns": 1000, "steps_ns": 500, "runner_up": runner_up, "config": {"unroll": 2}, "evidence": "measured"}
    raw[0]["plan"]["islands"][0]["kernels"][0] |= told | change
    return parse(raw)


def test_a_prediction_is_for_the_sizes_of_the_run_and_its_threads(explanation: Explanation) -> None:
    """Of the kernel's steps, which cost 400 in the run, two threads share the second."""
    run = [row(0, 5), row(2, 5, tasks=8)]
    for threads, factor in ((1, 800 / 500), (2, 600 / 500), (100, 450 / 500)):
        (relu,) = summed(decided(explanation), [run], threads=threads)
        assert relu.choice == Choice(
            predicted_ns=round(1000 * factor),
            config={"unroll": 2},
            is_measured=True,
            runner_up="pointwise.slow",
            runner_up_ns=round(3000 * factor),
        )


def test_where_nothing_else_admits_an_op_there_is_no_runner_up(explanation: Explanation) -> None:
    (relu,) = summed(decided(explanation, runner_up=None, evidence="estimate"), [[row(0, 5)]])
    assert relu.choice is not None and (relu.choice.runner_up, relu.choice.runner_up_ns) == ("", 0)
    assert not relu.choice.is_measured


@pytest.mark.parametrize("lacking", ["decided_ns", "steps_ns"])
def test_a_stored_plan_may_not_tell_what_a_kernel_was_chosen_for(explanation: Explanation, lacking: str) -> None:
    assert [k.choice for k in summed(explanation, [[row(0, 5)]])] == [None], "a plan from before"
    assert [k.choice for k in summed(decided(explanation, **{lacking: 0}), [[row(0, 5)]])] == [None]


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


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_session_tells_what_its_kernels_were_chosen_for(mlp: Path) -> None:
    """By estimates at usual sizes, which many rows exceed as their work does."""
    session = open_session(mlp, {"claim": "all", "tune": "off"}, threads=1)

    def chosen(rows: int) -> Choice:
        x = np.ones((rows, 64), np.float32)
        (found,) = [
            k.choice for k in kernel_times(session, lambda: session.run(None, {"x": x}), runs=1).kernels if "act" in k.nodes
        ]
        assert found is not None
        return found

    few, many = chosen(512), chosen(2048)
    assert many.predicted_ns == pytest.approx(4 * few.predicted_ns, rel=0.05), "a product of so many rows is arithmetic"
    assert few.predicted_ns < few.runner_up_ns and few.runner_up.startswith("gemm.") and not few.is_measured and few.config
    [graph] = explain(session).graphs
    (gemm,) = [k for i in graph.islands for k in i.usual if "act" in [graph.nodes[n][1] for n in k.nodes]]
    assert gemm.steps_ns > 0 and few.runner_up == gemm.runner_up
    assert few.runner_up_ns / few.predicted_ns == pytest.approx(gemm.runner_up_ns / gemm.decided_ns, rel=0.01)


def test_threads_are_those_that_the_session_was_given_or_all() -> None:
    def session(threads: int) -> Any:
        return SimpleNamespace(get_session_options=lambda: SimpleNamespace(intra_op_num_threads=threads))

    assert threads_of(session(3)) == 3 and threads_of(session(0)) == usable_cores()
