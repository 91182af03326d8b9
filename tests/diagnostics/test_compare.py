from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from tests.diagnostics.fused_support import build
from xyntra_bench.contenders import DEFAULT_MAX_ERR, Contender
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.compare import MAX_DRIFT, Comparison, compare
from xyntra_ep.diagnostics.distance.drift import drift, labels, numbers
from xyntra_ep.diagnostics.sizes import Sizes
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import Precision

Capture = pytest.CaptureFixture[str]
NO_SIZES = Sizes(given={}, made_up={})
NAN, INF = float("nan"), float("inf")


def f(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


def test_drift_is_relative_to_the_largest_element() -> None:
    found = drift("y", f(1, 2, 4.5), f(1, 2, 4))
    assert (found.relative, found.absolute, found.largest, found.alive) == (0.125, 0.5, 4.0, True)
    assert not drift("y", f(0, 0), f(0, 1e-6)).alive
    assert drift("y", f(0, 0), f(0, 1e-6)).note == "the reference is nearly zero: this proves nothing"
    assert drift("y", f(), f()).note == "has no elements: this proves nothing"


@pytest.mark.parametrize(
    ("got", "wanted", "relative"),
    [
        (f(NAN, 1), f(NAN, 1), 0.0),
        (f(INF, 1), f(INF, 1), 0.0),
        (f(INF, 1), f(-INF, 1), float("inf")),
        (f(1, 1), f(NAN, 1), float("inf")),
        (f(NAN, 1), f(1, 1), float("inf")),
        (f(1), f(1, 1), float("inf")),
        (f(), f(), 0.0),
        (f(0), f(0), 0.0),
        (f(1e-9), f(0), float("inf")),
    ],
)
def test_special_values_must_be_where_they_are(got: np.ndarray, wanted: np.ndarray, relative: float) -> None:
    assert drift("y", got, wanted).relative == relative


@pytest.mark.parametrize(
    ("got", "wanted", "note"),
    [
        (f(NAN, 1), f(NAN, 1), "not finite, and the same in both: 1 element"),
        (
            f(NAN, 0),
            f(NAN, 0),
            "not finite, and the same in both: 1 element; the reference is nearly zero: this proves nothing",
        ),
        (f(NAN, INF), f(NAN, INF), "no finite element, in either: this proves nothing"),
        (f(INF, 1, 1), f(NAN, 1, NAN), "not finite: 2 elements of the reference, and 2 not alike in this"),
        (f(NAN, 1), f(1, 1), "not finite: 0 elements of the reference, and 1 not alike in this"),
    ],
)
def test_elements_that_are_not_finite_are_counted(got: np.ndarray, wanted: np.ndarray, note: str) -> None:
    assert drift("y", got, wanted).note == note


def test_integers_are_equal_or_not() -> None:
    a = np.array([1000000, 5])
    assert drift("i", a, a).relative == 0 and drift("i", a + 1, a).relative == float("inf")


def test_the_first_tensor_that_drifts_is_named() -> None:
    tensors = tuple(drift(n, f(1 + e), f(1), op) for n, e, op in (("a", 0, "Relu"), ("b", 0.5, "Gelu"), ("c", 1, "Add")))
    outputs = (drift("y", f(2), f(1)),)
    found = Comparison(outputs=outputs, tensors=tensors, max_drift=1e-3, claimed=1, total=2, nodes_total=3, sizes=NO_SIZES)
    assert not found.ok and found.first is not None and found.first.name == "b"
    assert "first drift above 0.001: b (Gelu), 0.5" in str(found) and "DRIFT" in str(found)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_model_against_the_cpu_provider(mlp: Path) -> None:
    found = compare(mlp, options={"claim": "all"}, nodes=True, sizes={"n": 7})
    assert found.total - found.claimed == 1  # Det; how many others there are is for ONNX Runtime's optimizer
    assert str(found).startswith(f"XyntraEP computed {found.claimed} of {found.total} nodes\nsizes: n=7\n")
    assert [d.name for d in found.outputs] == ["y", "det"]
    assert found.outputs[0].relative <= found.max_drift and found.outputs[0].alive
    assert [d.name for d in found.tensors] == ["h0", "h1", "h2", "h3", "y", "yt", "yy", "det"]


@pytest.mark.parametrize("precision", Precision)
def test_a_precision_has_the_bound_that_bench_gives_it(precision: Precision) -> None:
    assert Contender.parse(f"XyntraEP:{precision}").max_err(DEFAULT_MAX_ERR) == MAX_DRIFT[precision]


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_what_is_asked_of_a_reduced_precision(mlp: Path) -> None:
    assert compare(mlp, options={"precision": "int8w"}).max_drift == MAX_DRIFT[Precision.INT8W]


def test_what_cannot_be_compared(mlp: Path, tmp_path: Path) -> None:
    (junk := tmp_path / "junk.onnx").write_text("junk")
    with pytest.raises(
        ConfigError, match=r"junk.onnx: is not an ONNX model, or not the whole of one. give the path of an ONNX model$"
    ):
        compare(junk)
    with pytest.raises(ConfigError, match=r"^sizes: the model's inputs have no dimension 'm'. there are n$"):
        compare(mlp, sizes={"m": 3})
    with pytest.raises(ConfigError, match=r"^sizes: n=-1 is no size. it wants an integer from 0 to 2147483647$"):
        compare(mlp, sizes={"n": -1})
    with pytest.raises(ConfigError, match=r"^compare: seed=-1 is none. it wants an integer of at least 0$"):
        compare(mlp, seed=-1)


@pytest.mark.native
def test_a_comparison_of_nothing_says_so(tmp_path: Path, capsys: Capture) -> None:
    onnx.save(build("g (float[4, 4] x) => (float y) {y = Det(x)}", {}, opset=17), tmp_path / "det.onnx")
    assert main(["compare", str(tmp_path / "det.onnx")]) == 4
    out = capsys.readouterr().out
    assert out.startswith("WARNING: XyntraEP computed 0 of 1 nodes: ONNX Runtime is compared with itself.")
    assert "--claim all takes what it can" in out
    assert main(["compare", str(tmp_path / "det.onnx"), "--claim", "all"]) == 4
    assert "--claim" not in capsys.readouterr().out


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_session_is_compared_as_it_would_be(tmp_path: Path, capsys: Capture) -> None:
    """A copy of ten numbers loses to ONNX Runtime, so that a session leaves it alone unless it is told."""
    model = build("g (float[10] x) => (float[10] y) {y = Relu(x)}", {}, opset=17)
    onnx.save(model, tmp_path / "relu.onnx")
    assert main(["compare", str(tmp_path / "relu.onnx"), "-O", "min_island=2"]) == 4
    assert main(["compare", str(tmp_path / "relu.onnx"), "--claim", "all"]) == 0
    assert "XyntraEP computed 1 of 1 nodes" in capsys.readouterr().out


@pytest.mark.native
def test_the_dimension_that_is_to_be_given_is_named(tmp_path: Path, capsys: Capture) -> None:
    model = build("g (float[batch, seq, 8] x) => (float[batch, seq, 8] y) {y = Add(x, places)}", {"places": (1, 16, 8)}, opset=17)
    onnx.save(model, tmp_path / "places.onnx")
    with pytest.raises(ConfigError, match=r"does not run it: .* seq=128 is made up, with 16 it runs: give sizes=\{'seq': 16\}$"):
        compare(tmp_path / "places.onnx")
    assert main(["compare", str(tmp_path / "places.onnx")]) == 2
    assert capsys.readouterr().err.endswith("seq=128 is made up, with 16 it runs: give --dim seq=16\n")


@pytest.mark.native
def test_only_sizes_that_are_made_up_are_suspects(tmp_path: Path, capsys: Capture) -> None:
    model = build("g (float[a, 3] x, float[b, 3] z) => (float[c, 3] y) {y = Add(x, z)}", {}, opset=17)
    onnx.save(model, tmp_path / "two.onnx")
    asked = ["compare", str(tmp_path / "two.onnx")]
    assert main([*asked, "--dim", "a=2", "--dim", "b=5"]) == 2
    assert capsys.readouterr().err.endswith(". these sizes do not fit the model (a=2, b=5)\n")
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "z.npy", np.zeros((5, 3), np.float32))
    assert main([*asked, "--feed", f"x={tmp_path / 'x.npy'}", "--feed", f"z={tmp_path / 'z.npy'}"]) == 2
    assert capsys.readouterr().err.endswith(". these sizes do not fit the model (a=2, b=5)\n")
    three = build("g (float[a, 3] x, float[b, 3] z) => (float[d, 3] y) {s = Add(x, w) y = Add(s, z)}", {"w": (7, 3)}, opset=17)
    onnx.save(three, tmp_path / "three.onnx")
    with pytest.raises(
        ConfigError, match=r"sizes are made up \(b=1\): give sizes=\{'b': size\} or feeds=\{name: file or array\}$"
    ):
        compare(tmp_path / "three.onnx", sizes={"a": 5})


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_session_that_fixes_the_sizes_is_compared(mlp: Path, tmp_path: Path, capsys: Capture) -> None:
    """What `explain` tells of a session with `--dim` is what is then run."""
    asked = ["compare", str(mlp), "--claim", "all", "--dim", "n=7"]
    assert main([*asked, "--fix"]) == 0
    out = capsys.readouterr().out
    assert "\nsizes: n=7; those that are given are fixed in the session\n" in out
    assert main(asked) == 0 and "fixed" not in capsys.readouterr().out
    seen: list[list[object]] = []
    real = ort.InferenceSession.run

    def run(session: ort.InferenceSession, *given: Any) -> Any:
        seen.append(session.get_inputs()[0].shape)
        return real(session, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ort.InferenceSession, "run", run)
        compare(mlp, options={"claim": "all"}, shapes={"x": (7, 64)}, fix=True, nodes=True)
    assert seen == [["n", 64], [7, 64], ["n", 64], [7, 64]], "the reference, and ours; of the outputs, and of all tensors"
    model = onnx.load(mlp)
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    onnx.save(model, tmp_path / "nameless.onnx")
    found = compare(tmp_path / "nameless.onnx", options={"claim": "all"}, shapes={"x": (7, 64)}, fix=True)
    assert found.fixed and found.claimed and not found.drifts


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_shapes_that_are_given(tmp_path: Path, mlp: Path, capsys: Capture) -> None:
    text = "g (float[a, 64] x, float[n, 64] z) => (float[c, 64] y) {m = MatMul(x, w) y = Add(m, z)}"
    model = build(text, {"w": (64, 64)}, opset=17)
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    onnx.save(model, tmp_path / "nameless.onnx")
    asked = ["compare", str(tmp_path / "nameless.onnx"), "--claim", "all"]
    assert main([*asked, "--shape", "x=20x64", "--dim", "n=20"]) == 0
    assert "\nsizes: n=20, x: [20, 64]\n" in capsys.readouterr().out
    assert main([*asked, "--shape", "x=20x64", "--shape", "z=30x64"]) == 2
    assert "does not run it: " in capsys.readouterr().err
    assert main([*asked, "--dim", "m=20"]) == 2
    assert capsys.readouterr().err.endswith("without names (x: [?, 64]): give a shape, as in --shape x=1x64\n")
    with pytest.raises(ConfigError, match=r"^shapes: x is given as a feed, which has its own shape. leave one of them out$"):
        compare(mlp, feeds={"x": np.zeros((2, 64), np.float32)}, shapes={"x": (2, 64)})


