from __future__ import annotations

from pathlib import Path

import onnxruntime as ort
import pytest

from xyntra_ep.diagnostics.explain import explain, parse
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError

ENTRY = {
    "graph": "g",
    "stored": True,
    "failure": "",
    "unclaimed": {"island1": "kernels/k.so: is damaged"},
    "plan": {
        "graph": "g",
        "nodes": [{"id": i, "op_type": t, "name": f"n{i}", "domain": ""} for i, t in enumerate(["Relu", "Gelu", "Det", "Shape"])],
        "islands": [
            {
                "name": "island0",
                "nodes": [0, 3],
                "kernels": [
                    {
                        "label": "relu",
                        "variant": "pointwise.vector",
                        "nodes": [0],
                        "cost_ns": 1500,
                        "rejected": [["x", "slow"]],
                        "notes": ["flat: all the way"],
                    }
                ],
                "ours_ns": 2100,
                "ort_ns": 4250,
            },
            {"name": "island1", "nodes": [1], "kernels": []},
        ],
        "declined": [{"node": 2, "op_type": "Det", "name": "n2", "reason": "unsupported"}],
        "cache": "",
    },
}


def test_records_become_a_table() -> None:
    found = parse([ENTRY])
    assert found.claimed == 2
    assert str(found).splitlines() == [
        "g: 2 of 4 nodes on XyntraEP in 1 islands (stored plan)",
        "  island0: 2 nodes, 1 kernels (est. 2.1 us, ORT 4.25 us): Relu, Shape",
        "    relu                     pointwise.vector               1.5 us  Relu",
        "      flat: all the way",
        "  times are estimates: an island's where it compares worst with ONNX Runtime, with unknown sizes of 1, 16, 128 and"
        " one core or all; a kernel's on one core, with unknown sizes of 128",
        "  on CPU, 2 nodes:",
        "       1 Gelu: kernels/k.so: is damaged (n1)",
        "       1 Det: unsupported (n2)",
    ]


def test_why_a_node_runs_where_it_does() -> None:
    found = parse([ENTRY])
    assert found.reason("n0") == "Relu n0 runs on XyntraEP in island0 by pointwise.vector"
    assert found.reason("n3") == "Shape n3 runs on XyntraEP in island0, folded away"
    assert found.reason("n1") == "Gelu n1 stays on CPU: kernels/k.so: is damaged"
    with pytest.raises(ConfigError, match="no node 'n9'"):
        found.reason("n9")


def test_a_graph_without_a_plan_has_its_failure() -> None:
    found = parse([{"graph": "g", "failure": "out of memory", "plan": None}])
    assert found.claimed == 0 and str(found) == "XyntraEP takes nothing: out of memory"
    assert str(parse([])) == "XyntraEP was shown no graph"


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_model_and_a_live_session_say_the_same(mlp: Path) -> None:
    options = {"claim": "all"}
    by_path = explain(mlp, options=options)
    by_session = explain(open_session(mlp, options))
    [graph] = by_path.graphs
    assert graph.claimed >= 4 and "Det" in [d.op_type for d in graph.declined]
    assert [g.islands for g in by_path.graphs] == [g.islands for g in by_session.graphs]
    assert by_session.graphs[0].stored
    assert "stays on CPU" in by_path.reason("det")


@pytest.mark.native
def test_a_session_without_the_provider(mlp: Path) -> None:
    session = ort.InferenceSession(str(mlp), providers=["CPUExecutionProvider"])
    with pytest.raises(ConfigError, match=r"^explain: a dict is no model\. give a path, a model's bytes or a session$"):
        explain({})
    with pytest.raises(ConfigError, match="the session has no XyntraEP"):
        explain(session)


@pytest.mark.native
def test_a_wrong_option_and_a_wrong_path_are_the_callers(mlp: Path) -> None:
    with pytest.raises(ConfigError, match="no provider option 'clam'"):
        explain(mlp, options={"clam": "all"})
    for number in ("0", "99"):  # on a machine without the GPU, ONNX Runtime does not come to ask us
        with pytest.raises(ConfigError, match=f"XyntraEP: device_id={number} cannot be had: this machine shows no NVIDIA GPU"):
            explain(mlp, options={"device_id": number})
    for text in ("x", ""):
        with pytest.raises(ConfigError, match=f"device_id='{text}' is not valid. it wants an integer of at least 0"):
            explain(mlp, options={"device_id": text})
    assert explain(mlp, options={"device_id": "-1"}).graphs, "the number of the processor"
    with pytest.raises(ConfigError, match="no such file"):
        explain(mlp.with_name("absent.onnx"))
