from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort
import pytest

from tests.diagnostics.fused_support import build
from xyntra_ep.diagnostics.advice import advice, basis
from xyntra_ep.diagnostics.explain import explain, parse
from xyntra_ep.diagnostics.fixed_shapes import with_shapes
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.interface.context import Context

NAMELESS = "g (float[a, 64] x, float[b, 64] z) => (float[c, 64] y) {m = MatMul(x, w) r = Relu(m) y = Add(r, z)}"
ENTRY: dict[str, Any] = {
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
                "size": 128,
            },
            {"name": "island1", "nodes": [1], "kernels": []},
        ],
        "dims": ["n"],
        "declined": [{"node": 2, "op_type": "Det", "name": "n2", "reason": "unsupported", "kind": "legality"}],
        "cache": "",
    },
}


def test_records_become_a_table() -> None:
    found = parse([ENTRY])
    assert found.claimed == 2
    assert str(found).splitlines() == [
        "nodes are what ONNX Runtime's optimizations leave of the file's, which `xyntra fuse` counts",
        "times are estimates for one core by figures assumed for this kind of machine",
        "",
        "g: 2 of 4 nodes on XyntraEP in 1 island (stored plan)",
        "  island0: 2 nodes, 1 kernel (est. 2.1 us, ORT 4.25 us): Relu, Shape",
        "    relu                     pointwise.vector               1.5 us  71%  Relu",
        "      flat: all the way",
        "  on CPU, 2 nodes:",
        "       1 Gelu: kernels/k.so: is damaged (n1)",
        "       1 Det: unsupported (n2)",
        "",
        "what would help:",
        "  an operator that XyntraEP has not: Det, 1 node of this model",
        "  `xyntra doctor --measure`: estimates, and what is claimed by them, follow this machine's own figures then",
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


def helping(**plan: Any) -> list[str]:
    """What the page of one graph ends with."""
    whole = {**ENTRY, "unclaimed": {}, "plan": {**ENTRY["plan"], "measured": True, "declined": [], **plan}}
    return list(advice(parse([whole]).graphs))


def declined(*reasons: str) -> list[dict[str, Any]]:
    return [
        {"node": 2, "op_type": "Det", "name": f"d{i}", "reason": reason, "kind": "cost" if "est." in reason else "legality"}
        for i, reason in enumerate(reasons)
    ]


def test_only_what_is_true_of_a_model_is_advised() -> None:
    lost = "declined: est. 3 us, ORT 2 us"
    assert helping() == []
    assert helping(declined=declined("control-flow")) == []
    assert helping(declined=declined("unsupported", "unsupported")) == [
        "an operator that XyntraEP has not: Det, 2 nodes of this model"
    ]
    assert helping(declined=declined("island of 2 below min_island")) == ["a smaller min_island: 1 node more"]
    assert helping(declined=declined(lost), claim="all") == []
    assert helping(declined=declined(lost), claim="profitable") == []
    sizes, *_ = helping(declined=declined(f"{lost} at n=128 on one core"), claim="profitable", assumed="n=128")
    assert sizes.startswith(
        "sizes that are known: 1 node would be slower than in ONNX Runtime at what n usually are; option dim_hints"
    )
    assert helping(declined=declined(f"{lost} at n=128 on one core"), claim="profitable", dims=[], assumed="n=128") == []
    assert helping(measured=False) != []
    unknown = [f"unknown rank of input {name}" for name in "aabcd"]
    assert helping(declined=declined(*unknown[:3])) == [
        "shapes in the model: 3 nodes may be had where its value_info gives shapes to a, b, which ONNX Runtime cannot infer"
        " (docs/control-flow.md)"
    ]
    assert "5 nodes may be had where its value_info gives shapes to a, b, c, ..." in helping(declined=declined(*unknown))[0]


def test_a_faster_precision_is_advised_where_it_gains_clearly() -> None:
    [island, _] = ENTRY["plan"]["islands"]
    [kernel] = island["kernels"]
    for variant, advised in (("gemm.packed_b", 1), ("pointwise.vector", 0), ("gemm.pairs_bf16", 0)):
        islands = [{**island, "kernels": [{**kernel, "variant": variant}]}]
        found = helping(islands=islands, products={"bf16": [1500, 1000]})
        assert len(found) == advised
        assert all(text.startswith("precision=bf16: est. 1.5x as fast, because products are 71% of the est") for text in found)
        assert all(text.endswith("; it costs accuracy (docs/precision.md)") for text in found)
        assert helping(islands=islands) == [] == helping(islands=islands, products={"bf16": [1500, 1500]})
    few = [{**island, "kernels": [{**kernel, "variant": "gemm.packed_b", "cost_ns": 400}]}]
    assert helping(islands=few, products={"bf16": [400, 100]}) == [], "a fifth of the island's time, or it is not worth it"


def test_kernels_that_are_alike_share_a_line() -> None:
    [island, _] = ENTRY["plan"]["islands"]
    [kernel] = island["kernels"]
    copies = [{**kernel, "label": "copy", "notes": [], "cost_ns": 10}] * 3
    masks = [{**kernel, "label": "mask", "notes": [], "cost_ns": 15}]
    islands = [{**island, "kernels": [kernel, *copies, kernel, *masks], "ours_ns": 6000}]
    other = [{**island, "kernels": [{**kernel, "notes": []}], "ours_ns": 0}]
    plans = [{**ENTRY, "unclaimed": {}, "plan": {**ENTRY["plan"], "islands": rows}} for rows in (islands, other)]
    lines = [line for line in str(parse(plans)).splitlines() if line.startswith("    ") and "Det" not in line]
    assert lines == [
        "    relu x2                  pointwise.vector               3.0 us  40%  Relu",
        "      flat: all the way",
        "    4 more, of kinds below 1% (--json has them)             0.0 us   1%",
        "    relu                     pointwise.vector               1.5 us  20%  Relu",
    ], "percentages are of both islands"


def test_control_flow_costs_nothing() -> None:
    rows = [{"node": 2, "op_type": "Loop", "name": "n2", "reason": "control-flow", "kind": "legality"}]
    found = parse([{**ENTRY, "unclaimed": {}, "plan": {**ENTRY["plan"], "declined": rows}}])
    assert (found.claimed, found.total) == (3, 3)
    assert found.reason("n2").endswith(" n2 stays with ONNX Runtime, as control flow does; its bodies are graphs of their own")
    assert "  control flow: Loop; the bodies are graphs of their own" in str(found) and "on CPU" not in str(found)


def test_what_loses_is_counted_and_can_be_had() -> None:
    rows = declined("declined: est. 3 us, ORT 2 us", "unsupported")
    for claim, note in (("profitable", " (1 by the estimates; claim=all takes those all the same)"), ("all", "")):
        found = parse([{**ENTRY, "unclaimed": {}, "plan": {**ENTRY["plan"], "declined": rows, "claim": claim}}])
        assert f"  on CPU, 2 nodes{note}:\n" in str(found)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_another_precision_is_estimated(mlp: Path) -> None:
    """Of what the session computes; none of the other precisions asks."""
    [graph] = explain(mlp, options={"claim": "all"}, sizes={"n": 256}).graphs
    machine = {str(half): half for half in Context().halves}
    assert set(graph.products) == set(machine)
    for now, then in graph.products.values():
        kernels = [k for island in graph.islands for k in island.usual]
        assert 0 < then <= now and kernels
    [graph] = explain(mlp, options={"claim": "all", "precision": "int8w"}).graphs
    assert graph.products == {}


def test_times_say_what_they_are_of() -> None:
    def said(**plan: Any) -> str:
        return basis(parse([{**ENTRY, "plan": {**ENTRY["plan"], **plan}}]).graphs)

    assert said(measured=True) == "times are estimates for one core by figures measured on this machine"
    assert said(assumed="x: [1, 128]", dims=[]).endswith("machine, for x: [1, 128]; --shape INPUT=64x20 gives others")
    assert said(assumed="n=128").endswith("this kind of machine, for n=128; --dim NAME=SIZE gives others")
    on_device = "times are estimates of single kernels on the device, sizes that are not known being usual ones"
    assert said(device="cuda:x") == on_device
    assert said(islands=[]) == ""


def test_functions_that_are_inlined_are_no_nodes() -> None:
    first = {**ENTRY, "plan": {**ENTRY["plan"], "islands": [], "inlined": True}}
    found = parse([first, ENTRY])
    assert (found.claimed, found.total) == (2, 4)
    assert "g: it has functions, which ONNX Runtime inlines next" in str(found)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_sizes_that_are_fixed(mlp: Path) -> None:
    found = explain(mlp, options={"claim": "all"}, sizes={"n": 8})
    assert str(found).startswith("as in a session that fixes n=8 (")
    [graph] = found.graphs
    assert graph.dims == () and graph.assumed == ""
    [free] = explain(mlp, options={"claim": "all"}).graphs
    assert free.dims == ("n",) and free.assumed == "n=1" and free.claim == "all" and not free.measured
    for island in (*graph.islands, *free.islands):
        assert 0 < sum(k.cost_ns for k in island.kernels if k.alternative == 0) <= island.ours_ns
    with pytest.raises(ConfigError, match=r"^sizes: the model's inputs have no dimension 'm'. there are n$"):
        explain(mlp, sizes={"m": 8})
    with pytest.raises(ConfigError, match=r"^explain: a session has its sizes. give a path, or leave out the sizes$"):
        explain(open_session(mlp, {}), sizes={"n": 8})


def test_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "empty.onnx").touch()
    (tmp_path / "junk.onnx").write_text("junk")
    model = build("g (float[n, 4] x) => (float[n, 4] y) {y = MatMul(x, w)}", {"w": (4, 4)}, opset=17)
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    for path, message in (
        (tmp_path, "is a folder. give the path of an ONNX model"),
        (tmp_path / "empty.onnx", "is empty. give the path of an ONNX model"),
        (tmp_path / "junk.onnx", "is not an ONNX model, or not the whole of one. give the path of an ONNX model"),
        (tmp_path / "m.onnx", f"its data is not there: {tmp_path / 'w.bin'}. it belongs where the model was exported with it"),
    ):
        with pytest.raises(ConfigError) as refused:
            open_session(path)
        assert str(refused.value) == f"{path}: {message}"


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
    with pytest.raises(ConfigError, match=r"XyntraEP: device_id=99 cannot be had: this machine shows no NVIDIA GPU"):
        explain(mlp, options={"device_id": "99"})  # ONNX Runtime does not come to ask us
    for text in ("x", ""):
        with pytest.raises(ConfigError, match=f"device_id='{text}' is not valid. it wants an integer of at least 0"):
            explain(mlp, options={"device_id": text})
    assert explain(mlp, options={"device_id": "-1"}).graphs, "the number of the processor"
    with pytest.raises(ConfigError, match="no such file"):
        explain(mlp.with_name("absent.onnx"))


