"""`xyntra fuse`: the zoo's models there and back, and what can go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.diagnostics.fused_support import build, drift, feeds_of, fused, run
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.diagnostics.fused.model import fuse, picture
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.errors import ConfigError
from xyntra_zoo import model_path, zoo

Capture = pytest.CaptureFixture[str]
MAX_DRIFT = 2e-5  # what fp32 kernels are held to
SEQUENCE = 16

# Of each model: how many nodes there are, at most how many are left, and how often functions of these kinds are called.
ZOO = {
    "bert-base-tiny": (256, 155, {"Attention": 2, "LayerNormResidual": 4, "GemmBiasGelu": 2, "Gemm_": 7}),
    "vit-tiny16-tiny": (145, 112, {"Attention_": 2, "GemmBiasGelu": 2, "GemmBiasResidual": 3, "LayerNormResidual": 1}),
    "gpt2-prefill-tiny": (351, 305, {"Attention_": 2, "Gemm_": 6}),
    "gpt2-decode-tiny": (407, 310, {"Attention_": 2, "Gemm_": 6, "Rows_": 5}),
    "resnet50-tiny": (41, 16, {"Conv_": 10}),
}


@pytest.mark.parametrize("name", ZOO)
def test_a_fused_model_of_the_zoo_is_the_same_model(name: str, tmp_path: Path) -> None:
    before, most_after, kinds = ZOO[name]
    source, target = model_path(zoo[name]), tmp_path / "fused.onnx"
    summary = fuse(source, target)
    onnx.checker.check_model(str(target))
    assert (summary.nodes_before, summary.unfused, summary.declined) == (before, (), {})
    assert summary.nodes_after <= most_after
    for kind, count in kinds.items():
        assert sum(n for f, n in summary.functions.items() if f.startswith(kind)) == count
    _same_outside(onnx.load(source), onnx.load(target))
    feeds = zoo[name].feeds(2, SEQUENCE, 0)
    assert drift(run(target, feeds), run(source, feeds)) <= MAX_DRIFT


def _same_outside(a: onnx.ModelProto, b: onnx.ModelProto) -> None:
    """Inputs, outputs, ONNX's opset and every weight that is left; the calls are what the functions are for."""
    assert (list(a.graph.input), list(a.graph.output)) == (list(b.graph.input), list(b.graph.output))
    assert list(b.opset_import) == [*a.opset_import, onnx.helper.make_opsetid("ai.xyntra", 1)]
    assert a.ir_version == b.ir_version
    weights = {t.name: t for t in a.graph.initializer}
    assert all(weights[t.name] == t for t in b.graph.initializer)
    assert sum(len(t.raw_data) for t in b.graph.initializer) >= 0.99 * sum(len(t.raw_data) for t in a.graph.initializer)
    called = Counter(n.op_type for n in b.graph.node if n.domain == "ai.xyntra")
    assert {f.name for f in b.functions} == set(called)


@pytest.mark.slow
@pytest.mark.native
@pytest.mark.compiler("cc")
@pytest.mark.parametrize("name", ["bert-base-tiny", "vit-tiny16-tiny", "resnet50-tiny"])
def test_the_provider_takes_all_of_a_fused_model(name: str, tmp_path: Path) -> None:
    source, target = model_path(zoo[name]), tmp_path / "fused.onnx"
    summary = fuse(source, target)
    session = open_session(target, {"claim": "all"})
    graph = explain(session).graphs[-1]  # the graph as it is run; before, ONNX Runtime asks what to inline
    assert not graph.declined and len(graph.islands) == 1
    whole = {f: n for f, n in summary.functions.items() if "_" not in f}
    types = Counter(op_type for op_type, _ in graph.nodes.values())
    assert {f: types[f] for f in whole} == whole
    assert not any(f in types for f in summary.functions if f not in whole)
    feeds = zoo[name].feeds(2, SEQUENCE, 0)
    assert drift(session.run(None, feeds), run(source, feeds)) <= MAX_DRIFT


MLP = """g (float[n, 16] x) => (float[n, 16] y, float[n, 16] z)
 {h = MatMul(x, w1) h1 = Add(h, b1) a = Relu(h1) p = MatMul(a, w2) y = Add(p, x) z = Round(y)}"""
WEIGHTS: dict[str, tuple[int, ...]] = {"w1": (16, 32), "b1": (32,), "w2": (32, 16)}


