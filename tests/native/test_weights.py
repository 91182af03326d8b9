"""Packed weights: made once in Compile, shared by content, gone with their last session."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests.native.conftest import FakePlanner
from tests.native.kernels import NUMBER
from tests.native.manifest_builder import CONSTANT, INIT, POOL, Alternative, Island
from tests.native.models import add_answer, add_island, add_model
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
