"""Hand-made plans on an OpenCL device: memory, shapes, threads, and what goes wrong."""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from tests.native.conftest import FakePlanner
from tests.native.plans import opencl_kernels
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import Island, Kernel, Plan
from tests.native.plans.models import add_answer, add_island, add_model, relu_answer, relu_island, relu_model
from tests.native.test_claims import report
from tests.native.test_execution import array
from tests.support.native_memory import counts, grown, quiet
from xyntra_ep.errors import CompileError
from xyntra_ep.provider import callback, registration
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.tracea.runtime.cache_root import CacheRoot, open_root
from xyntra_ep.tracea.runtime.driver_compiler import DriverCompiler
from xyntra_ep.tracea.runtime.kernel_cache import KernelCache
from xyntra_ep.tracea.runtime.kernel_source import KernelSource
from xyntra_ep.tracea.runtime.opencl import survey

pytestmark = [pytest.mark.native, pytest.mark.device("opencl")]
LIBRARY = Path(registration.get_library_path())


def identity() -> str:
    return survey().working[0].identity


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> CacheRoot:
    return open_root(tmp_path_factory.mktemp("opencl"))


@pytest.fixture(scope="module")
def programs(root: CacheRoot) -> list[Kernel]:
    return opencl_kernels.compile_all(root, LIBRARY, identity())


@pytest.fixture
def device_planner(root: CacheRoot, programs: list[Kernel]) -> Iterator[FakePlanner]:
    registration.register()
    fake = DevicePlanner(root.path, programs)
    library = registration.library()
    registration.attach(library, callback.make_callback(library, fake))
    yield fake
    registration.attach(library, callback.make_callback(library))


class DevicePlanner(FakePlanner):
    def plan(self, islands: list[Island], **more: Any) -> Plan:
        return super().plan(islands, **{"device": identity(), **more})


def test_shapes_come_and_go(device_planner: FakePlanner, make_session: Any) -> None:
    device_planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_model())
    for rows in (3, 3, 1000, 0, 1, 3, 0, 4096):
        x = array(rows, 4, seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))


def test_weights_are_packed_on_the_device_and_temporaries_lie_in_its_arena(
    device_planner: FakePlanner, make_session: Any
) -> None:
    device_planner.decide = lambda raw: [add_island(raw)]
    w = array(100, seed=1)
    session = make_session(add_model(w))
    for rows in (1, 37):
        x = array(rows, 100, seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, w))


def test_alternatives_that_pack_the_same_share_it(device_planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        (never, island) = (add_island(raw), add_island(raw))
        never.alternatives[0].guards.append(never.alternatives[0].const(0))
        island.alternatives.insert(0, never.alternatives[0])
        return [island]

    device_planner.decide = decide
    w, x = array(100, seed=1), array(5, 100)
    np.testing.assert_array_equal(make_session(add_model(w)).run(None, {"x": x})[0], add_answer(x, w))


def test_threads_run_one_session(device_planner: FakePlanner, make_session: Any) -> None:
    device_planner.decide = lambda raw: [relu_island(raw)]
    session = make_session(relu_model())
    inputs = [array(rows, 4, seed=rows) for rows in range(1, 41)]
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda x: session.run(None, {"x": x})[0], inputs))
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(result, relu_answer(x))


def test_buffers_that_were_too_large_for_a_while_go(device_planner: FakePlanner, make_session: Any) -> None:
    device_planner.decide = lambda raw: [relu_island(raw)]
    before = counts()
    session = make_session(relu_model())
    large, small = array(5000, 4), array(50, 4)
    with quiet(200):  # longer than two runs take, shorter than the pause
        for x in (large, small):
            np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))
        made = grown(before)["device_buffers"]
        left = []
        for _ in range(3):
            time.sleep(0.3)
            np.testing.assert_array_equal(session.run(None, {"x": small})[0], relu_answer(small))
            left.append(grown(before).get("device_buffers", 0))
        assert min(left) < made == left[-1], "they went once, and are as many as before, of another size"
    for x in (small, large):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))
    with quiet(0):
        session.run(None, {"x": small})
    assert grown(before).keys() == {"sessions", "plans", "islands"}, "no workspace, no buffer"
    del session
    assert grown(before) == {}


def test_memory_on_the_device_is_flat(device_planner: FakePlanner, make_session: Any) -> None:
    w = array(100, seed=1)
    device_planner.decide = lambda raw: [add_island(raw)]
    before = counts()
    for rows in range(1, 40):
        session = make_session(add_model(w + rows % 5))
        x = array(rows, 100, seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, w + rows % 5))
    assert grown(before)["device_buffers"] > 0
    del session
    assert grown(before) == {}


