"""What is claimed, what is not, and where a plan comes from."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from tests.native.conftest import FakePlanner
from tests.native.plans.manifest_builder import Alternative, Island, Kernel, Plan, Tensor, hash128
from tests.native.plans.models import (
    add_answer,
    add_island,
    add_model,
    model,
    node_of,
    relu_answer,
    relu_island,
    relu_model,
    tensor,
    unary_island,
)
from xyntra_ep.provider import registration
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def report(session: ort.InferenceSession) -> list[dict[str, Any]]:
    session.set_ep_dynamic_options({"xyntra.explain_token": "test"})
    size = registration.library().xyntra_take_report(b"test", None, 0)
    buffer = ctypes.create_string_buffer(size)
    assert registration.library().xyntra_take_report(b"test", buffer, size) == size
    assert registration.library().xyntra_take_report(b"test", buffer, size) == 0
    found = json.loads(buffer.raw)
    assert isinstance(found, list)
    return found


def claimed(session: ort.InferenceSession) -> list[str]:
    """Operators that run on the provider."""
    return [
        node.op_type
        for subgraph in session.get_provider_graph_assignment_info()
        if subgraph.ep_name == "XyntraEP"
        for node in subgraph.get_nodes()
    ]


RECORD = {"session__record_ep_graph_assignment_info": "1"}


def test_an_island_is_claimed_and_the_rest_left(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: planner.plan([relu_island(raw)], report='{"mine": [1]}')
    session = make_session(relu_model(), **RECORD)
    assert claimed(session) == ["Relu"]
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))
    (entry,) = report(session)
    assert entry["plan"] == {"mine": [1]}
    assert (entry["stored"], entry["failure"], entry["unclaimed"]) == (False, "", {})
    assert entry["digest"] == planner.digests[0]


def test_without_optimization_too(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_model(), level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))


def test_an_unknown_dynamic_option_is_an_error(planner: FakePlanner, make_session: Any) -> None:
    session = make_session(relu_model())
    with pytest.raises(Exception, match=r"no dynamic option 'xyntra\.explain'"):
        session.set_ep_dynamic_options({"xyntra.explain": "1"})


def test_a_refusal_fails_the_session(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: Plan("", refuse=True, message="no provider option 'clam'. did you mean 'claim'?")
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument, match="did you mean 'claim'"):
        make_session(relu_model())


def test_an_exception_in_the_planner_leaves_all_to_ort(planner: FakePlanner, make_session: Any, capfd: Any) -> None:
    def fail(raw: RawGraph) -> list[Island]:
        raise KeyError("oh")

    planner.decide = fail
    session = make_session(relu_model(), **RECORD)
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))
    assert claimed(session) == []
    assert "KeyError: 'oh'" in report(session)[0]["failure"]
    output = capfd.readouterr().err
    assert "KeyError: 'oh'" in output and "Exception ignored" not in output


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "cut short"),
        (b"x" * 100, "checksum"),
    ],
)
def test_an_answer_that_is_no_plan(planner: FakePlanner, make_session: Any, answer: bytes, why: str) -> None:
    planner.decide = lambda raw: answer
    session = make_session(relu_model())
    assert why in report(session)[0]["failure"]


def test_a_wrong_island_does_not_take_the_good_one_with_it(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        good = relu_island(raw)
        wrong = unary_island(raw, node_of(raw, "Neg"))
        wrong.outputs[0].name = "nothing"
        absent = relu_island(raw)
        absent.name, absent.nodes = "absent", [99]
        twice = relu_island(raw)
        twice.name = "twice"
        return [good, wrong, absent, twice]

    planner.decide = decide
    session = make_session(relu_model(), **RECORD)
    assert claimed(session) == ["Relu"]
    assert report(session)[0]["unclaimed"] == {
        "neg": "'nothing' is not made by the island",
        "absent": "the graph has no node 99",
        "twice": "node 0 is claimed twice",
    }
    np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))


def chain(raw: RawGraph, name: str, node_indices: list[int], inputs: list[str], outputs: list[str]) -> Island:
    alternative = Alternative()
    one = alternative.const(1)
    for _ in outputs:
        alternative.output_dims(one)
    nodes = [raw.nodes[index].id for index in node_indices]
    return Island(name, nodes, [Tensor(name) for name in inputs], [Tensor(name) for name in outputs], [alternative])


def test_a_path_that_leaves_and_comes_back(planner: FakePlanner, make_session: Any) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["c"]),
        helper.make_node("Abs", ["c"], ["y"]),
    ]
    planner.decide = lambda raw: [chain(raw, "hollow", [0, 2], ["x", "b"], ["a", "c"])]
    session = make_session(model(nodes, [tensor("x", [4])], [tensor("y", [4])]))
    assert report(session)[0]["unclaimed"] == {"hollow": "a path leaves the island and comes back"}


def test_two_islands_that_wait_for_each_other(planner: FakePlanner, make_session: Any) -> None:
    # Each is convex alone: p1 -> q1, q2 -> p2.
    nodes = [
        helper.make_node("Relu", ["x"], ["p1"]),
        helper.make_node("Neg", ["x"], ["q2"]),
        helper.make_node("Abs", ["p1"], ["y1"]),
        helper.make_node("Exp", ["q2"], ["y2"]),
    ]
    graph = model(nodes, [tensor("x", [4])], [tensor("y1", [4]), tensor("y2", [4])])

    def decide(raw: RawGraph) -> list[Island]:
        index = {node.op_type: number for number, node in enumerate(raw.nodes)}
        p = chain(raw, "p", [index["Relu"], index["Exp"]], ["x", "q2"], ["p1", "y2"])
        q = chain(raw, "q", [index["Neg"], index["Abs"]], ["x", "p1"], ["q2", "y1"])
        return [p, q]

    planner.decide = decide
    session = make_session(graph, **RECORD)
    (unclaimed,) = report(session)[0]["unclaimed"].values()
    assert unclaimed == "a path leaves the island and comes back"
    assert len(claimed(session)) == 2


def test_constants_are_no_inputs(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        island.inputs.append(Tensor("w"))
        return [island]

    planner.decide = decide
    session = make_session(add_model(np.ones(300, np.float32)))
    assert report(session)[0]["unclaimed"] == {"add": "input 'w' is a constant"}


def test_a_kernel_that_does_not_load_unclaims_its_island_only(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> Plan:
        plan = planner.plan([relu_island(raw), unary_island(raw, node_of(raw, "Neg"), kernel="pack")])
        plan.kernels = [*planner.kernels]
        plan.kernels[0] = Kernel("relu.so", "relu", bytes(16))
        return plan

    planner.decide = decide
    session = make_session(relu_model(), **RECORD)
    assert claimed(session) == ["Neg"]
    assert "damaged" in report(session)[0]["unclaimed"]["relu"]


@pytest.mark.parametrize(
    "name", [b"\xff", b"a\xc3", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf0\x9f\x98\x80 \xc3\xa9 \xe2\x82\xac"]
)
def test_names_that_are_no_text_are_reported(planner: FakePlanner, make_session: Any, name: bytes) -> None:
    def decide(raw: RawGraph) -> Plan:
        island = relu_island(raw)
        island.nodes = [1 << 40]
        island.name = name.decode("utf-8", "surrogateescape")
        return planner.plan([island])

    planner.decide = decide
    assert list(report(make_session(relu_model()))[0]["unclaimed"]) == [name.decode("utf-8", "surrogateescape")]


def test_the_log_line_goes_to_the_log_of_ort(planner: FakePlanner, make_session: Any, capfd: Any) -> None:
    planner.decide = lambda raw: planner.plan([], log_level=2, log_line="1 node declined")
    make_session(relu_model())
    assert "[W:onnxruntime:" in (text := capfd.readouterr().err) and "1 node declined" in text


def test_subgraphs_and_outer_constants(planner: FakePlanner, make_session: Any) -> None:
    w = np.arange(300, dtype=np.float32)
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["a"])], "then", [], [tensor("a", ["N", 300])])
    other = helper.make_graph([helper.make_node("Relu", ["x"], ["b"])], "other", [], [tensor("b", ["N", 300])])
    nodes = [
        helper.make_node("If", ["c"], ["t"], then_branch=then, else_branch=other),
        helper.make_node("Relu", ["t"], ["y"]),
    ]
    inputs = [tensor("c", [], onnx.TensorProto.BOOL), tensor("x", ["N", 300])]
    constants = [onnx.numpy_helper.from_array(w, "w")]

    def decide(raw: RawGraph) -> list[Island]:
        kinds = [node.op_type for node in raw.nodes]
        if "Add" in kinds:
            return [add_island(raw)]
        return [relu_island(raw)]

    planner.decide = decide
    session = make_session(model(nodes, inputs, [tensor("y", ["N", 300])], constants))
    assert [graph.is_subgraph for graph in planner.graphs] == [True, True, False]
    assert len(report(session)) == 3
    x = np.full((2, 300), -50, np.float32)
    for chosen, answer in ((True, add_answer(x, w)), (False, np.maximum(x, 0))):
        np.testing.assert_array_equal(session.run(None, {"c": np.array(chosen), "x": x})[0], answer)
    outer = next(value for value in planner.graphs[0].values if value.name in ("w", "x"))
    assert outer.is_outer


class TestStoredPlans:
    def stored(self, planner: FakePlanner, make_session: Any, cache: Path, graph: onnx.ModelProto) -> Path:
        """Plan once through Python and store the answer."""
        options = {"cache_dir": str(cache)}
        answers: list[bytes] = []
        decide = planner.decide

        def keep(raw: RawGraph) -> bytes:
            plan = decide(raw)
            assert isinstance(plan, Plan)
            plan.digest = planner.digests[-1]
            answers.append(plan.bytes())
            return answers[-1]

        planner.decide = keep
        make_session(graph, options)
        path = planner.store(cache, planner.digests[-1], answers[-1])
        planner.decide = decide
        assert planner.calls == 1
        return path

    def test_python_is_not_entered(self, planner: FakePlanner, make_session: Any, tmp_path: Path) -> None:
        planner.decide = lambda raw: planner.plan([relu_island(raw)], report='"stored"')
        self.stored(planner, make_session, tmp_path, relu_model())
        session = make_session(relu_model(), {"cache_dir": str(tmp_path)})
        assert planner.calls == 1
        assert (entry := report(session)[0])["stored"] is True and entry["plan"] == "stored"
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))

    def test_options_and_environment_are_part_of_the_digest(
        self, planner: FakePlanner, make_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        make_session(relu_model())
        make_session(relu_model(), {"claim": "all"})
        monkeypatch.setenv("XYNTRA_CLAIM", "all")
        make_session(relu_model())
        monkeypatch.delenv("XYNTRA_CLAIM")
        (tmp_path / "fusion.toml").write_text("[provider]\nclaim = 'all'\n")
        make_session(relu_model())
        (tmp_path / "fusion.toml").unlink()
        make_session(relu_model())
        assert len(set(planner.digests)) == 4
        assert planner.digests[0] == planner.digests[4]

    @pytest.mark.parametrize("damage", ["plan", "mode", "kernel", "version", "absent"])
    def test_damage_leads_back_to_python(self, planner: FakePlanner, make_session: Any, tmp_path: Path, damage: str) -> None:
        kernel = tmp_path / "own.so"
        kernel.write_bytes((planner.root / "relu.so").read_bytes())
        kernel.chmod(0o600)

        def decide(raw: RawGraph) -> Plan:
            plan = planner.plan([relu_island(raw)])
            plan.kernels = [*planner.kernels]
            plan.kernels[0] = Kernel(str(kernel), "relu", hash128(kernel.read_bytes()))
            return plan

        planner.decide = decide
        path = self.stored(planner, make_session, tmp_path, relu_model())
        data = path.read_bytes()
        if damage == "plan":
            path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
        elif damage == "mode":
            path.chmod(0o620)
        elif damage == "kernel":
            # Under another path of the same length: what this process has opened and checked stays good.
            other = tmp_path / "new.so"
            other.write_bytes(kernel.read_bytes() + b"\0")
            other.chmod(0o600)
            content = data[:-16].replace(str(kernel).encode(), str(other).encode())
            path.write_bytes(content + hash128(content))
        elif damage == "version":
            content = data[:4] + bytes([data[4] + 1]) + data[5:-16]
            path.write_bytes(content + hash128(content))
        else:
            path.unlink()
        session = make_session(relu_model(), {"cache_dir": str(tmp_path)})
        assert planner.calls == 2
        np.testing.assert_array_equal(session.run(None, {"x": X})[0], relu_answer(X))

    def test_a_constant_that_was_planned_from_has_changed(self, planner: FakePlanner, make_session: Any, tmp_path: Path) -> None:
        w = np.arange(300, dtype=np.float32)
        planner.decide = lambda raw: planner.plan([add_island(raw)], depends=[("w", hash128(w.tobytes()))])
        self.stored(planner, make_session, tmp_path, add_model(w))
        options = {"cache_dir": str(tmp_path)}
        make_session(add_model(w), options)
        assert planner.calls == 1
        session = make_session(add_model(w + 1), options)
        assert planner.calls == 2
        assert planner.digests[0] == planner.digests[1]
        x = np.zeros((2, 300), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, w + 1))
