"""What the plan executor does with shapes, memory and threads."""

from __future__ import annotations

import ctypes
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, LITERAL, Alternative, Island, Tensor
from tests.native.plans.models import (
    model,
    names,
    node_of,
    relu_answer,
    relu_island,
    relu_model,
    tensor,
)
from xyntra_ep.provider import registration
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument
PARALLEL = 10**9  # an estimate that always brings in the thread pool


def array(*shape: int, seed: int = 0) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("cost", [0, PARALLEL])
@pytest.mark.parametrize("threads", [1, 2])
def test_shapes_come_and_go(planner: FakePlanner, make_session: Any, threads: int, cost: int) -> None:
    planner.decide = lambda raw: [relu_island(raw, cost=cost)]
    session = make_session(relu_model(), threads=threads)
    for rows in (3, 3, 1000, 0, 1, 3, 0, 4096):
        x = array(rows, 4, seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


@pytest.mark.parametrize("cost", [PARALLEL, 20_000], ids=["unit by unit", "several units a task"])
def test_every_unit_runs_exactly_once(planner: FakePlanner, make_session: Any, cost: int) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        alternative = Alternative()
        rows, columns = alternative.dim(0, 0), alternative.const(4)
        alternative.output_dims(rows, columns)
        n = alternative.op("mul", rows, columns)
        x, y = alternative.input(0), alternative.output(0)
        alternative.step(NUMBER["fill"], [y], [n, alternative.const(0)], alternative.op("ceildiv", n, alternative.const(16)))
        alternative.step(NUMBER["unit"], [x, y], units=n, cost=alternative.const(cost))
        island.alternatives = [alternative]
        return [island]

    planner.decide = decide
    session = make_session(relu_model(), threads=2)
    for rows in (1, 7, 500):
        result = session.run(None, {"x": array(rows, 4)})[0]
        np.testing.assert_array_equal(-result.ravel(), np.arange(1, rows * 4 + 1, dtype=np.float32))


def fill_island(raw: RawGraph, alternatives: list[Alternative], op_type: str = "Relu") -> Island:
    node = node_of(raw, op_type)
    values = [raw.values[index] for index in node.inputs]
    inputs = [Tensor(value.name, value.elem_type, len(value.shape or ())) for value in values]
    (output,) = names(raw, node.outputs)
    return Island("fill", [node.id], inputs, [Tensor(output, rank=2)], alternatives)


def filling(alternative: Alternative, rows: int, value: int, columns: int | None = None) -> Alternative:
    columns = alternative.const(4) if columns is None else columns
    alternative.output_dims(rows, columns)
    n = alternative.op("mul", rows, columns)
    units = alternative.op("ceildiv", n, alternative.const(16))
    alternative.step(NUMBER["fill"], [alternative.output(0)], [n, value], units)
    return alternative


def test_the_first_alternative_whose_guards_hold(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        alternatives = []
        for least, value in ((100, 3), (10, 2), (1, 1)):
            alternative = Alternative()
            rows = alternative.dim(0, 0)
            alternative.guards.append(alternative.op("le", alternative.const(least), rows))
            alternatives.append(filling(alternative, rows, alternative.const(value)))
        return [fill_island(raw, alternatives)]

    planner.decide = decide
    session = make_session(relu_model())
    for rows, value in ((1, 1), (100, 3), (99, 2), (10, 2), (9, 1), (1, 1)):
        result = session.run(None, {"x": array(rows, 4)})[0]
        np.testing.assert_array_equal(result, np.full((rows, 4), -value, np.float32))
    with pytest.raises(InvalidArgument, match=r"island 'fill' has no plan for x \[0,4\]"):
        session.run(None, {"x": array(0, 4)})
    assert session.run(None, {"x": array(1, 4)})[0][0, 0] == -1


def test_checks_name_the_shapes(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (alternative,) = island.alternatives
        small = alternative.op("lt", alternative.dim(0, 0), alternative.const(8))
        alternative.checks.append((small, "the batch is too large"))
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    for _ in range(2):
        with pytest.raises(InvalidArgument, match=r"the batch is too large \(x \[8,4\]\)"):
            session.run(None, {"x": array(8, 4)})
        x = array(7, 4)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


def test_a_fault_in_the_data_fails_its_run_alone(planner: FakePlanner, make_session: Any) -> None:
    """What a step has put down as faults: here whatever is above 0, in any byte of the buffer."""

    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (alternative,) = island.alternatives
        n = alternative.op("mul", alternative.dim(0, 0), alternative.dim(0, 1))
        faults = alternative.buffer(ARENA, size=alternative.op("mul", n, alternative.const(4)), first=1, last=1)
        alternative.step(NUMBER["relu"], [0, faults], [n], alternative.op("ceildiv", n, alternative.const(16)))
        alternative.faults.append((faults, "Relu(r): too large"))
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    fine = np.full((5, 4), -1, np.float32)
    for at in (0, 7, 19):
        wrong = fine.copy()
        wrong.reshape(-1)[at] = 1
        with pytest.raises(InvalidArgument, match=r"XyntraEP: Relu\(r\): too large \(x \[5,4\]\)"):
            session.run(None, {"x": wrong})
        np.testing.assert_array_equal(session.run(None, {"x": fine})[0], np.zeros((5, 4), np.float32))
    assert session.run(None, {"x": fine[:0]})[0].shape == (0, 4)


def test_a_wrong_rank_is_named(planner: FakePlanner, make_session: Any) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    graph = model(nodes, [onnx.helper.make_tensor_value_info("x", 1, None)], [onnx.helper.make_tensor_value_info("y", 1, None)])
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(graph)
    assert planner.graphs[0].values[0].shape is None
    with pytest.raises(InvalidArgument, match=r"input 'x' has shape \[2,3,4\] of rank 3, the model says rank 2"):
        session.run(None, {"x": array(2, 3, 4)})
    x = array(5, 2)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


def test_an_input_of_any_rank(planner: FakePlanner, make_session: Any) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("Neg", ["t"], ["y"])]
    graph = model(nodes, [onnx.helper.make_tensor_value_info("x", 1, None)], [onnx.helper.make_tensor_value_info("y", 1, None)])

    def decide(raw: RawGraph) -> list[Island]:
        # The first alternative wants a third dimension and so never applies to matrices.
        cube = Alternative()
        filling(cube, cube.dim(0, 2), cube.const(9))
        island = relu_island(raw)
        island.inputs[0].rank = -1
        island.alternatives.insert(0, cube)
        return [island]

    planner.decide = decide
    session = make_session(graph)
    x = array(5, 2)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))
    np.testing.assert_array_equal(session.run(None, {"x": array(1, 2, 3)})[0], np.full((3, 4), -9, np.float32))


