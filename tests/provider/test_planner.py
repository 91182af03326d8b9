"""The planner's own decisions, on graphs as native code hands them over."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.models.model_text import close, cpu, normal, parse
from tests.support.sessions import planned, watched_planner
from xyntra_ep import explain, knobs
from xyntra_ep.errors import CompileError, UnsupportedError, XyntraError
from xyntra_ep.fusion.schedule import build_program
from xyntra_ep.fusion.trace import Context as TraceContext
from xyntra_ep.provider import planner
from xyntra_ep.provider.fusion_graph import graph_of
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.tracea.core_ir.ops import Program
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.islands import CompileResult, Island, IslandFailure, compile_islands
from xyntra_ep.tracea.planning.manifest import LogLevel
from xyntra_ep.tracea.planning.manifest_reader import read_manifest

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
DIGEST = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def raw(tmp_path: Path) -> RawGraph:
    """x -> Exp -> a -> NonZero -> b -> Cast -> c -> Neg -> y; in a cache where no other worker's plan of it is found instead."""
    model = parse("(float[N] x) => (float[] y) { a = Exp(x) b = NonZero(a) c = Cast<to = 1>(b) y = Neg(c) }")
    with watched_planner() as plans:
        planned(model, {"cache_dir": str(tmp_path / "session")})
    return plans.graphs[0]


def with_options(raw: RawGraph, cache: Path, **options: str) -> RawGraph:
    return replace(raw, options={**raw.options, "cache_dir": str(cache), **options})


def test_a_graph_in_our_terms(raw: RawGraph) -> None:
    graph = graph_of(raw)
    assert [n.op_type for n in graph.nodes] == ["Exp", "NonZero", "Cast", "Neg"]
    assert [n.id for n in graph.nodes] == [0, 1, 2, 3] and not graph.is_subgraph
    assert graph.values["x"].is_input and graph.values["x"].shape == ("N",)
    assert graph_of(replace(raw, is_subgraph=True)).is_subgraph


class TestLog:
    def test_a_warning_once_per_graph(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_said", {})
        levels = []
        for _ in range(2):
            plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path), DIGEST))
            assert "3 of 4 nodes in 2 islands; 1 on CPU: NonZero(unsupported) 1" in plan.log_line
            levels.append(plan.log_level)
        assert levels == [LogLevel.WARNING, LogLevel.INFO]
        (stored,) = (tmp_path / "plans").glob("*.plan")
        assert read_manifest(stored.read_bytes()).log_level is LogLevel.INFO

    def test_control_flow_is_no_loss(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_said", {})
        body = "b (int64 i, bool go, float[N] u) => (bool on, float[N] v) { on = Identity(go) v = Tanh(u) }"
        for rest, said, level in (
            ("y = Identity(l)", "1 of 1 node in 1 island, and apart from these the bodies of Loop", LogLevel.INFO),
            ("y = NonZero(l)", "; 1 on CPU: NonZero(unsupported) 1", LogLevel.WARNING),
        ):
            kind = "float[N]" if "Identity" in rest else "int64[]"
            model = parse(f"(float[N] x, int64 m) => ({kind} y) {{ a = Exp(x) l = Loop(m, , a) <body = {body}> {rest} }}")
            with watched_planner() as plans:
                planned(model)
            [graph] = [graph for graph in plans.graphs if not graph.is_subgraph]
            plan = read_manifest(planner.plan_graph(with_options(graph, tmp_path), DIGEST[:-1] + str(level.value)))
            assert said in plan.log_line and "control-flow" not in plan.log_line and plan.log_level is level

    def test_bodies_are_quiet(self, raw: RawGraph, tmp_path: Path) -> None:
        plan = read_manifest(planner.plan_graph(replace(with_options(raw, tmp_path), is_subgraph=True), DIGEST))
        assert plan.log_level is LogLevel.VERBOSE

    def test_what_was_asked_for_and_cannot_be_had(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_said", {})
        (file := tmp_path / "file").write_text("")
        plan = read_manifest(planner.plan_graph(with_options(raw, file, dump_dir=str(file)), DIGEST))
        assert f"the next process compiles all again, because the cache {file} is not a directory" in plan.log_line
        assert "dump_dir cannot be written" in plan.log_line and plan.log_level is LogLevel.WARNING

    def test_a_hint_that_no_dimension_has(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_said", {})
        plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path, dim_hints="N=2,M=3"), DIGEST))
        assert ", dim_hints: the model's inputs have no dimension 'M'. there are N; " in plan.log_line
        assert plan.log_level is LogLevel.WARNING and json.loads(plan.report)["assumed"] == "N=2"

    def test_below_the_level_asked_for(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(planner, "_said", {})
        plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path, log_level="error"), DIGEST))
        assert plan.log_line == ""