LOOP = """g (int64 trips, float[8, 8] x) => (float[t, 8, 8] h) {
    going = Constant <value = bool {1}> ()
    last, h = Loop <body = b (int64 i, bool on, float[8, 8] s) => (bool again, float[8, 8] next, float[8, 8] seen) {
        again = Identity (on)
        m = MatMul (s, w)
        next = Tanh (m)
        seen = Identity (next)
    }> (trips, going, x)
}"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    onnx.save(build(LOOP, {"w": (8, 8)}, opset=17), tmp_path / "loop.onnx")
    return tmp_path / "loop.onnx"


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_a_loop_runs_and_its_trip_count_is_shown(loop: Path, capsys: Capture) -> None:
    found = compare(loop, options={"claim": "all"})
    assert found.scalars == {"trips": 3} and found.outputs[0].alive and found.claimed >= 1
    assert "\nvalues: trips=3 (made up)\n" in str(found)
    np.save(loop.with_name("none.npy"), np.array(0))
    assert main(["compare", str(loop), "--claim", "all", "--feed", f"trips={loop.with_name('none.npy')}"]) == 5
    out = capsys.readouterr().out
    assert "trips=3" not in out and "ok  has no elements: this proves nothing\nWARNING: nothing is proven: " in out


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_intermediate_tensors_are_of_a_session_of_their_own(loop: Path, mlp: Path) -> None:
    """With all tensors as outputs ONNX Runtime's optimizer and XyntraEP leave other nodes."""
    found = compare(mlp, options={"claim": "all", "min_island": "4"}, nodes=True)
    assert 0 < found.nodes_claimed <= found.nodes_total == 8 and not found.bodies
    told = f"where XyntraEP computed {found.nodes_claimed} of 8 nodes\n"
    assert f"\nintermediate tensors are of a session that has all of them as outputs, {told}" in str(found)
    found = compare(loop, nodes=True)
    assert "\n4 nodes in bodies of Loop cannot be compared one by one" in str(found)