@pytest.mark.parametrize("elem_type", [onnx.TensorProto.INT64, onnx.TensorProto.INT32])
def test_elements_are_read_at_every_run(planner: FakePlanner, make_session: Any, elem_type: int) -> None:
    # Expand stands for any operator whose result shape is in its data.
    nodes = [helper.make_node("Cast", ["shape"], ["wide"], to=7), helper.make_node("Expand", ["x", "wide"], ["y"])]
    graph = model(nodes, [tensor("x", [1, 1]), tensor("shape", ["R"], elem_type)], [tensor("y", None)])  # type: ignore[arg-type]

    def decide(raw: RawGraph) -> list[Island]:
        cast, expand = node_of(raw, "Cast") if elem_type == 6 else None, node_of(raw, "Expand")
        alternative = Alternative()
        rows, columns = alternative.element(1, 0), alternative.element(1, 1)
        filling(alternative, rows, alternative.const(7), columns)
        shape = Tensor("shape", elem_type)
        inputs = [Tensor("x", rank=2), shape]
        nodes = [node.id for node in (cast, expand) if node is not None]
        return [Island("expand", nodes, inputs, [Tensor("y", rank=2)], [alternative])]

    planner.decide = decide
    session = make_session(graph)
    kind = np.int64 if elem_type == 7 else np.int32
    for dims in ((2, 3), (2, 3), (3, 2), (1, 100)):
        result = session.run(None, {"x": array(1, 1), "shape": np.array(dims, kind)})[0]
        np.testing.assert_array_equal(result, np.full(dims, 7, np.float32))
    with pytest.raises(InvalidArgument, match="no plan for"):
        session.run(None, {"x": array(1, 1), "shape": np.array([4], kind)})
    with pytest.raises(InvalidArgument, match="negative dimension"):
        session.run(None, {"x": array(1, 1), "shape": np.array([-4, 2], kind)})


def test_temporaries_share_memory_only_when_they_may(planner: FakePlanner, make_session: Any) -> None:
    # t0 = relu(x) lives through; t1, t2, ... are filled with rubbish of many sizes, over and over.
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        a = Alternative()
        rows, columns = a.dim(0, 0), a.const(4)
        a.output_dims(rows, columns)
        n = a.op("mul", rows, columns)
        sixteen = a.const(16)
        units = a.op("ceildiv", n, sixteen)
        kept = a.buffer(ARENA, size=a.op("mul", n, a.const(4)), first=0, last=9)
        a.step(NUMBER["relu"], [a.input(0), kept], [n], units)
        rubbish = a.const(-1)
        for i in range(1, 9):
            size = a.op("add", a.op("mul", n, a.const(i % 3)), a.const(16 * i))
            temporary = a.buffer(ARENA, size=a.op("mul", size, a.const(4)), first=i, last=min(i + 2, 9))
            a.step(NUMBER["fill"], [temporary], [size, rubbish], a.op("ceildiv", size, sixteen))
        offset = a.const(0)
        a.step(NUMBER["relu"], [(kept, offset), a.output(0)], [n], units)
        island.alternatives = [a]
        return [island]

    planner.decide = decide
    session = make_session(relu_model())
    for rows in (1, 300, 17, 200_000, 3):
        x = array(rows, 4)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


