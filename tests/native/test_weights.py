"""Packed weights: made once in Compile, shared by content, gone with their last session."""

from __future__ import annotations

import gc
import mmap
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import CONSTANT, INIT, POOL, Alternative, Island, Tensor
from tests.native.plans.models import Dims, add_answer, add_island, add_model, constant, model, tensor
from tests.support.native_memory import counts, grown
from xyntra_ep.provider import registration
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]


def pool_bytes() -> int:
    gc.collect()
    return int(registration.library().xyntra_pool_bytes())


@pytest.mark.parametrize("length", [3, 300, 1_000_000])
def test_sessions_share_equal_weights(planner: FakePlanner, make_session: Any, length: int) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    before = pool_bytes()
    w = np.random.default_rng(0).standard_normal(length).astype(np.float32)
    x = np.ones((2, length), np.float32)
    first = make_session(add_model(w))
    assert pool_bytes() == before + 4 * length
    second = make_session(add_model(w))
    assert pool_bytes() == before + 4 * length
    third = make_session(add_model(w + 1))
    assert pool_bytes() == before + 8 * length
    del first
    np.testing.assert_array_equal(second.run(None, {"x": x})[0], add_answer(x, w))
    np.testing.assert_array_equal(third.run(None, {"x": x})[0], add_answer(x, w + 1))
    assert pool_bytes() == before + 8 * length
    del second
    assert pool_bytes() == before + 4 * length
    del third
    assert pool_bytes() == before


def test_alternatives_share_weights_and_temporaries_are_dropped(planner: FakePlanner, make_session: Any) -> None:
    # Each alternative packs through a temporary: w -> 2w (INIT) -> 4w (POOL).
    def alternative(raw: RawGraph, length: int, few: bool) -> Alternative:
        a = Alternative()
        rows, columns = a.dim(0, 0), a.const(length)
        a.output_dims(rows, columns)
        a.guards.append(a.op("lt", rows, a.const(10)) if few else a.const(1))
        n = a.op("mul", rows, columns)
        size = a.const(4 * length)
        source, between, packed = a.buffer(CONSTANT, 0), a.buffer(INIT, size=size), a.buffer(POOL, size=size)
        a.step(NUMBER["pack"], [source, between], [columns], init=True)
        a.step(NUMBER["pack"], [between, packed], [columns], init=True)
        units = a.op("ceildiv", n, a.const(16))
        a.step(NUMBER["add"], [a.input(0), packed, a.output(0)], [n, columns], units)
        return a

    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        island.alternatives = [alternative(raw, 500, True), alternative(raw, 500, False)]
        return [island]

    planner.decide = decide
    before = pool_bytes()
    w = np.arange(500, dtype=np.float32)
    session = make_session(add_model(w))
    assert pool_bytes() == before + 4 * 500
    for rows in (1, 20, 2):
        x = np.ones((rows, 500), np.float32)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + 4 * w)


@pytest.mark.parametrize("half", [False, True])
def test_what_alternatives_pack_alike_is_packed_once(planner: FakePlanner, make_session: Any, half: bool) -> None:
    """Every call of the packing gives other numbers. ``half``: the second one packs other sizes, so it must run."""

    def alternative(few: bool, packed_length: int) -> Alternative:
        a = Alternative()
        rows, columns = a.dim(0, 0), a.const(40)
        a.output_dims(rows, columns)
        a.guards.append(a.op("lt", rows, a.const(10)) if few else a.const(1))
        n = a.op("mul", rows, columns)
        source, packed = a.buffer(CONSTANT, 0), a.buffer(POOL, size=a.const(4 * 40))
        a.step(NUMBER["stamp"], [source, packed], [a.const(packed_length)], init=True)
        a.step(NUMBER["add"], [a.input(0), packed, a.output(0)], [n, a.const(packed_length)], a.op("ceildiv", n, a.const(16)))
        return a

    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        island.alternatives = [alternative(True, 40), alternative(False, 20 if half else 40)]
        return [island]

    planner.decide = decide
    session = make_session(add_model(np.zeros(40, np.float32)))
    few, many = (session.run(None, {"x": np.zeros((rows, 40), np.float32)})[0] for rows in (2, 20))
    assert few.min() == few.max() > 0
    assert many.min() == many.max() == few.max() + half


def test_several_weights_of_one_island(planner: FakePlanner, make_session: Any) -> None:
    # Two of them equal, one open while the other is made: places in the pool must not be mixed up.
    def decide(raw: RawGraph) -> list[Island]:
        island = add_island(raw)
        a = Alternative()
        rows, columns = a.dim(0, 0), a.const(400)
        a.output_dims(rows, columns)
        n, size = a.op("mul", rows, columns), a.const(1600)
        units = a.op("ceildiv", n, a.const(16))
        source = a.buffer(CONSTANT, 0)
        one, two, four, eight = (a.buffer(POOL, size=size) for _ in range(4))
        a.step(NUMBER["pack"], [source, one], [columns], init=True)  # 2w, used again below
        a.step(NUMBER["pack"], [source, two], [columns], init=True)  # 2w: equal to `one`, which is still open
        a.step(NUMBER["pack"], [one, four], [columns], init=True)  # 4w; `one` ends here
        a.step(NUMBER["pack"], [four, eight], [columns], init=True)  # 8w, while `four` is still open
        out = a.output(0)
        a.step(NUMBER["add"], [a.input(0), one, out], [n, columns], units)
        a.step(NUMBER["add"], [out, two, out], [n, columns], units)
        a.step(NUMBER["add"], [out, four, out], [n, columns], units)
        a.step(NUMBER["add"], [out, eight, out], [n, columns], units)
        island.alternatives = [a]
        return [island]

    planner.decide = decide
    before = pool_bytes()
    w = np.arange(400, dtype=np.float32)
    sessions = [make_session(add_model(w)) for _ in range(2)]
    assert pool_bytes() == before + 3 * 1600
    x = np.ones((3, 400), np.float32)
    for session in sessions:
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], x + 16 * w)