@pytest.mark.native
def test_intermediate_tensors_of_onnx_runtime_alone(mlp: Path) -> None:
    found = compare(mlp, options={"min_island": "99"}, nodes=True)
    assert "\nWARNING: intermediate tensors are of a session" in str(found)
    assert "computed 0 of 8 nodes: ONNX Runtime is compared with itself\n" in str(found)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_outputs_that_prove_nothing_are_not_ok(tmp_path: Path, capsys: Capture) -> None:
    model = build("g (float[1000] x) => (float[1000] y) {n = Neg(x) m = Mul(x, n) y = Relu(m)}", {}, opset=17)
    onnx.save(model, tmp_path / "zero.onnx")
    asked = ["compare", str(tmp_path / "zero.onnx"), "--claim", "all"]
    assert main(asked) == 5
    out = capsys.readouterr().out
    assert "ok  the reference is nearly zero: this proves nothing\nWARNING: nothing is proven: " in out
    assert out.endswith("give inputs of your own by --feed or --feeds, or another --seed\n")
    assert main([*asked, "--json"]) == 5
    assert json.loads(capsys.readouterr().out)["ok"] is False
    found = compare(tmp_path / "zero.onnx", options={"claim": "all"})
    assert not found.ok and not found.drifts and found.hint == "give feeds of your own, or another seed"


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_outputs_without_a_finite_element_prove_nothing(tmp_path: Path, capsys: Capture) -> None:
    onnx.save(build("g (float[8] x) => (float[8] y) {y = Relu(x)}", {}, opset=17), tmp_path / "relu.onnx")
    np.save(tmp_path / "x.npy", np.full(8, NAN, np.float32))
    asked = ["compare", str(tmp_path / "relu.onnx"), "--claim", "all", "--feed", f"x={tmp_path / 'x.npy'}"]
    assert main(asked) == 5
    out = capsys.readouterr().out
    assert " -  ok  no finite element, in either: this proves nothing\nWARNING: nothing is proven: " in out
    assert main([*asked, "--json"]) == 5
    told = json.loads(capsys.readouterr().out)
    assert not told["ok"] and told["outputs"][0]["largest"] is None and told["outputs"][0]["not_finite"] == 8


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_json_says_whether_all_is_well(mlp: Path, capsys: Capture) -> None:
    assert main(["compare", str(mlp), "--claim", "all", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is True and told["claimed"] > 0 and told["hint"] == ""


def classifier(labels: list[str] | list[int]) -> onnx.ModelProto:
    """A linear one, whose probabilities are maps, as converters from scikit-learn write it."""
    of_text = isinstance(labels[0], str)
    linear: dict[str, Any] = {"classlabels_strings" if of_text else "classlabels_ints": labels}
    zipped: dict[str, Any] = {"classlabels_strings" if of_text else "classlabels_int64s": labels}
    linear["coefficients"] = np.random.default_rng(0).standard_normal(12).tolist()
    nodes = [
        helper.make_node("LinearClassifier", ["x"], ["label", "p"], domain="ai.onnx.ml", intercepts=[0.0] * 3, **linear),
        helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", **zipped),
    ]
    made = helper.make_tensor_type_proto(1, [])
    key = TensorProto.STRING if of_text else TensorProto.INT64
    maps = helper.make_sequence_type_proto(helper.make_map_type_proto(key, made))
    outputs = [helper.make_tensor_value_info("label", key, ["n"]), helper.make_value_info("maps", maps)]
    graph = helper.make_graph(nodes, "classes", [helper.make_tensor_value_info("x", 1, ["n", 4])], outputs)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_maps_are_compared_by_their_values(tmp_path: Path) -> None:
    onnx.save(classifier(["a", "b", "c"]), tmp_path / "strings.onnx")
    found = compare(tmp_path / "strings.onnx", options={"claim": "all"}, sizes={"n": 5})
    assert [d.name for d in found.outputs] == ["maps"] and found.outputs[0].alive and found.skipped == ("label",)
    onnx.save(classifier([0, 7, 9]), tmp_path / "ints.onnx")
    found = compare(tmp_path / "ints.onnx", options={"claim": "all"}, sizes={"n": 5})
    assert [d.name for d in found.outputs] == ["label", "maps"] and not found.drifts


def test_what_of_an_output_are_numbers() -> None:
    values = numbers([{"b": 2.0, "a": 1.0}, {"a": 3.0, "b": 4.0}])
    assert values is not None and values.tolist() == [1, 2, 3, 4]
    assert labels([{"b": 2.0, "a": 1.0}, {"c": 3.0}]) == [["a", "b"], ["c"]]
    assert numbers(np.array(["text"])) is None and numbers([np.zeros(2)]) is None and numbers([{1: "text"}]) is None
    empty = numbers([])
    assert empty is not None and empty.size == 0


@pytest.mark.native
def test_a_value_that_is_made_up_is_named_where_the_model_does_not_run(tmp_path: Path) -> None:
    model = build("g (float[2, 4] x, int64 row) => (float[4] y) {y = Gather(x, row)}", {}, opset=17)
    onnx.save(model, tmp_path / "gather.onnx")
    with pytest.raises(ConfigError, match=r"does not run it: .* values are made up \(row=3\): give feeds="):
        compare(tmp_path / "gather.onnx")


@pytest.mark.native
@pytest.mark.compiler("cc")
def test_feeds_from_a_file(mlp: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.full((3, 64), 2, np.float32))
    found = compare(mlp, feeds={"x": tmp_path / "x.npy"}, options={"claim": "all"})
    assert found.sizes == Sizes(given={"n": 3}, made_up={})
    by_command = main(["compare", str(mlp), "--feed", f"x={tmp_path / 'x.npy'}", "--claim", "all"])
    assert by_command == 0
    np.savez(tmp_path / "all.npz", x=np.full((3, 64), 2, np.float32))
    assert main(["compare", str(mlp), "--feeds", str(tmp_path / "all.npz"), "--claim", "all"]) == 0


@pytest.mark.native
def test_a_size_that_is_not_that_of_a_feed(mlp: Path, tmp_path: Path, capsys: Capture) -> None:
    """Arrays are run as they are, so another size would be said and not be compared."""
    x = np.zeros((3, 64), np.float32)
    with pytest.raises(ConfigError, match=r"^sizes: feed 'x' has n=3, and n=2 is given. give one of them$"):
        compare(mlp, feeds={"x": x}, sizes={"n": 2})
    np.save(tmp_path / "x.npy", x)
    assert main(["compare", str(mlp), "--feed", f"x={tmp_path / 'x.npy'}", "--dim", "n=2", "--json"]) == 2
    told = capsys.readouterr()
    assert told.err == "xyntra: --dim: feed 'x' has n=3, and n=2 is given. give one of them\n" and not told.out


@pytest.mark.native
def test_feeds_that_do_not_fit(mlp: Path) -> None:
    with pytest.raises(ConfigError, match=r"^feed 'x': is of shape \[1\], the model wants \[n, 64\]$"):
        compare(mlp, feeds={"x": f(1)})
