"""Memory of runs: as much as there are runs at once, given back when none has used it for a while, an error where it ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import ARENA, Alternative, Island, Tensor
from tests.native.plans.models import (
    add_answer,
    add_island,
    add_model,
    model,
    names,
    node_of,
    relu_answer,
    relu_island,
    relu_model,
    tensor,
)
from tests.native.test_execution import PARALLEL, array
from tests.support.native_memory import counts, grown, quiet
from xyntra_ep.provider.graph_buffer import RawGraph

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
W = array(1000, seed=3)


def crowd(session: Any, threads: int, rows: int = 20) -> None:
    """Runs in as many threads, which all have a workspace at some time."""
    gate = threading.Barrier(threads)

    def work(seed: int) -> bool:
        x = array(rows, 1000, seed=seed)
        gate.wait()
        return all(np.array_equal(session.run(None, {"x": x})[0], add_answer(x, W)) for _ in range(20))

    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(work, range(threads)))


def test_as_many_as_runs_at_once_and_none_after_a_quiet_time(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    session = make_session(add_model(W))
    before = counts()
    crowd(session, 8)
    assert 1 <= grown(before)["workspaces"] <= 8
    kept = grown(before)["workspaces"]
    crowd(session, 8)
    assert kept <= grown(before)["workspaces"] <= 8, "they are used again"
    x = array(20, 1000)
    with quiet(1):
        time.sleep(0.1)  # more than a millisecond, by a clock that is a few inexact
        session.run(None, {"x": x})
        assert grown(before)["workspaces"] == 1, "the others had nothing to do"
    del session
    assert "workspaces" not in grown(before)


def test_a_run_gives_back_what_another_session_does_not_use(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    idle, busy = make_session(add_model(W)), make_session(add_model(W + 1))
    before = counts()
    x = array(2000, 1000)
    want = idle.run(None, {"x": x})[0]
    assert grown(before)["block_bytes"] >= x.nbytes
    with quiet(0):
        busy.run(None, {"x": x[:1]})
        assert grown(before) == {}, "neither has anything left"
    np.testing.assert_array_equal(idle.run(None, {"x": x})[0], want)


def test_usually_nothing_is_given_back_soon(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    session = make_session(add_model(W))
    session.run(None, {"x": array(2000, 1000)})
    before = counts()
    for _ in range(20):
        session.run(None, {"x": array(1, 1000)})
    assert grown(before) == {}


def test_an_arena_that_was_too_large_for_a_while_shrinks(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    session = make_session(add_model(W))
    before = counts()
    large, small = array(4000, 1000), array(800, 1000)
    session.run(None, {"x": large})
    assert grown(before)["block_bytes"] >= large.nbytes
    with quiet(200):  # longer than two runs take, shorter than the pause
        time.sleep(0.3)
        session.run(None, {"x": large})
        session.run(None, {"x": small})
        time.sleep(0.3)
        session.run(None, {"x": small})
        time.sleep(0.3)
        session.run(None, {"x": small})
    assert grown(before).get("block_bytes", 0) < large.nbytes / 2
    for x in (small, large, small):
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, W))


def test_runs_while_memory_is_given_back(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    sessions = [make_session(add_model(W), threads=1 + i % 2) for i in range(3)]
    before = counts()
    with quiet(0):
        for rows in (1, 700):
            with ThreadPoolExecutor(3) as pool:
                list(pool.map(lambda session, rows=rows: crowd(session, 3, rows), sessions))
    with quiet(0):
        sessions[0].run(None, {"x": array(1, 1000)})
    assert "workspaces" not in grown(before)


@pytest.mark.parametrize("shapes", [2000])
def test_memory_is_flat_over_shapes(planner: FakePlanner, make_session: Any, shapes: int) -> None:
    planner.decide = lambda raw: [relu_island(raw, cost=PARALLEL)]
    session = make_session(relu_model())
    session.run(None, {"x": array(shapes, 4)})
    before = counts()
    for rows in range(shapes):
        x = array(rows, 4, seed=rows)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], relu_answer(x))
    assert grown(before) == {}


def test_memory_is_flat_over_sessions(planner: FakePlanner, make_session: Any) -> None:
    planner.decide = lambda raw: [add_island(raw)]
    before = counts()
    x = array(3, 1000)
    for i in range(200):
        session = make_session(add_model(W + i % 50), threads=1)
        np.testing.assert_array_equal(session.run(None, {"x": x})[0], add_answer(x, W + i % 50))
    assert grown(before)["sessions"] == 1, "the counters count"
    del session
    assert grown(before) == {}


def wanting(raw: RawGraph, bytes_per_row: int) -> Island:
    """Relu through a temporary that has nothing to do with the sizes of inputs and outputs."""
    island = relu_island(raw)
    a = Alternative()
    rows, four = a.dim(0, 0), a.const(4)
    a.output_dims(rows, four)
    n = a.op("mul", rows, four)
    units = a.op("ceildiv", n, a.const(16))
    between = a.buffer(ARENA, size=a.op("mul", rows, a.const(bytes_per_row)), first=0, last=1)
    a.step(NUMBER["relu"], [a.input(0), between], [n], units)
    a.step(NUMBER["relu"], [between, a.output(0)], [n], units)
    island.alternatives = [a]
    return island


@pytest.mark.parametrize("bytes_per_row", [1 << 45, 1 << 60], ids=["2^45", "2^60"])
def test_a_temporary_that_no_machine_has_room_for(planner: FakePlanner, make_session: Any, bytes_per_row: int) -> None:
    planner.decide = lambda raw: [wanting(raw, bytes_per_row)]
    session = make_session(relu_model())
    before = counts()
    for _ in range(2):
        with pytest.raises(Exception, match=r"XyntraEP: there was no memory for .*tempora.* of \d+ bytes"):
            session.run(None, {"x": array(7, 4)})
        assert grown(before).keys() <= {"workspaces"}
    x = array(0, 4)
    np.testing.assert_array_equal(session.run(None, {"x": x})[0], x)


@pytest.mark.parametrize(("columns", "why"), [(1 << 45, "output 'y': .*[Ff]ailed to allocate"), (1 << 62, "more bytes than")])
def test_an_output_that_no_machine_has_room_for(planner: FakePlanner, make_session: Any, columns: int, why: str) -> None:
    """ONNX Runtime allocates it; which, is in the message."""

    def decide(raw: RawGraph) -> list[Island]:
        node = node_of(raw, "Relu")
        a = Alternative()
        a.output_dims(a.dim(0, 0), a.const(columns))
        a.step(NUMBER["fill"], [a.output(0)], [a.const(0), a.const(0)])
        (y,) = names(raw, node.outputs)
        return [Island("wide", [node.id], [Tensor("x", rank=2)], [Tensor(y, rank=2)], [a])]

    planner.decide = decide
    graph = model([helper.make_node("Relu", ["x"], ["y"])], [tensor("x", ["N", "M"])], [tensor("y", ["N", "M"])])
    session = make_session(graph)
    before = counts()
    for _ in range(2):
        with pytest.raises(Exception, match=why):
            session.run(None, {"x": array(3, 4)})
        assert grown(before).keys() <= {"workspaces"}
    empty = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(array(0, 4))})[0]
    assert empty.shape() == [0, columns]


CHILD = """
import resource, sys
from pathlib import Path
import numpy as np, onnx, onnxruntime as ort
import xyntra_ep
from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import BODIES
from tests.native.plans.manifest_builder import compile_kernel
from tests.native.plans.models import *
from xyntra_ep.provider import callback, registration
folder = Path(sys.argv[1])
kernels = [compile_kernel(folder, name, BODIES[name]) for name in BODIES]
planner = FakePlanner(folder, kernels, lambda raw: [add_island(raw)])
attached = callback.make_callback(registration.library(), planner)
registration.attach(registration.library(), attached)
ort.set_default_logger_severity(4)
def session(w):
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    return ort.InferenceSession(add_model(w).SerializeToString(), settings, providers=["XyntraEP"], enable_fallback=0)
w = np.arange(1000, dtype=np.float32)
serving = session(w)
x = np.ones((16_000, 1000), np.float32)  # 64 MB, as the output and the temporary
y = np.empty_like(x)
def run():
    binding = serving.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    serving.run_with_iobinding(binding)
    return np.array_equal(y[:9], add_answer(x[:9], w))