def weights_island(raw: RawGraph) -> list[Island]:
    """x + w0 + w1 + ...: each weight packed by itself."""
    nodes = [node for node in raw.nodes if node.op_type == "Add"]
    names = [raw.values[node.inputs[1]].name for node in nodes]
    length = raw.values[nodes[0].inputs[1]].nbytes // 4
    a = Alternative()
    rows, columns = a.dim(0, 0), a.const(length)
    a.output_dims(rows, columns)
    n = a.op("mul", rows, columns)
    units, out = a.op("ceildiv", n, a.const(16)), a.output(0)
    x = a.input(0)
    for index in range(len(nodes)):
        packed = a.buffer(POOL, size=a.const(4 * length))
        a.step(NUMBER["pack"], [a.buffer(CONSTANT, index), packed], [columns], init=True)
        a.step(NUMBER["add"], [x if index == 0 else out, packed, out], [n, columns], units)
    result = raw.values[nodes[-1].outputs[0]].name
    return [Island("sum", [node.id for node in nodes], [Tensor("x", rank=2)], [Tensor(result, rank=2)], [a], names)]


def sum_model(weights: list[npt.NDArray[np.float32]]) -> onnx.ModelProto:
    dims: Dims = ["N", len(weights[0])]
    nodes = [helper.make_node("Add", [f"x{i}" if i else "x", f"w{i}"], [f"x{i + 1}"]) for i in range(len(weights))]
    constants = [constant(f"w{i}", w) for i, w in enumerate(weights)]
    return model(nodes, [tensor("x", dims)], [tensor(f"x{len(weights)}", dims)], constants)


PAGE = mmap.PAGESIZE


@pytest.mark.parametrize("length", [5_000, 40_000, 700_000])  # of one weight: 20 KB, 160 KB, 2.8 MB
@pytest.mark.parametrize("shared", [0, 3, 7], ids="weight {} of 8 is shared".format)
def test_a_weight_that_is_shared_keeps_its_own_pages_only(
    planner: FakePlanner, make_session: Any, length: int, shared: int
) -> None:
    planner.decide = weights_island
    rng = np.random.default_rng(length)
    weights = [rng.standard_normal(length).astype(np.float32) for _ in range(8)]
    x = np.ones((1, length), np.float32)
    before = counts()
    large = make_session(sum_model(weights))
    want = large.run(None, {"x": x})[0]
    assert grown(before)["block_bytes"] < 8 * (4 * length + PAGE)
    small = make_session(sum_model([weights[shared]]))
    assert grown(before)["weights"] == 8
    del large
    after = grown(before)
    assert (after["weights"], after["weight_bytes"]) == (1, 4 * length)
    assert after["block_bytes"] <= 4 * length + 2 * PAGE, "the other seven gave their pages back"
    np.testing.assert_array_equal(small.run(None, {"x": x})[0], x + 2 * weights[shared])
    again = make_session(sum_model(weights))  # what went is packed anew, what stayed is shared
    assert grown(before)["weights"] == 8
    np.testing.assert_array_equal(again.run(None, {"x": x})[0], want)
    del small
    np.testing.assert_array_equal(again.run(None, {"x": x})[0], want)
    del again
    assert grown(before) == {}


def test_the_pages_of_a_weight_go_back_to_the_system(planner: FakePlanner, make_session: Any) -> None:
    """The counts are of what native code gave back; here the system says that it came."""

    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE

    planner.decide = weights_island
    length = 4 << 20
    weights = [np.full(length, i, np.float32) for i in range(6)]  # 16 MiB each
    models = [sum_model(weights), sum_model(weights[2:3])]
    large, small = (make_session(m) for m in models)
    gc.collect()
    with_all = resident_bytes()
    del large
    gc.collect()
    assert with_all - resident_bytes() > 4 * 4 * length
    assert small.run(None, {"x": np.ones((1, length), np.float32)})[0][0, 0] == 1 + 2 * 2


def test_a_session_that_cannot_be_made_leaves_nothing(planner: FakePlanner, make_session: Any) -> None:
    """Our island is compiled before ONNX Runtime finds that it has no kernel for another node."""
    planner.decide = weights_island
    rng = np.random.default_rng(5)
    graph = sum_model([rng.standard_normal(100_000).astype(np.float32) for _ in range(3)])
    bad = onnx.ModelProto()
    bad.CopyFrom(graph)
    bad.graph.input.append(tensor("i", ["N"], onnx.TensorProto.DOUBLE))
    bad.graph.output.append(tensor("j", ["N"], onnx.TensorProto.DOUBLE))
    bad.graph.node.append(helper.make_node("Selu", ["i"], ["j"]))
    before = counts()
    for attempt in range(1, 4):
        with pytest.raises(Exception, match="Could not find an implementation for Selu"):
            make_session(bad)
        assert planner.calls == attempt
        assert grown(before) == {}
    session = make_session(graph)
    assert grown(before)["weights"] == 3
    del session
    assert grown(before) == {}