def test_a_stored_plan_runs_without_the_planner(device_planner: FakePlanner, make_session: Any, root: CacheRoot) -> None:
    device_planner.decide = lambda raw: [relu_island(raw)]
    options = {"cache_dir": str(root.path)}
    make_session(relu_model(), options)
    answer = device_planner.plan([relu_island(device_planner.graphs[-1])])
    answer.digest = device_planner.digests[-1]
    device_planner.store(root.path, answer.digest, answer.bytes())
    calls, x = device_planner.calls, array(9, 4)
    np.testing.assert_array_equal(make_session(relu_model(), options).run(None, {"x": x})[0], relu_answer(x))
    assert device_planner.calls == calls


def test_a_device_that_is_gone_leaves_its_nodes_to_the_cpu(device_planner: FakePlanner, make_session: Any) -> None:
    device_planner.decide = lambda raw: device_planner.plan([relu_island(raw)], device="OpenCL / Nobody / nothing / 0")
    x = array(9, 4)
    session = make_session(relu_model())
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))
    (record,) = report(session)
    assert record["unclaimed"] == {"relu": "the OpenCL device 'OpenCL / Nobody / nothing / 0' is not on this machine"}


def test_a_damaged_program_is_not_given_to_the_driver(device_planner: FakePlanner, make_session: Any, tmp_path: Path) -> None:
    broken = tmp_path / "broken.clbin"
    broken.write_bytes(Path(device_planner.kernels[NUMBER["relu"]].path).read_bytes()[:-60])
    broken.chmod(0o600)
    kernels = list(device_planner.kernels)
    kernels[NUMBER["relu"]] = Kernel(str(broken), "xy_relu", kernels[NUMBER["relu"]].hash, opencl_kernels.THREADS)
    device_planner.decide = lambda raw: Plan(
        "", str(device_planner.root), device=identity(), kernels=kernels, islands=[relu_island(raw)]
    )
    session = make_session(relu_model())
    assert "is damaged" in report(session)[0]["unclaimed"]["relu"]


def test_sizes_that_the_device_cannot_count_are_an_error(device_planner: FakePlanner, make_session: Any) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        alternative = island.alternatives[0]
        alternative.step(NUMBER["fill"], [1], [alternative.const(0), alternative.const(2**31)])
        return [island]

    device_planner.decide = decide
    session = make_session(relu_model())
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.RuntimeException, match="2147483648 is too large"):
        session.run(None, {"x": array(1, 4)})


def taken(library: ctypes.CDLL) -> list[str]:
    """The lines of the profile."""
    buffer = ctypes.create_string_buffer(library.xyntra_take_profile(None, 0))
    library.xyntra_take_profile(buffer, len(buffer))
    return buffer.raw.decode().splitlines()


def test_the_profile_has_the_time_on_the_device(device_planner: FakePlanner, make_session: Any) -> None:
    device_planner.decide = lambda raw: [relu_island(raw, cost=9_000)]
    session = make_session(relu_model())
    library = registration.library()
    library.xyntra_profile(1)
    try:
        session.run(None, {"x": array(5000, 4)})
    finally:
        library.xyntra_profile(0)
    (row,) = [json.loads(line) for line in taken(library) if "xy_relu" in line]
    assert row["calls"] == 1 and row["ns"] > 0 and row["bytes"] == 5000 * 4 * 8
    assert (row["cost_ns"], row["tasks"]) == (9_000, 1)
    library.xyntra_profile(2)
    try:
        for _ in range(2):
            session.run(None, {"x": array(5000, 4)})
    finally:
        library.xyntra_profile(0)
    (whole,) = [json.loads(line) for line in taken(library)]
    assert whole.keys() == {"digest", "island", "alternative", "calls", "ns"} and whole["calls"] == 2 and whole["ns"] > 0


def test_a_program_that_does_not_compile_says_why(root: CacheRoot) -> None:
    compiler = DriverCompiler(library=LIBRARY, device=identity(), suffix=".clbin", name="the OpenCL driver")
    cache = KernelCache(root, compiler, ())
    (refused,) = cache.compile_many([KernelSource.of_text("f", "__kernel void f(__global float *x) { x[0] = y; }\n")])
    assert isinstance(refused, CompileError)
    assert refused.what.startswith("the OpenCL driver ended with status 1: error: ") and "'y'" in refused.what