@pytest.fixture
def mlp_model() -> onnx.ModelProto:
    return build(MLP, WEIGHTS, opset=17)


def test_equal_structures_share_a_function(tmp_path: Path) -> None:
    layers = " ".join(f"h{i} = MatMul(x{i}, w1) r{i} = Relu(h{i}) x{i + 1} = Add(r{i}, x{i})" for i in range(3))
    model = build("g (float[n, 16] x0) => (float[n, 16] x3) {" + layers + "}", {"w1": (16, 16)}, opset=17)
    source, target, summary = fused(model, tmp_path)
    assert list(summary.functions.values()) == [3] and summary.nodes_after == 3
    feeds = feeds_of(model, {"n": 5})
    assert drift(run(target, feeds), run(source, feeds)) == 0


def test_fusing_again_finds_the_same(tmp_path: Path) -> None:
    first, second = tmp_path / "1.onnx", tmp_path / "2.onnx"
    source = model_path(zoo["vit-tiny16-tiny"])
    once, twice = fuse(source, first), fuse(first, second)
    assert {f.name for f in onnx.load(first).functions} == {f.name for f in onnx.load(second).functions}
    assert once.nodes_after == twice.nodes_after
    feeds = zoo["vit-tiny16-tiny"].feeds(1, SEQUENCE, 0)
    assert drift(run(second, feeds), run(source, feeds)) <= MAX_DRIFT


def test_data_in_files_of_its_own_comes_along(mlp_model: onnx.ModelProto, tmp_path: Path) -> None:
    folder, other = tmp_path / "model", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    source, target = folder / "m.onnx", other / "f.onnx"
    onnx.save(mlp_model, source, save_as_external_data=True, location="weights.bin", size_threshold=0)
    fuse(source, target)
    assert (other / "weights.bin").read_bytes() == (folder / "weights.bin").read_bytes()
    feeds = feeds_of(mlp_model, {"n": 5})
    assert drift(run(target, feeds), run(source, feeds)) == 0
    (other / "weights.bin").write_bytes(b"another's")
    with pytest.raises(ConfigError, match="is another model's data"):
        fuse(source, target)


def test_a_branch_keeps_what_it_reads_from_around_it(tmp_path: Path) -> None:
    """h lies inside a group, and only a subgraph reads it from outside."""
    text = """g (float[n, 16] x, bool c) => (float[n, 16] y, float[n, 32] z)
     {h = MatMul(x, w1) a = Relu(h) y = MatMul(a, w2)
      z = If (c) <then_branch = t () => (float[n, 32] u) {u = Neg(h)}, else_branch = e () => (float[n, 32] v) {v = Exp(h)}>}"""
    model = build(text, WEIGHTS, opset=17)
    source, target, summary = fused(model, tmp_path)
    assert summary.declined == {"If(control-flow)": 1}
    feeds = feeds_of(model, {"n": 5})
    for c in (True, False):
        feeds["c"] = np.array(c)
        assert drift(run(target, feeds), run(source, feeds)) == 0


def test_functions_need_a_younger_file_format(mlp_model: onnx.ModelProto, tmp_path: Path) -> None:
    mlp_model.ir_version = 4
    _, target, _ = fused(mlp_model, tmp_path)
    assert onnx.load(target).ir_version == 8