def nameless(folder: Path) -> Path:
    """As exporters of scikit-learn's models write it; its weights are in a file of their own."""
    model = build(NAMELESS, {"w": (64, 64)}, opset=17)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].ClearField("dim_param")
    onnx.save(model, folder / "nameless.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    return folder / "nameless.onnx"


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_shapes_of_dims_without_names(tmp_path: Path) -> None:
    path = nameless(tmp_path)
    found = explain(path, options={"claim": "all"}, shapes={"x": [8, 64], "z": [8, 64]})
    assert str(found).startswith("as in a session of the model with these shapes of its inputs: x: [8, 64], z: [8, 64]\n")
    assert found.claimed == 3 and found.graphs[0].assumed == ""
    without = r"have dimensions without names \(x: \[\?, 64\], z: \[\?, 64\]\): give a shape, as in shapes=\{'x': \(1, 64\)\}$"
    with pytest.raises(ConfigError, match=rf"^sizes: the model's inputs have no dimension 'm'. they {without}"):
        explain(path, sizes={"m": 8})


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_shapes_of_dims_with_names_are_sizes(mlp: Path) -> None:
    found = explain(mlp, options={"claim": "all"}, shapes={"x": (8, 64)})
    assert found.sizes == {"n": 8} and not found.shapes
    assert found.graphs[0].dims == ()


@pytest.mark.native
def test_shapes_that_do_not_fit(mlp: Path) -> None:
    wrong: list[tuple[Any, Any, str]] = [
        ({"v": (8, 64)}, {}, r"^shapes: the model has no input 'v'. it has x$"),
        ({"x": (8, 63)}, {}, r"^shapes: x cannot have the shape \[8, 63\]. it is \[n, 64\]$"),
        ({}, {"n": "64"}, r"^sizes: n='64' is no size. it wants an integer from 0 to 2147483647$"),
        ({}, {"n": 2.0}, r"^sizes: n=2.0 is no size. "),
        ({}, {"n": 2**31}, r"^sizes: n=2147483648 is no size. "),
        ({"x": ("8", 64)}, {}, r"^shapes: x has '8', which is no size. it wants an integer from 0 to 2147483647$"),
        ({"x": (8,)}, {}, r"^shapes: x cannot have the shape \[8\]. it is"),
        ({"x": (8, 64)}, {"n": 9}, r"^shapes: x has n=8, and n=9 is given. give one of them$"),
    ]
    for shapes, sizes, message in wrong:
        with pytest.raises(ConfigError, match=message):
            explain(mlp, shapes=shapes, sizes=sizes)
    ort_form = mlp.with_name("junk.onnx")
    ort_form.write_bytes(b"junk")
    with pytest.raises(ConfigError, match=r"^.*junk.onnx: a shape is fixed in ONNX models only. give the .onnx"):
        with_shapes(ort_form, {"x": (1,)})