def test_literals_and_reading_past_the_end(planner: FakePlanner, make_session: Any) -> None:
    w = array(4)

    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        a = Alternative()
        rows, four = a.dim(0, 0), a.const(4)
        a.output_dims(rows, four)
        n = a.op("mul", rows, four)
        literal = a.buffer(LITERAL, data=w.tobytes())
        flag = a.buffer(ARENA, size=four, first=0, last=0)
        a.step(NUMBER["sum_past_end"], [literal, flag], [four])
        a.step(NUMBER["add"], [a.input(0), literal, a.output(0)], [n, four], a.op("ceildiv", n, a.const(16)))
        island.alternatives = [a]
        return [island]

    planner.decide = decide
    x = array(6, 4)
    np.testing.assert_array_equal(make_session(relu_model()).run(None, {"x": x})[0], -(x + w))


def test_unaligned_inputs(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_model())
    for shift in (4, 8, 12, 20):
        memory = np.zeros(4 * 40 + shift, np.uint8)
        x = memory[shift:].view(np.float32).reshape(10, 4)
        x[:] = array(10, 4, seed=shift)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


def test_io_binding(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [relu_island(raw, cost=PARALLEL)]
    session = make_session(relu_model())
    x, y = array(50, 4), np.empty((50, 4), np.float32)
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, x.shape, x.ctypes.data)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    for _ in range(3):
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(y, relu_answer(x))
        x *= -1


@pytest.mark.parametrize("threads", [1, 2])
def test_many_threads_run_one_session(planner: FakePlanner, make_session: Any, threads: int) -> None:
    planner.decide = lambda raw: [relu_island(raw, cost=PARALLEL)]
    session = make_session(relu_model(), threads=threads)

    def work(seed: int) -> bool:
        x = array(1 + seed % 50, 4, seed=seed)
        return all(np.array_equal(session.run(None, {"x": x})[0], relu_answer(x)) for _ in range(20))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))


@pytest.mark.parametrize(("rows", "cost_ns", "tasks"), [(12, 5_999, 1), (12, 6_000, 3), (50, 7_999, 7), (0, 6_000, 1)])
def test_the_profile_has_the_cost_of_a_step_and_its_tasks(
    planner: FakePlanner, make_session: Any, rows: int, cost_ns: int, tasks: int
) -> None:
    """Below 6 us the calling thread does it alone; else a task has about 1 us, and at least a unit of 16 elements.
    A step without units is not carried out."""
    library = registration.library()
    planner.decide = lambda raw: [relu_island(raw, cost=cost_ns)]
    session = make_session(relu_model())
    library.xyntra_take_profile(ctypes.create_string_buffer(1 << 16), 1 << 16)
    library.xyntra_profile(1)
    try:
        for _ in range(2):
            session.run(None, {"x": array(rows, 4)})
    finally:
        library.xyntra_profile(0)
    buffer = ctypes.create_string_buffer(library.xyntra_take_profile(None, 0))
    library.xyntra_take_profile(buffer, len(buffer))
    row = json.loads(buffer.raw.decode())
    assert (row["calls"], row["cost_ns"], row["tasks"]) == (2, 2 * cost_ns if rows else 0, tasks)


def test_the_profile_counts_steps(planner: FakePlanner, make_session: Any) -> None:
    library = registration.library()
    planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_model())
    library.xyntra_take_profile(ctypes.create_string_buffer(1 << 16), 1 << 16)
    session.run(None, {"x": array(2, 4)})
    library.xyntra_profile(1)
    try:
        for _ in range(5):
            session.run(None, {"x": array(2, 4)})
    finally:
        library.xyntra_profile(0)
    session.run(None, {"x": array(2, 4)})
    size = library.xyntra_take_profile(None, 0)
    buffer = ctypes.create_string_buffer(size)
    library.xyntra_take_profile(buffer, size)
    (row,) = [json.loads(line) for line in buffer.raw.decode().splitlines()]
    assert (row["island"], row["alternative"], row["step"], row["label"]) == ("relu", 0, 0, "relu")
    assert (row["calls"], row["kernel"], row["digest"]) == (5, "relu", planner.digests[-1])
    assert (row["flops"], row["bytes"]) == (5 * 8, 5 * 64), "what the plan says at the shapes of the runs, summed"
    assert (row["cost_ns"], row["tasks"]) == (0, 1)
    assert row["ns"] > 0
    assert library.xyntra_take_profile(None, 0) == 0