large = np.ones(20_000_000, np.float32)  # 80 MB that the user keeps
given = ort.OrtValue.ortvalue_from_numpy(large)
shapeless = add_model(w)
external = onnx.TensorProto(name="w", data_type=1, dims=[len(large)], data_location=onnx.TensorProto.EXTERNAL)
external.external_data.add(key="location", value="nowhere")
shapeless.graph.initializer[0].CopyFrom(external)
for value in (shapeless.graph.input[0], shapeless.graph.output[0]):
    value.type.tensor_type.shape.dim[1].dim_value = len(large)
settings = ort.SessionOptions()
settings.intra_op_num_threads = 1
settings.add_external_initializers(["w"], [given])
def large_session():
    return ort.InferenceSession(shapeless.SerializeToString(), settings, providers=["XyntraEP"], enable_fallback=0)
large_session()
def limit(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))
# ONNX Runtime has a copy of the weights before we pack them.
for attempt, more in ((run, 32 << 20), (large_session, 120 << 20)) * 2:
    limit(more)
    try:
        attempt()
    except Exception as error:
        print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(run())
"""


WEIGHTS = "the packed weights of a session of 80000064"


def test_a_process_with_little_address_space(tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False)
    assert child.returncode == 0, child.stderr
    *failed, last = child.stdout.splitlines()
    for line, what in zip(failed, ("the temporaries of island 'add' of 64000064", WEIGHTS) * 2, strict=True):
        assert f"there was no memory for {what} bytes" in line
        assert line.endswith("the session can go on") is what.startswith("the temporaries"), "without weights there is none yet"
    assert last == "True", "the session goes on as soon as there is memory"
