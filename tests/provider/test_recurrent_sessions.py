"""Recurrences in sessions: several threads take turns, and whoever they are the result is the same, bit by bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

from tests.support.sessions import planned
from xyntra_ep.diagnostics.explain import explain

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
MAX_ERR = 1e-5
DEPTH = 24


def layers(op: str, width: int, directions: int, *, lengths: bool = False) -> onnx.ModelProto:
    """Two layers as PyTorch exports them."""
    rng = np.random.default_rng(0)
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    nodes, constants, x, depth = [], [numpy_helper.from_array(np.array([0, 0, -1]), "flat")], "x", DEPTH
    for i in range(2):
        shapes: dict[str, tuple[int, ...]] = {"W": (directions, gates * width, depth), "R": (directions, gates * width, width)}
        shapes["B"] = (directions, 2 * gates * width)
        constants += [
            numpy_helper.from_array((rng.uniform(-1, 1, s) / np.sqrt(width)).astype(np.float32), f"{n}{i}")
            for n, s in shapes.items()
        ]
        inputs = [x, f"W{i}", f"R{i}", f"B{i}", *(["n"] if lengths else [])]
        direction = "bidirectional" if directions == 2 else "forward"
        nodes.append(helper.make_node(op, inputs, [f"y{i}"], hidden_size=width, direction=direction))
        nodes.append(helper.make_node("Transpose", [f"y{i}"], [f"t{i}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{i}", "flat"], [f"s{i}"]))
        x, depth = f"s{i}", directions * width
    ends = [helper.make_tensor_value_info("x", 1, ["S", "B", DEPTH])]
    if lengths:
        ends.append(helper.make_tensor_value_info("n", 6, ["B"]))
    graph = helper.make_graph(nodes, op, ends, [helper.make_tensor_value_info(x, 1, ["S", "B", depth])], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def reference(model: onnx.ModelProto, feeds: dict[str, Any]) -> Any:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)[0]


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize(("op", "width"), [("LSTM", 256), ("GRU", 192), ("RNN", 384)])
def test_any_number_of_threads_gives_the_same_bits(op: str, width: int, directions: int) -> None:
    model = layers(op, width, directions)
    sessions = [planned(model, threads=n) for n in (1, 2, 3, 5)]  # some are more than there are cores
    for steps, rows in ((9, 1), (1, 1), (17, 7), (3, 13)):
        feeds = {"x": np.random.default_rng(steps).standard_normal((steps, rows, DEPTH)).astype(np.float32)}
        results = [session.run(None, feeds)[0] for session in sessions for _ in range(4)]
        assert {r.tobytes() for r in results} == {results[0].tobytes()}
        wanted = reference(model, feeds)
        assert results[0].shape == wanted.shape
        assert np.abs(results[0] - wanted).max(initial=0) <= MAX_ERR * np.abs(wanted).max(initial=1)


def quantised_layers(width: int, directions: int, folder: Path) -> onnx.ModelProto:
    onnx.save(layers("LSTM", width, directions), folder / "floats.onnx")
    quantize_dynamic(folder / "floats.onnx", folder / "bytes.onnx")
    return onnx.load(folder / "bytes.onnx")


@pytest.mark.parametrize("directions", [1, 2])
def test_quantised_layers(directions: int, tmp_path: Path) -> None:
    """Any number of threads gives the same bits. ONNX Runtime's are near: a state whose last bit differs may be another byte."""
    model = quantised_layers(384, directions, tmp_path)
    sessions = [planned(model, threads=n) for n in (1, 2, 3, 5)]
    assert [node.op_type for node in model.graph.node].count("DynamicQuantizeLSTM") == 2
    assert all(explain(session).claimed == explain(session).total for session in sessions)
    for steps, rows in ((9, 1), (1, 1), (17, 7), (3, 13)):
        feeds = {"x": np.random.default_rng(steps).standard_normal((steps, rows, DEPTH)).astype(np.float32)}
        results = [session.run(None, feeds)[0] for session in sessions for _ in range(4)]
        assert {r.tobytes() for r in results} == {results[0].tobytes()}
        if rows == 1:
            wanted = reference(model, feeds)
            assert np.abs(results[0] - wanted).max() <= 1e-2 and np.median(np.abs(results[0] - wanted)) <= 1e-5


def test_several_runs_at_a_time() -> None:
    model = layers("LSTM", 256, 1)
    session = planned(model, threads=2)
    feeds = [{"x": np.random.default_rng(i).standard_normal((20, 1, DEPTH)).astype(np.float32)} for i in range(4)]
    alone = [session.run(None, f)[0] for f in feeds]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: session.run(None, feeds[i % 4])[0], range(40)))
    assert all(np.array_equal(together[i], alone[i % 4]) for i in range(40))


def test_lengths_are_judged() -> None:
    model = layers("GRU", 32, 1, lengths=True)
    session = planned(model)
    x = np.random.default_rng(0).standard_normal((6, 3, DEPTH)).astype(np.float32)
    feeds = {"x": x, "n": np.array([6, 0, 2], np.int32)}
    np.testing.assert_allclose(session.run(None, feeds)[0], reference(model, feeds), atol=MAX_ERR)
    for wrong in ([6, 7, 2], [-1, 6, 2]):
        with pytest.raises(Exception, match="a length in sequence_lens is not within the sequence"):
            session.run(None, {"x": x, "n": np.array(wrong, np.int32)})
