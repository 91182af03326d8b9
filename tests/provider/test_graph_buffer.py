"""What ONNX Runtime shows arrives in Python as it is."""

from __future__ import annotations

import cProfile
from struct import pack
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper

from tests.native.conftest import FakePlanner
from tests.native.plans.manifest_builder import many, text
from tests.native.plans.models import constant, model, tensor
from xyntra_ep.provider.graph_buffer import Attribute, RawGraph, RawNode, read


def show(planner: FakePlanner, make_session: Any, graph: onnx.ModelProto, keep: Any = None, **more: Any) -> RawGraph:
    """The graph as the planner gets it; `keep(raw)` runs while its pointers are valid."""

    def decide(raw: RawGraph) -> list[Any]:
        if keep is not None:
            keep(raw)
        return []

    planner.decide = decide
    make_session(graph, level=ort.GraphOptimizationLevel.ORT_DISABLE_ALL, **more)
    return planner.graphs[-1]


@pytest.mark.native
@pytest.mark.compiler("gcc")
class TestThroughOrt:
    def test_values(self, planner: FakePlanner, make_session: Any) -> None:
        w = np.arange(8, dtype=np.float32).reshape(2, 4)
        nodes = [helper.make_node("Add", ["x", "w"], ["t"], name="first"), helper.make_node("Relu", ["t"], ["y"])]
        graph = model(nodes, [tensor("x", ["N", None, 2, 4])], [tensor("y", None)], [constant("w", w)])  # type: ignore[arg-type]
        arrays: list[Any] = []

        def keep(raw: RawGraph) -> None:
            array = next(value for value in raw.values if value.name == "w").array()
            arrays.append((array.copy(), array.flags.writeable))

        raw = show(planner, make_session, graph, keep)
        by_name = {value.name: value for value in raw.values}
        assert by_name["x"].shape == ("N", None, 2, 4)
        assert (by_name["x"].is_input, by_name["x"].is_output, by_name["x"].is_constant) == (True, False, False)
        assert by_name["y"].is_output
        assert by_name["w"].is_constant and not by_name["w"].is_input
        assert by_name["w"].shape == (2, 4)
        assert by_name["w"].nbytes == 32
        ((array, writeable),) = arrays
        np.testing.assert_array_equal(array, w)
        assert not writeable
        first, second = raw.nodes
        assert (first.name, first.op_type, first.domain, first.since_version) == ("first", "Add", "", 14)
        assert [raw.values[index].name for index in (*first.inputs, *first.outputs)] == ["x", "w", "t"]
        assert second.inputs == first.outputs
        assert raw.opsets[""] == 17
        assert raw.ort_version == ort.__version__

    def test_attributes(self, planner: FakePlanner, make_session: Any) -> None:
        inner = np.array([[1, 2], [3, 4]], np.int32)
        node = helper.make_node(
            "Everything",
            ["x", "", "x"],
            ["y", ""],
            domain="test",
            i=-5,
            ints=[1, -2, 3],
            f=0.5,
            floats=[0.25, -4.0],
            s="text",
            strings=["a", "", "long " * 2000],
            many=list(range(3000)),
            empty=helper.make_tensor("empty", TensorProto.FLOAT, [0, 3], []),
            t=onnx.numpy_helper.from_array(inner),
        )
        body = [helper.make_node("Identity", ["a"], [name]) for name in ("b", "b2")]
        function = helper.make_function(
            "test",
            "Everything",
            ["a", "a2", "a3"],
            ["b", "b2"],
            body,
            [helper.make_opsetid("", 17)],
            attributes=["i", "ints", "f", "floats", "s", "strings", "many", "empty", "t"],
        )
        graph = model([node], [tensor("x", [2])], [tensor("y", [2])])
        graph.opset_import.append(helper.make_opsetid("test", 1))
        graph.functions.append(function)
        show(planner, make_session, graph)
        found = planner.graphs[0].nodes[0]  # later the function is inlined
        attrs = found.attrs
        assert (attrs["i"], attrs["ints"], attrs["f"], attrs["floats"]) == (-5, (1, -2, 3), 0.5, (0.25, -4.0))
        assert (attrs["s"], attrs["strings"]) == ("text", ("a", "", "long " * 2000))
        assert attrs["many"] == tuple(range(3000))
        assert isinstance(attrs["t"], np.ndarray) and isinstance(attrs["empty"], np.ndarray)
        np.testing.assert_array_equal(attrs["t"], inner)
        assert attrs["t"].dtype == np.int32
        assert attrs["empty"].shape == (0, 3)
        assert found.inputs[1] == -1
        assert planner.calls == 2

    def test_an_attribute_of_a_kind_that_is_not_carried(self) -> None:
        """Its name arrives, so that an operator can be declined for it."""
        nothing = pack("<I", 0)
        head = b"XYGB" + pack("<II", 1, 24) + text("1.0") + text("") + text("g") + b"\0" + nothing * 3
        attributes = pack("<I", 2) + text("odd") + pack("<i", 99) + text("axis") + pack("<iq", 1, 3)
        node = pack("<Q", 7) + text("") + text("Odd") + text("") + pack("<i", 1) + text("") + nothing * 4 + attributes
        [found] = read(memoryview(head + pack("<I", 1) + node)).nodes
        assert found.op_type == "Odd" and found.attrs == {"odd": None, "axis": 3}

    def test_subgraphs_options_and_overridable_initializers(self, planner: FakePlanner, make_session: Any) -> None:
        branches = [
            helper.make_graph([helper.make_node(op, ["x"], [out])], op, [], [tensor(out, [4])])
            for op, out in (("Relu", "a"), ("Neg", "b"))
        ]
        node = helper.make_node("If", ["c"], ["t"], then_branch=branches[0], else_branch=branches[1])
        add = helper.make_node("Add", ["t", "w"], ["y"])
        inputs = [tensor("c", [], TensorProto.BOOL), tensor("x", [4]), tensor("w", [4])]
        graph = model([node, add], inputs, [tensor("y", [4])], [constant("w", np.ones(4, np.float32))])
        raw = show(planner, make_session, graph, options={"b": "2", "a": "1"})
        assert raw.options == {"a": "1", "b": "2"}
        (branch,) = [node for node in raw.nodes if node.op_type == "If"]
        assert branch.n_subgraphs == 2
        assert [raw.values[index].name for index in branch.implicit_inputs] == ["x"]
        assert not raw.is_subgraph and planner.graphs[0].is_subgraph
        w = next(value for value in raw.values if value.name == "w")
        assert w.is_overridable and w.is_input and not w.is_constant

    def test_what_is_no_float_tensor(self, planner: FakePlanner, make_session: Any) -> None:
        sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
        nodes = [
            helper.make_node("SequenceAt", ["s", "i"], ["t"]),
            helper.make_node("Cast", ["h"], ["hf"], to=1),
            helper.make_node("Add", ["t", "hf"], ["y"]),
            helper.make_node("Identity", ["words"], ["z"]),
        ]
        half = helper.make_tensor("h", TensorProto.BFLOAT16, [2], [1.0, 2.0])
        words = helper.make_tensor("words", TensorProto.STRING, [1], [b"word"])  # type: ignore[list-item]  # onnx takes them, its types do not
        graph = model(
            nodes,
            [sequence, tensor("i", [], TensorProto.INT64)],
            [tensor("y", None), tensor("z", None, TensorProto.STRING)],  # type: ignore[arg-type]
            [half, words],
        )
        bits: list[Any] = []

        def keep(raw: RawGraph) -> None:
            by_name = {value.name: value for value in raw.values}
            bits.append(by_name["h"].array().copy())
            with pytest.raises(ValueError, match="'words' has no data"):
                by_name["words"].array()

        raw = show(planner, make_session, graph, keep)
        by_name = {value.name: value for value in raw.values}
        assert (by_name["s"].elem_type, by_name["s"].shape) == (0, None)
        np.testing.assert_array_equal(bits[0], np.array([0x3F80, 0x4000], np.uint16))

    def test_a_model_file_and_its_copy_have_one_digest(
        self,
        planner: FakePlanner,
        tmp_path: Any,
    ) -> None:
        data = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", [4])], [tensor("y", [4])])
        for name in ("a.onnx", "b.onnx"):
            (tmp_path / name).write_bytes(data.SerializeToString())
            ort.InferenceSession(str(tmp_path / name), providers=["XyntraEP", "CPUExecutionProvider"])
            assert planner.graphs[-1].model_path == str(tmp_path / name)
        assert len(set(planner.digests)) == 1