class TestWhatIsKept:
    def stored(self, cache: Path) -> int:
        return len(list((cache / "plans").glob("*.plan")))

    def test_a_plan(self, raw: RawGraph, tmp_path: Path) -> None:
        planner.plan_graph(with_options(raw, tmp_path), DIGEST)
        assert self.stored(tmp_path) == 1

    def test_not_when_sources_are_dumped(self, raw: RawGraph, tmp_path: Path) -> None:
        planner.plan_graph(with_options(raw, tmp_path, dump_dir=str(tmp_path / "dump")), DIGEST)
        assert self.stored(tmp_path) == 0 and list((tmp_path / "dump").iterdir())

    def test_not_a_refusal(self, raw: RawGraph, tmp_path: Path) -> None:
        plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path, claim="most"), DIGEST))
        assert "allowed: profitable, all" in plan.refusal and not plan.islands and self.stored(tmp_path) == 0

    def test_not_without_a_compiler(self, raw: RawGraph, tmp_path: Path) -> None:
        with knobs.scope(cc=str(tmp_path / "absent")):
            plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path), DIGEST))
        assert not plan.islands and self.stored(tmp_path) == 0


class TestFailures:
    def run(
        self,
        raw: RawGraph,
        cache: Path,
        monkeypatch: pytest.MonkeyPatch,
        bad: str,
        error: XyntraError,
        whole: bool,
    ) -> dict[str, str]:
        """The planner's declines when every kernel of op ``bad`` fails."""
        graph = graph_of(raw)
        numbers = {n.id for n in graph.nodes if n.op_type == bad}

        def failing(islands: list[Island], context: Context) -> CompileResult:
            real = compile_islands(islands, context)
            at_fault = [
                IslandFailure(island=i, op=None if whole else 0, nodes=island.nodes if whole else tuple(numbers), error=error)
                for i, island in enumerate(islands)
                if any(numbers & set(s) for program in island.alternatives for s in program.sources)
            ]
            kept = tuple(None if any(f.island == i for f in at_fault) else entry for i, entry in enumerate(real.islands))
            return CompileResult(islands=kept, kernels=real.kernels, failures=tuple(at_fault), compiled=0)

        monkeypatch.setattr(planner, "compile_islands", failing)
        plan = read_manifest(planner.plan_graph(with_options(raw, cache), DIGEST))
        report = json.loads(plan.report)
        declined = {d["op_type"]: d["reason"] for d in report["declined"]}
        claimed = sum(len(i.nodes) for i in plan.islands)
        assert claimed == len(graph.nodes) - len(declined) == sum(len(i["nodes"]) for i in report["islands"])
        return declined

    @pytest.mark.parametrize("bad", ["Exp", "Cast", "Neg"])
    def test_a_kernel_costs_its_nodes(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bad: str) -> None:
        found = self.run(raw, tmp_path, monkeypatch, bad, CompileError("gcc crashed"), whole=False)
        assert found == {"NonZero": "unsupported", bad: "gcc crashed"}
        assert not list((tmp_path / "plans").glob("*.plan"))

    def test_a_broken_island_costs_all_of_it(self, raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = self.run(raw, tmp_path, monkeypatch, "Neg", UnsupportedError("no variant"), whole=True)
        assert found == {"NonZero": "unsupported", "Cast": "no variant", "Neg": "no variant"}
        assert list((tmp_path / "plans").glob("*.plan")), "it will be the same next time"


def test_an_island_that_cannot_be_built_is_left(raw: RawGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: TraceContext, inputs: list[str], outputs: list[str], **asked: Any) -> Program:
        if outputs == ["a"]:
            raise ZeroDivisionError("oh")
        return build_program(context, inputs, outputs, **asked)

    monkeypatch.setattr(planner, "build_program", broken)
    plan = read_manifest(planner.plan_graph(with_options(raw, tmp_path), DIGEST))
    declined = {d["op_type"]: d["reason"] for d in json.loads(plan.report)["declined"]}
    assert declined == {"NonZero": "unsupported", "Exp": "internal: ZeroDivisionError: oh"}


def test_constants_that_callers_may_replace() -> None:
    """An initializer that is an input too is data of the run."""
    model = parse("(float[N] x, float[3] c) => (float[] y) { a = Mul(x, c) y = Tanh(a) }", c=normal(3))
    session = planned(model)
    for feeds in ({"x": normal(3)}, {"x": normal(3), "c": normal(3, seed=4)}):
        close(session.run(None, feeds), cpu(model, feeds))


def test_plans_follow_the_contents_of_masks() -> None:
    """A table of 1600 bytes is no part of the graph's digest: a plan that it decided is made anew for another."""
    triangle, other = np.tri(40, dtype=bool), np.tri(40, dtype=bool)
    other[3, 1] = False
    feeds = {"q": normal(1, 2, 40, 8), "k": normal(1, 2, 40, 8, seed=1)}
    for table, masks in ((triangle, 1), (other, 0), (triangle, 1)):
        model = parse(
            """(float[1,2,40,8] q, float[1,2,40,8] k) => (float[] y) <float low = {-3.4028235e38}>
            { kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) w = Where(table, s, low) p = Softmax<axis = -1>(w)
              y = MatMul(p, k) }""",
            table=table,
        )
        session = planned(model)
        close(session.run(None, feeds), cpu(model, feeds))
        text = str(explain(session))
        assert text.count("causal: row s sees the columns below s + 1") == masks and "attention.fused" in text
