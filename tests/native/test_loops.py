"""Steps that are carried out for one image after the other, or for several side by side; and different steps side by side."""

from __future__ import annotations

import ctypes
import json
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from struct import pack
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, CONSTANT, POOL, Alternative, Island, Tensor
from tests.native.plans.models import add_answer, add_model, names, node_of
from tests.native.test_claims import report
from tests.native.test_execution import PARALLEL, array
from tests.support.native_memory import counts, grown
from xyntra_ep.provider import registration
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
InvalidArgument = ort.capi.onnxruntime_pybind11_state.InvalidArgument
W = array(100, seed=3)
IMAGE_BYTES = 4 * len(W)


def looped_island(raw: RawGraph, *, cost: int = 0, more_bytes: int = 0) -> Island:
    """What models.add_island does, a row at a time; all rows go through a second temporary on their way to the output."""
    node = node_of(raw, "Add")
    x, w = names(raw, node.inputs)
    (y,) = names(raw, node.outputs)
    a = Alternative()
    rows, columns = a.dim(0, 0), a.const(len(W))
    a.output_dims(rows, columns)
    n, row_bytes = a.op("mul", rows, columns), a.const(IMAGE_BYTES + more_bytes)
    image_units, nanoseconds = a.const(-(-len(W) // 16)), a.const(cost)
    source, packed = a.buffer(CONSTANT, 0), a.buffer(POOL, size=a.const(IMAGE_BYTES))
    a.step(NUMBER["pack"], [source, packed], [columns], init=True, label="pack")
    image = a.buffer(ARENA, size=a.const(IMAGE_BYTES), first=0, last=1)
    given, whole = a.input(0), a.buffer(ARENA, size=a.op("mul", rows, a.const(IMAGE_BYTES)), first=0, last=2)
    steps = partial(a.step, units=image_units, cost=nanoseconds)
    steps(NUMBER["add"], [given, packed, image], [columns, columns], label="add", flops=columns, moved=row_bytes)
    steps(NUMBER["relu"], [image, whole], [columns], label="relu")
    a.step(NUMBER["relu"], [whole, a.output(0)], [n], a.op("ceildiv", n, a.const(16)), label="all")
    a.loop(0, 1, rows, {given: row_bytes, whole: row_bytes})
    return Island("add", [node.id], [Tensor(x, rank=2)], [Tensor(y, rank=2)], [a], [w])


@pytest.mark.parametrize("cost", [0, 4_000, PARALLEL], ids=["inline", "an image each", "unit by unit"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_each_image_sees_its_own(planner: FakePlanner, make_session: Any, threads: int, cost: int) -> None:
    planner.decide = lambda raw: [looped_island(raw, cost=cost)]
    session = make_session(add_model(W), threads=threads)
    for rows in (3, 3, 3, 1, 0, 17, 2, 17, 17, 64):  # the later runs know how many threads there are
        x = array(rows, len(W), seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, W))


def test_runs_side_by_side(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [looped_island(raw, cost=PARALLEL)]
    session = make_session(add_model(W), threads=2)

    def work(seed: int) -> bool:
        x = array(5 + seed, len(W), seed=seed)
        return all(np.array_equal(session.run(None, {"x": x})[0], add_answer(x, W)) for _ in range(50))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


def test_the_memory_of_an_image_not_of_all(planner: FakePlanner, make_session: Any) -> None:
    """Of the two temporaries only one grows with the batch."""
    planner.decide = lambda raw: [looped_island(raw)]
    session = make_session(add_model(W), threads=1)
    session.run(None, {"x": array(1, len(W))})
    before = counts()
    rows = 2000
    session.run(None, {"x": array(rows, len(W))})
    assert 0.9 * rows * IMAGE_BYTES < grown(before)["block_bytes"] < 1.5 * rows * IMAGE_BYTES


def profiled(session: Any, *counts: int) -> list[dict[str, Any]]:
    """The steps of runs with so many rows each."""
    library = registration.library()
    library.xyntra_take_profile(ctypes.create_string_buffer(1 << 16), 1 << 16)
    library.xyntra_profile(1)
    try:
        for rows in counts:
            session.run(None, {"x": array(rows, len(W))})
    finally:
        library.xyntra_profile(0)
    text = ctypes.create_string_buffer(1 << 16)
    size = library.xyntra_take_profile(text, 1 << 16)
    return [json.loads(line) for line in text.raw[:size].decode().splitlines()]


def test_the_profile_counts_images(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [looped_island(raw, cost=4_000)]
    session = make_session(add_model(W), threads=1)
    lines = profiled(session, 5, 2)
    assert [(line["label"], line["calls"]) for line in lines] == [("add", 7), ("relu", 7), ("all", 2)]
    assert lines[0]["flops"] == 7 * len(W) and lines[0]["bytes"] == 7 * IMAGE_BYTES
    assert [(line["cost_ns"], line["tasks"]) for line in lines] == [(7 * 4_000, 1), (7 * 4_000, 1), (0, 1)]


def test_an_image_beyond_its_buffer(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [looped_island(raw, more_bytes=IMAGE_BYTES)]
    session = make_session(add_model(W))
    x = array(1, len(W))
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, W))
    with pytest.raises(InvalidArgument, match="would begin outside of its buffer"):
        session.run(None, {"x": array(3, len(W))})


def test_an_image_of_nothing(planner: FakePlanner, make_session: Any) -> None:
    """Steps that have nothing to do need not have images in their buffers."""

    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        [a] = island.alternatives
        given = a.input(0)
        a.step(NUMBER["relu"], [given, given], [a.const(0)], a.const(0), label="nothing")
        a.loop(3, 3, a.const(1000), {given: a.const(IMAGE_BYTES)})
        return [island]

    planner.decide = decide
    x = array(3, len(W))
    np.testing.assert_array_equal(make_session(add_model(W)).run(None, {"x": x})[0], add_answer(x, W))


def test_no_stride_is_negative(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [looped_island(raw, more_bytes=-2 * IMAGE_BYTES)]
    with pytest.raises(InvalidArgument, match="would begin outside of its buffer"):
        make_session(add_model(W)).run(None, {"x": array(3, len(W))})


def test_no_number_of_images_is_negative(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        [a] = island.alternatives
        a.loops.clear()
        a.loop(0, 1, a.op("sub", a.dim(0, 0), a.const(4)), {})
        return [island]

    planner.decide = decide
    session = make_session(add_model(W))
    with pytest.raises(InvalidArgument, match="a negative number of images"):
        session.run(None, {"x": array(3, len(W))})


@pytest.mark.parametrize(
    ("first", "last", "strides", "why"),
    [
        (1, 0, {}, "the steps of a loop are not its own"),
        (2, 3, {}, "the steps of a loop are not its own"),
        (1, 2, {}, "the steps of a loop are not its own"),  # there is one over 0 and 1
        (2, 2, {99: 0}, "a loop names no buffer"),
        (2, 2, {0: 10**6}, "an expression index is out of range"),
    ],
)
def test_what_is_wrong_is_named(
    planner: FakePlanner, make_session: Any, first: int, last: int, strides: dict[int, int], why: str
) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        island.alternatives[0].loop(first, last, 0, strides)
        return [island]

    planner.decide = decide
    assert why in report(make_session(add_model(W)))[0]["failure"]


def test_a_buffer_named_twice(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        island.alternatives[0].loops.append(pack("<III", 2, 2, 0) + pack("<IIIII", 2, 0, 0, 0, 0))
        return [island]

    planner.decide = decide
    assert "a loop names no buffer, or one twice" in report(make_session(add_model(W)))[0]["failure"]


def test_a_fault_is_of_all_images(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        [a] = island.alternatives
        flags = a.buffer(ARENA, size=a.const(64), first=2, last=2)
        a.faults.append((flags, "wrong"))
        a.loop(2, 2, a.const(1), {})
        return [island]

    planner.decide = decide
    assert "a fault is in one image only" in report(make_session(add_model(W)))[0]["failure"]


# ------------------------------------------------------------------------------------------------- steps side by side


def waved_island(raw: RawGraph, *, cost: int = 0) -> Island:
    """What models.add_island does, with a second step beside the first, whose result nobody wants."""
    node = node_of(raw, "Add")
    x, w = names(raw, node.inputs)
    (y,) = names(raw, node.outputs)
    a = Alternative()
    rows, columns = a.dim(0, 0), a.const(len(W))
    a.output_dims(rows, columns)
    n, nanoseconds = a.op("mul", rows, columns), a.const(cost)
    size = a.op("mul", n, a.const(4))
    units = a.op("ceildiv", n, a.const(16))
    source, packed = a.buffer(CONSTANT, 0), a.buffer(POOL, size=a.const(IMAGE_BYTES))
    a.step(NUMBER["pack"], [source, packed], [columns], init=True, label="pack")
    given, out = a.input(0), a.output(0)
    added = a.buffer(ARENA, size=size, first=0, last=2)
    other = a.buffer(ARENA, size=size, first=0, last=1)
    steps = partial(a.step, units=units, cost=nanoseconds, flops=n)
    steps(NUMBER["add"], [given, packed, added], [n, columns], label="add")
    steps(NUMBER["relu"], [given, other], [n], label="beside")
    steps(NUMBER["relu"], [added, out], [n], label="relu")
    a.waves.append((0, 1))
    return Island("add", [node.id], [Tensor(x, rank=2)], [Tensor(y, rank=2)], [a], [w])


@pytest.mark.parametrize("cost", [0, 4_000, PARALLEL], ids=["inline", "a step each", "unit by unit"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_steps_side_by_side(planner: FakePlanner, make_session: Any, threads: int, cost: int) -> None:
    planner.decide = lambda raw: [waved_island(raw, cost=cost)]
    session = make_session(add_model(W), threads=threads)
    for rows in (3, 1, 0, 17, 64, 3):
        x = array(rows, len(W), seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, W))


def test_every_unit_of_each_step_runs_once(planner: FakePlanner, make_session: Any) -> None:
    """Three steps of different lengths, one of nothing, all of which write to parts of one output."""

    def decide(raw: RawGraph) -> list[Island]:
        island = waved_island(raw)
        a = Alternative()
        rows, columns = a.dim(0, 0), a.const(len(W))
        a.output_dims(rows, columns)
        n = a.op("mul", rows, columns)
        given, out = a.input(0), a.output(0)
        a.step(NUMBER["fill"], [out], [n, a.const(0)], a.op("ceildiv", n, a.const(16)))
        third, cost = a.op("floordiv", n, a.const(3)), a.const(20_000)
        rest = a.op("sub", n, a.op("mul", third, a.const(2)))
        third_bytes = a.op("mul", third, a.const(4))
        unit = NUMBER["unit"]
        a.step(unit, [given, out], units=third, cost=cost)
        a.step(unit, [given, out], units=a.const(0), cost=cost)
        a.step(unit, [given, (out, third_bytes)], units=third, cost=a.const(100))
        a.step(unit, [given, (out, a.op("mul", third_bytes, a.const(2)))], units=rest, cost=a.const(PARALLEL))
        a.waves.append((1, 4))
        island.alternatives, island.constants = [a], []
        return [island]

    planner.decide = decide
    session = make_session(add_model(W), threads=2)
    for rows in (1, 7, 500, 7):
        n = rows * len(W)
        parts = [n // 3, n // 3, n - 2 * (n // 3)]
        wanted = np.concatenate([np.arange(1, part + 1, dtype=np.float32) for part in parts])
        np.testing.assert_array_equal(session.run(None, {"x": array(rows, len(W))})[0].ravel(), wanted)


def test_the_profile_has_each_step(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [waved_island(raw, cost=4_000)]
    session = make_session(add_model(W), threads=2)
    lines = profiled(session, 5, 2)
    assert [(line["label"], line["calls"]) for line in lines] == [("add", 2), ("beside", 2), ("relu", 2)]
    assert [(line["cost_ns"], line["tasks"], line["flops"]) for line in lines] == [(8_000, 1, 7 * len(W))] * 3
    assert all(line["ns"] > 0 for line in lines) and abs(lines[0]["ns"] - lines[1]["ns"]) <= 2, "their costs are equal"


@pytest.mark.parametrize(
    ("waves", "why"),
    [
        ([(1, 1)], "steps side by side are not a wave"),
        ([(1, 0)], "steps side by side are not a wave"),
        ([(1, 3)], "steps side by side are not a wave"),
        ([(0, 1), (1, 2)], "steps side by side are not a wave"),
        ([(1, 2)], "a temporary of steps side by side is not there for all of them"),
    ],
)
def test_what_is_wrong_of_waves_is_named(planner: FakePlanner, make_session: Any, waves: list[tuple[int, int]], why: str) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = waved_island(raw)
        island.alternatives[0].waves = waves
        return [island]

    planner.decide = decide
    assert why in report(make_session(add_model(W)))[0]["failure"]


def test_no_wave_is_in_a_loop(planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = looped_island(raw)
        island.alternatives[0].waves = [(1, 2)]
        return [island]

    planner.decide = decide
    assert "steps side by side are in a loop" in report(make_session(add_model(W)))[0]["failure"]