def written(n_nodes: int) -> bytes:
    """A buffer as native code writes it: nodes with three inputs and four attributes."""

    def value(name: str) -> bytes:
        dims = pack("<q", -1) + text("batch") + pack("<q", 128) + text("")
        return text(name) + pack("<ii", 1, 2) + dims + pack("<IQQ", 0, 0, 0)

    def node(number: int) -> bytes:
        ints = text("kernel_shape") + pack("<iI2q", 2, 2, 3, 3) + text("pads") + pack("<iI4q", 2, 4, 1, 1, 1, 1)
        rest = text("group") + pack("<iq", 1, 1) + text("auto_pad") + pack("<i", 5) + text("NOTSET")
        head = pack("<Q", number) + text(f"/encoder/layer.{number}/node") + text("Conv") + text("")
        values = pack("<I3i", 3, number, number + 1, -1) + pack("<I", 0) + pack("<Ii", 1, number + 1)
        return head + pack("<i", 11) + text("") + pack("<I", 0) + values + pack("<I", 4) + ints + rest

    head = b"XYGB" + pack("<II", 1, 29) + text("1.31.1") + text("/m.onnx") + text("g") + b"\0"
    opsets = many([text("") + pack("<q", 17)])
    values = many([value(f"/encoder/layer.{number}/output") for number in range(n_nodes + 1)])
    return head + opsets + many([text("claim") + text("all")]) + values + many([node(i) for i in range(n_nodes)])


def test_reading() -> None:
    raw = read(memoryview(written(2)))
    assert raw.options == {"claim": "all"}
    assert raw.values[0].shape == ("batch", 128)
    attrs: dict[str, Attribute | None] = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "group": 1, "auto_pad": "NOTSET"}
    assert raw.nodes[1] == RawNode(1, "/encoder/layer.1/node", "Conv", "", 11, "", 0, (1, 2, -1), (), (2,), attrs)


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"XYPL", "no graph buffer"), (b"XYGB\x02\0\0\0", "version 2"), (written(1) + b"\0", "bytes too many")],
)
def test_what_is_no_graph_buffer(data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(memoryview(data))


def test_reading_a_node_is_a_few_calls() -> None:
    """Time grows with the nodes alone, by about 15 microseconds each: sessions wait for it."""

    def calls(n_nodes: int) -> int:
        data, profile = memoryview(written(n_nodes)), cProfile.Profile()
        profile.runcall(read, data)
        return sum(entry.callcount for entry in profile.getstats())

    few, many = calls(10), calls(1010)
    assert (many - few) / 1000 <= 100