def test_pictures(mlp_model: onnx.ModelProto, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    mlp_model.graph.node.append(onnx.helper.make_node("NonZero", ["y"], ["where"]))
    mlp_model.graph.output.append(onnx.helper.make_tensor_value_info("where", onnx.TensorProto.INT64, [2, None]))
    onnx.save(mlp_model, path)
    text = picture(path, "text").splitlines()
    assert (
        text[1].startswith("[0]  %h:f32[nx32] = MatMul-13(") and text[-2].startswith("[-]") and text[-2].endswith("# unsupported")
    )
    assert picture(path, "dot").count('fillcolor="/set312/1"') == 6
    rows = json.loads(picture(path, "json"))["nodes"]
    assert [row["island"] for row in rows] == [0] * 6 + [None] and rows[-1]["declined"] == "unsupported"


# -- the command


def test_the_command(mlp_model: onnx.ModelProto, tmp_path: Path, capsys: Capture) -> None:
    source, target = tmp_path / "m.onnx", tmp_path / "f.onnx"
    onnx.save(mlp_model, source)
    assert main(["fuse", str(source), "-o", str(target)]) == 0
    assert f"{target}: 6 nodes in 1 island became 3, 2 of them calls of 2 functions" in capsys.readouterr().out
    assert main(["fuse", str(source), "-o", str(target), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["nodes_after"] == 3
    assert main(["fuse", str(source)]) == 0
    assert capsys.readouterr().out.startswith("graph g (%x:f32[nx16])")
    for name, begins in (("g.dot", "digraph {"), ("g.json", "{"), ("g.txt", "graph g (")):
        assert main(["fuse", str(source), "-o", str(tmp_path / name)]) == 0
        assert (tmp_path / name).read_text().startswith(begins)


def test_provider_options(mlp_model: onnx.ModelProto, tmp_path: Path, capsys: Capture) -> None:
    onnx.save(mlp_model, source := tmp_path / "m.onnx")
    assert main(["fuse", str(source), "-O", "min_island=9"]) == 0
    assert "# island of 6 below min_island" in capsys.readouterr().out
    assert main(["fuse", str(source), "-o", str(tmp_path / "f.onnx"), "--option", "min_island=9"]) == 0
    assert "on CPU: MatMul(island of 6 below min_island), 2 nodes" in capsys.readouterr().out
    for option, message in (("min_iland=9", "did you mean 'min_island'?"), ("claim=profitable", "about one machine")):
        assert main(["fuse", str(source), "-O", option]) == 2
        assert message in capsys.readouterr().err


def test_wrong_questions_end_with_2(mlp_model: onnx.ModelProto, tmp_path: Path, capsys: Capture) -> None:
    source, broken, target = tmp_path / "m.onnx", tmp_path / "broken.onnx", tmp_path / "f.onnx"
    onnx.save(mlp_model, source)
    broken.write_bytes(b"no model at all")
    for arguments, message in (
        ([tmp_path / "absent.onnx", "-o", target], "absent.onnx: no such file. give the path of an ONNX model"),
        ([broken, "-o", target], "broken.onnx: not a valid ONNX model: "),
        ([broken, "--format", "text"], "broken.onnx: not a valid ONNX model: "),
        ([source, "--format", "onnx"], "xyntra: fuse: an ONNX model needs a file. write it as -o fused.onnx"),
        ([source, "-o", source], "would overwrite the model it is made from"),
        ([source, "-o", tmp_path / "absent" / "f.onnx"], "f.onnx: cannot be written: No such file or directory"),
        ([source, "-o", tmp_path / "absent" / "f.dot"], "f.dot: cannot be written: No such file"),
        ([source, "-o", tmp_path], f"{tmp_path}: is a folder. name a file, as in {tmp_path / 'fused.onnx'}"),
        ([source, "-o", "f.svg"], "f.svg: the suffix '.svg' says no format. there are .onnx, .py, .dot, .json, .txt"),
        ([source, "-o", "f"], "f: a name without a suffix says no format. there are .onnx, .py, .dot, .json, .txt"),
        (
            [source, "-o", "f.dot", "--format", "json"],
            "f.dot: would hold json, which its suffix does not say. leave out --format",
        ),
        ([tmp_path], f"{tmp_path}: is a folder. give the path of an ONNX model"),
    ):
        assert main(["fuse", *map(str, arguments)]) == 2
        assert message in capsys.readouterr().err
    assert not target.exists()


def test_without_onnx_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ConfigError, match=r"needs the packages onnx and onnxscript .*pip install 'xyntra-ep\[bench\]'"):
        fuse(tmp_path / "m.onnx", tmp_path / "f.onnx")


def test_pictures_do_without_onnxscript(mlp_model: onnx.ModelProto, tmp_path: Path) -> None:
    """In a process of its own: this one has imported it."""
    onnx.save(mlp_model, tmp_path / "m.onnx")
    ask = (
        "import sys; sys.modules['onnxscript'] = None; from xyntra_ep.cli import main;"
        "sys.exit(main(['fuse', 'm.onnx', '-o', 'm.dot']) or main(['fuse', 'm.onnx', '-o', 'm.json']))"
    )
    root = str(Path(__file__).resolve().parents[3])
    subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, env={**os.environ, "PYTHONPATH": root}, check=True)
    assert (tmp_path / "m.dot").is_file() and (tmp_path / "m.json").is_file()
