"""What the executor does with tensors that share memory: a copy only where a step would read what another has overwritten."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, Alternative, Island, Tensor
from tests.native.plans.models import add_answer, add_island, add_model, model, node_of, tensor, unary_island
from tests.native.test_execution import PARALLEL, array
from tests.support.native_memory import counts, quiet
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]


def relu_alone() -> onnx.ModelProto:
    return model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["N", 4])], [tensor("y", ["N", 4])])


def bound(session: Any, tensors: dict[str, Any], outputs: dict[str, Any]) -> None:
    binding = session.io_binding()
    for name, data in tensors.items():
        binding.bind_input(name, "cpu", 0, np.float32, data.shape, data.ctypes.data)
    for name, data in outputs.items():
        binding.bind_output(name, "cpu", 0, np.float32, data.shape, data.ctypes.data)
    session.run_with_iobinding(binding)


def copies(session: Any, tensors: dict[str, Any], outputs: dict[str, Any]) -> int:
    """How many outputs are computed elsewhere: blocks that there are more of after a run."""
    before = counts()["blocks"]
    bound(session, tensors, outputs)
    return counts()["blocks"] - before


@pytest.mark.parametrize("shift", [0, 4, -4, 36, 40, -40])
def test_a_step_that_reads_and_writes_one_memory(planner: FakePlanner, make_session: Any, shift: int) -> None:
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_alone())
    session.run(None, {"x": array(10, 4)})
    memory = np.zeros(200, np.float32)
    x, y = memory[80:120].reshape(10, 4), memory[80 + shift : 120 + shift].reshape(10, 4)
    x[:] = array(10, 4)
    assert copies(session, {"x": x}, {"y": y}) == (abs(shift) < 40), "neighbours share nothing"
    np.testing.assert_array_equal(y, np.maximum(array(10, 4), 0))


def relu_island(raw: RawGraph) -> Island:
    return unary_island(raw, node_of(raw, "Relu"), cost=PARALLEL)


def test_an_output_written_after_the_input_was_read_is_written_where_it_belongs(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]  # x + w goes through a temporary
    w = array(4, seed=3)
    session = make_session(add_model(w))
    session.run(None, {"x": array(10, 4)})
    memory = np.zeros(80, np.float32)
    x, y = memory[:40].reshape(10, 4), memory[7:47].reshape(10, 4)
    x[:] = array(10, 4)
    assert copies(session, {"x": x}, {"y": y}) == 0
    np.testing.assert_array_equal(y, add_answer(array(10, 4), w))


def two_outputs(raw: RawGraph) -> list[Island]:
    """first = relu(x) in step 0, second = relu(first + x) through a temporary: `x` is read by steps 0 and 1."""
    relu, add, last = (node_of(raw, kind) for kind in ("Relu", "Add", "Abs"))
    a = Alternative()
    rows, four = a.dim(0, 0), a.const(4)
    a.output_dims(rows, four)
    a.output_dims(rows, four)
    n = a.op("mul", rows, four)
    units = a.op("ceildiv", n, a.const(16))
    x, first, second = a.input(0), a.output(0), a.output(1)
    between = a.buffer(ARENA, size=a.op("mul", n, four), first=1, last=2)
    a.step(NUMBER["relu"], [x, first], [n], units)
    a.step(NUMBER["add"], [first, x, between], [n, n], units)
    a.step(NUMBER["relu"], [between, second], [n], units)
    outputs = [Tensor("first", rank=2), Tensor("second", rank=2)]
    return [Island("two", [relu.id, add.id, last.id], [Tensor("x", rank=2)], outputs, [a])]


def test_only_the_output_in_the_way_is_computed_elsewhere(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = two_outputs
    nodes = [helper.make_node("Relu", ["x"], ["first"]), helper.make_node("Add", ["first", "x"], ["t"])]
    nodes += [helper.make_node("Abs", ["t"], ["second"])]
    session = make_session(model(nodes, [tensor("x", ["N", 4])], [tensor(y, ["N", 4]) for y in ("first", "second")]))
    given = array(10, 4)
    session.run(None, {"x": given})
    for name, expected in (("first", 1), ("second", 0)):
        x = given.copy()
        outputs = {"first": np.empty_like(x), "second": np.empty_like(x), name: x}
        assert copies(session, {"x": x}, outputs) == expected
        np.testing.assert_array_equal(outputs["first"], np.maximum(given, 0))
        np.testing.assert_array_equal(outputs["second"], np.maximum(np.maximum(given, 0) + given, 0))
    memory = np.zeros(70, np.float32)
    overlapping = {"first": memory[:40].reshape(10, 4), "second": memory[30:].reshape(10, 4)}
    with pytest.raises(RuntimeError, match=r"the outputs '(first' and 'second|second' and 'first)' are bound to the same memory"):
        bound(session, {"x": given}, overlapping)
    assert not memory.any()


def test_the_copy_goes_when_nobody_binds_so_any_more(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_alone())
    x, y = array(1000, 4), np.empty((1000, 4), np.float32)
    bound(session, {"x": x}, {"y": y})
    before = counts()["blocks"]
    bound(session, {"x": x}, {"y": x})
    bound(session, {"x": x}, {"y": x})
    assert counts()["blocks"] == before + 1, "one for all runs"
    with quiet(200):
        time.sleep(0.3)
        bound(session, {"x": x}, {"y": y})
    assert counts()["blocks"] == before


def test_sums_in_place_over_many_inputs(planner: FakePlanner, make_session: Any) -> None:
    """Tensors in an order that changes from run to run: the search keeps them sorted by address."""

    def decide(raw: RawGraph) -> list[Island]:
        node = node_of(raw, "Sum")
        a = Alternative()
        n = a.dim(0, 0)
        a.output_dims(n)
        units = a.op("ceildiv", n, a.const(16))
        out = a.output(0)
        a.step(NUMBER["add"], [a.input(0), a.input(1), out], [n, n], units)
        for i in range(2, many):
            a.step(NUMBER["add"], [out, a.input(i), out], [n, n], units)
        return [Island("sum", [node.id], [Tensor(f"x{i}") for i in range(many)], [Tensor("y")], [a])]

    many, rng = 30, np.random.default_rng(0)
    planner.decide = decide
    inputs = [f"x{i}" for i in range(many)]
    graph = model([helper.make_node("Sum", inputs, ["y"])], [tensor(x, ["N"]) for x in inputs], [tensor("y", ["N"])])
    session = make_session(graph)
    memory = np.zeros((many + 2, 50), np.float32)
    for _ in range(40):
        rows = rng.permutation(many + 2)[:many]
        place = int(rng.integers(many + 2))
        values = rng.integers(-99, 99, (many, 50)).astype(np.float32)
        memory[rows] = values
        before = counts()["blocks"]
        bound(session, {x: memory[row] for x, row in zip(inputs, rows, strict=True)}, {"y": memory[place]})
        np.testing.assert_array_equal(memory[place], values.sum(0))
        assert place in rows or counts()["blocks"] == before
