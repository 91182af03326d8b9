"""The page of `explain --passes`, and who refuses to fuse what: one type for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.support.models.model_text import normal, parse
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.explain import Explanation, explain
from xyntra_ep.diagnostics.explain import parse as parse_records
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.passes import PASSES
from xyntra_ep.fusion.reason import Kind

NODES = [("MatMul", "scores"), ("Softmax", "p"), ("MatMul", "y"), ("Transpose", "t"), ("Det", "d")]
STEPS = [
    {"name": "trace", "before": 4, "after": 3, "fused": [], "changed": [], "removed": [3], "refused": [], "rules": []},
    {
        "name": "fuse_attention",
        "before": 3,
        "after": 1,
        "fused": [[0, 1, 2]],
        "changed": [3],
        "removed": [],
        "refused": [],
        "rules": [["softmax.shifted", [1]]],
    },
    {
        "name": "fuse_rows",
        "before": 1,
        "after": 1,
        "fused": [],
        "changed": [],
        "removed": [],
        "refused": [{"kind": "pattern", "text": "its softmax is read elsewhere, too", "nodes": [2], "about": ""}],
        "rules": [],
    },
]


def explained(**island: Any) -> Explanation:
    plan = {
        "graph": "g",
        "nodes": [{"id": i, "op_type": kind, "name": name} for i, (kind, name) in enumerate(NODES)],
        "islands": [{"name": "island0", "nodes": [0, 1, 2, 3], "kernels": [], **island}],
        "declined": [{"node": 4, "op_type": "Det", "name": "d", "reason": "unsupported", "kind": "legality"}],
    }
    return parse_records([{"plan": plan}])


def test_what_passes_did_to_an_island() -> None:
    assert explained(passes=STEPS).passes().splitlines() == [
        "g, island0: MatMul x2, Softmax, Transpose",
        "  trace                4 nodes -> 3",
        "    removed      Transpose (t)",
        "  fuse_attention       3 -> 1",
        "    fused        MatMul x2, Softmax (scores, p, y)",
        "    changed      Transpose (t)",
        "    rule         softmax.shifted: Softmax (p)",
        "  fuse_rows            1 -> 1",
        "    refused      MatMul (y): its softmax is read elsewhere, too",
    ]


def test_what_passes_did_to_a_node() -> None:
    assert explained(passes=STEPS).passes("t").splitlines() == [
        "g, island0: MatMul x2, Softmax, Transpose",
        "  trace                4 nodes -> 3",
        "    removed      Transpose (t)",
        "  fuse_attention       3 -> 1",
        "    changed      Transpose (t)",
        "  fuse_rows            1 -> 1",
    ]
    assert explained(passes=STEPS).passes("d") == "Det d stays on CPU: unsupported"
    with pytest.raises(ConfigError, match="no node 'nobody'"):
        explained(passes=STEPS).passes("nobody")


def test_groups_that_are_alike_share_a_line() -> None:
    step = {**STEPS[1], "fused": [[0, 1], [2, 1]]}
    assert "    fused x2     MatMul, Softmax (scores, p, ...)" in explained(passes=[step]).passes().splitlines()


def test_a_session_that_did_not_look() -> None:
    with pytest.raises(ConfigError, match=r"the session did not look at its passes\. give a path, and passes=True"):
        explained().passes()


ATTENTION = """(float[B,2,5,8] q, float[B,2,5,8] k, float[B,2,5,8] v) => (float[] z, float[] d) {
    kt = Transpose<perm = [0, 1, 3, 2]>(k)  s = MatMul(q, kt)  p = Softmax<axis = -1>(s)  z = MatMul(p, v)  d = Det(s) }"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Attention whose scores are read a second time, by a node that stays with ONNX Runtime; nodes are called after results."""
    made = parse(ATTENTION)
    for node in made.graph.node:
        node.name = node.output[0]
    onnx.save(made, path := tmp_path / "model.onnx")
    return path


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_the_passes_of_a_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = explain(model, options={"claim": "all"}, passes=True)
    [island] = found.graphs[0].islands
    assert [step.name for step in island.passes] == ["trace", *(each.name for each in PASSES)]
    assert "    refused      MatMul (z): its scores are read elsewhere, too" in found.passes().splitlines()
    assert main(["explain", str(model), "--passes", "--node", "z", "-O", "claim=all"]) == 0
    assert capsys.readouterr().out == f"{found.passes('z')}\n"
    assert main(["explain", str(model), "--passes", "--json", "-O", "claim=all"]) == 0
    [graph] = json.loads(capsys.readouterr().out)
    assert [step["name"] for step in graph["plan"]["islands"][0]["passes"]] == [step.name for step in island.passes]


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_nobody_looks_unless_asked(model: Path, tmp_path: Path) -> None:
    assert all(not island.passes for graph in explain(model, options={"claim": "all"}).graphs for island in graph.islands)
    session = open_session(model, {"claim": "all", "dump_dir": str(tmp_path / "dump")})
    assert explain(session).passes(), "as written there"
    assert list((tmp_path / "dump").glob("*-island0-*-fuse_rows.dot"))


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_who_refuses_what(tmp_path: Path) -> None:
    """Legality, cost and variants; the refusal of a pattern is above."""
    text = "(float[2,2] x) => (float[2,2] y, float[] d) { y = Add(x, x) d = Det(x) }"
    onnx.save(parse(text), path := tmp_path / "small.onnx")
    [graph] = explain(path).graphs
    kinds = {d.op_type: d.why.kind for d in graph.declined}
    assert kinds == {"Add": Kind.COST, "Det": Kind.LEGALITY}
    [graph] = explain(path, options={"claim": "all", "min_island": "2"}).graphs
    assert {d.op_type: d.why.kind for d in graph.declined} == {"Add": Kind.OTHER, "Det": Kind.LEGALITY}
    onnx.save(parse("(float[64,64] x) => (float[] y) { y = MatMul(x, w) }", w=normal(64, 64)), path)
    [graph] = explain(path, options={"claim": "all"}).graphs
    rejected = [why for island in graph.islands for kernel in island.kernels for why in kernel.rejected]
    assert rejected and all(why.kind is Kind.VARIANT and why.about for why in rejected)
