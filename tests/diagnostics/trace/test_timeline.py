"""A timeline of some runs: what is in it, where, and that a viewer can show it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import parser

import xyntra_ep
from tests.diagnostics.trace.chrome import check, ns, spans, within
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.trace.tracing import TracedModel, trace_model
from xyntra_ep.errors import ConfigError

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
RUNS = 4
ROWS = 2048  # so many that each thread of two gets some


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def told(mlp: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> tuple[TracedModel, dict[str, Any]]:
    """A model of which ONNX Runtime computes one node, traced with two threads."""
    path = tmp_path_factory.mktemp("trace") / "run.json"
    options = {"claim": "all", "cache_dir": str(cache)}
    found = trace_model(mlp, path, runs=RUNS, threads=2, options=options, sizes={"n": ROWS})
    return found, json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def document(told: tuple[TracedModel, dict[str, Any]]) -> dict[str, Any]:
    return told[1]


def test_it_is_a_trace_that_viewers_take(document: dict[str, Any]) -> None:
    check(document)
    assert document["otherData"]["clock"] == "CLOCK_MONOTONIC" and document["otherData"]["lost_records"] == 0


def test_each_claimed_node_is_named(document: dict[str, Any], mlp: Path) -> None:
    session = open_session(mlp, {"claim": "all"})
    [graph] = explain(session).graphs
    claimed = {graph.nodes[n][1] for island in graph.islands for n in island.nodes}
    assert claimed and claimed <= {name for e in spans(document, "island") for name in e["args"]["nodes"]}
    computed = {graph.nodes[n][1] for island in graph.islands for k in island.usual for n in k.nodes}
    assert computed == {name for e in spans(document, "step") for name in e["args"]["nodes"]}


def test_a_run_has_all_runs_islands_and_steps_in_it(document: dict[str, Any]) -> None:
    runs, islands, steps = (spans(document, name) for name in ("run", "island", "step"))
    assert len(runs) == RUNS + 1, "one to warm up"
    for inner, outer in ((islands, runs), (steps, islands)):
        assert inner and all(sum(within(o, i) and o["tid"] == i["tid"] for o in outer) == 1 for i in inner)
    for island in islands:
        inside = [e for e in steps if within(island, e)]
        assert 0 < sum(e["dur"] for e in inside) <= island["dur"] + 1e-3
        assert all(e["args"]["variant"] and e["args"]["kernel"] and e["args"]["bytes"] > 0 for e in inside)
    products = [e for e in steps if "act" in e["args"]["nodes"]]
    assert all(e["args"]["flops"] == 2 * ROWS * 64 * 256 and e["args"]["share_of_ceiling"] > 0 for e in products)


def test_threads_are_tracks(document: dict[str, Any]) -> None:
    shares, steps = spans(document, "share"), spans(document, "step")
    assert len({e["tid"] for e in shares}) == 2 and len({e["tid"] for e in steps}) == 1
    for step in steps:
        inside = [e for e in shares if within(step, e)]
        assert len(inside) == (step["args"]["threads"] if step["args"]["tasks"] > 1 else 0)
        assert not inside or sum(e["args"]["tasks"] for e in inside) == step["args"]["tasks"]


def test_onnx_runtimes_nodes_are_there_on_the_same_clock(document: dict[str, Any]) -> None:
    runs, islands = spans(document, "run"), spans(document, "island")
    nodes = spans(document, "onnxruntime.node")
    dets = [e for e in nodes if e["name"] == "det"]
    assert len(dets) == RUNS + 1 and all(e["args"]["op_name"] == "Det" for e in dets)
    for det in dets:
        [run] = [r for r in runs if within(r, det)]
        first = min(ns(i)[0] for i in islands if within(run, i))
        assert first < ns(det)[0], "it takes what islands make"
    assert not [e for e in nodes if e["args"].get("provider") == "XyntraEP"], "the trace has islands itself"


def test_the_creation_of_the_session_is_there(document: dict[str, Any]) -> None:
    [session] = spans(document, "session")
    stages = {e["name"] for e in spans(document, "planning") if within(session, e)}
    assert {"capability", "plan", "analyse", "trace island0", "pass lower_to_ops", "compile islands", "packing island0"} <= stages
    assert any(name.startswith("process ") for name in stages), "compilers"
    assert any(e["name"] == "session_initialization" for e in spans(document, "onnxruntime.session"))


def test_the_summary_names_the_hottest(told: tuple[TracedModel, dict[str, Any]]) -> None:
    found, _ = told
    assert found.activity.runs == RUNS and found.activity.threads == 2 and found.nodes_of_ort >= 1
    ranks = [k.ns for k in found.activity.kernels]
    assert ranks == sorted(ranks, reverse=True) and sum(k.share for k in found.activity.kernels) == pytest.approx(1)
    assert "fc1" in str(found) and "ui.perfetto.dev" in str(found)


def test_a_stored_plan_is_not_made_anew_for_it(mlp: Path, tmp_path: Path, cache: Path, document: dict[str, Any]) -> None:
    del document  # after that the plan is there
    trace_model(mlp, tmp_path / "warm.json", runs=1, threads=2, options={"claim": "all", "cache_dir": str(cache)})
    stages = {e["name"] for e in spans(json.loads((tmp_path / "warm.json").read_text()), "planning")}
    assert stages == {"capability", "packing island0"} | {s for s in stages if s.startswith("packing")}


def test_of_a_block_of_code(mlp: Path, tmp_path: Path) -> None:
    session = open_session(mlp, {"claim": "all"}, threads=1)
    feeds = {"x": np.ones((3, 64), np.float32)}
    session.run(None, feeds)
    with xyntra_ep.tracing(tmp_path / "block.json") as trace:
        session.run(None, feeds)
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
            session.run(None, {"x": np.ones((3, 63), np.float32)})
        session.run(None, feeds)
    session.run(None, feeds)
    document = json.loads((tmp_path / "block.json").read_text())
    check(document)
    assert trace.batch is not None and len(spans(document, "run")) >= 2, "a run that ONNX Runtime refuses may be none"
    assert len(spans(document, "island")) == 2 * len(explain(session).graphs[0].islands)


def test_steps_side_by_side(tmp_path: Path) -> None:
    """They stand one after the other in the island, and in the threads where they were; no other step lies between them."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[512, 64] u, float[512, 96] v) => (float[512, 160] y)
        { a = Softmax(u) b = Softmax(v) y = Concat<axis = 1>(a, b) }"""
    session = open_session(parser.parse_model(text).SerializeToString(), {"claim": "all"}, threads=2)
    rng = np.random.default_rng(1)
    feeds = {"u": rng.random((512, 64), np.float32), "v": rng.random((512, 96), np.float32)}
    session.run(None, feeds)
    with xyntra_ep.tracing(tmp_path / "run.json"):
        for _ in range(20):
            session.run(None, feeds)
    document = json.loads((tmp_path / "run.json").read_text())
    check(document)
    steps, islands, shares = (spans(document, name) for name in ("step", "island", "share"))
    beside = 0
    for island in islands:
        inside = [e for e in steps if within(island, e)]
        assert sum(e["dur"] for e in inside) <= island["dur"] + 1e-3
        assert all(ns(a)[1] <= ns(b)[0] for a, b in pairwise(inside))
        of_island = [e for e in shares if within(island, e)]
        shared = [e["args"]["tasks"] for e in inside if e["args"]["tasks"] > 1]
        alone = sum(e["args"]["tasks"] == 1 for e in inside)  # which are shares, too, where they are beside others
        assert sum(shared) <= sum(e["args"]["tasks"] for e in of_island) <= sum(shared) + alone
        beside += sum(not any(within(step, e) for step in inside) for e in of_island)
    assert beside, "what threads did side by side crosses the ends of steps"


def test_a_run_that_failed_says_so(tmp_path: Path) -> None:
    """An index beyond its axis is an error of the island, which ends the run."""
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 8] x, int64[N] i) => (float[N, 8] y)
        { g = Gather<axis = 0>(x, i) y = Relu(g) }"""
    session = open_session(parser.parse_model(text).SerializeToString(), {"claim": "all"}, threads=1)
    x = np.ones((4, 8), np.float32)
    with xyntra_ep.tracing(tmp_path / "run.json"):
        session.run(None, {"x": x, "i": np.array([1, 2])})
        with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
            session.run(None, {"x": x, "i": np.array([1, 9])})
        session.run(None, {"x": x, "i": np.array([3])})
    document = json.loads((tmp_path / "run.json").read_text())
    check(document)
    for category in ("run", "island"):
        assert ["failed" in e["args"] for e in spans(document, category)] == [False, True, False]


@pytest.mark.parametrize("where", ["nowhere/run.json", "."])
def test_a_file_that_cannot_be_is_refused_before_anything_runs(where: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written there"), xyntra_ep.tracing(tmp_path / where):
        raise AssertionError


def test_questions_without_sense(mlp: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="runs=0 is none"):
        trace_model(mlp, tmp_path / "x.json", runs=0)
    with pytest.raises(ConfigError, match="leave the option out"):
        trace_model(mlp, tmp_path / "x.json", options={"trace": "live"})
