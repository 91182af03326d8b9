"""Islands without a session (native/opened_island.h): sizes, data, threads, and what a host does wrong."""

from __future__ import annotations

import multiprocessing
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xyntra_ep.errors import ConfigError
from xyntra_ep.frameworks.graph_draft import GraphDraft
from xyntra_ep.provider.opened_graph import PlannedGraph, checked, plan_for_cpu
from xyntra_ep.provider.opened_island import OpenedIsland
from xyntra_ep.tracea.core_ir.dtypes import DType

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]

Array = NDArray[Any]
WEIGHT = np.random.default_rng(0).standard_normal((48, 32)).astype(np.float32)


@pytest.fixture(scope="module")
def product() -> PlannedGraph:
    """gelu(x @ WEIGHT), and the number of rows of x."""
    draft = GraphDraft("product")
    x = draft.input("x", DType.F32, ("rows", 48))
    draft.weights("w", DType.F32, WEIGHT.shape, WEIGHT.nbytes, lambda: WEIGHT)
    draft.output(draft.node("Relu", draft.node("MatMul", x, "w")))
    plan = plan_for_cpu(draft.graph(), checked({"claim": "all"}))
    assert not plan.declined and len(plan.members) == 1
    return plan


def _run(island: OpenedIsland, *inputs: Array, threads: int = 2, dtype: Any = np.float32) -> Array:
    shapes, addresses = tuple(array.shape for array in inputs), [array.ctypes.data for array in inputs]
    [shape] = island.output_shapes(addresses, shapes)
    out = np.full(shape, -7, dtype)
    island.run(addresses, shapes, [out.ctypes.data], threads)
    return out


def test_one_island_serves_all_sizes_and_any_number_of_threads(product: PlannedGraph) -> None:
    island = product.opened().islands[0].opened
    for rows in (1, 5, 30_000, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 48)).astype(np.float32)
        alone = _run(island, x, threads=1)
        assert np.abs(alone - np.maximum(x.astype(np.float64) @ WEIGHT, 0)).max(initial=0) < 1e-4
        assert all(np.array_equal(alone, _run(island, x, threads=n)) for n in (0, 2, 3, 16))


def test_many_threads_run_it_at_once(product: PlannedGraph) -> None:
    island = product.opened().islands[0].opened
    inputs = [np.full((300 + i, 48), i, np.float32) for i in range(6)]
    wanted = [_run(island, x, threads=1) for x in inputs]
    wrong: list[int] = []

    def runs(i: int) -> None:
        wrong.extend(i for _ in range(30) if not np.array_equal(_run(island, inputs[i], threads=3), wanted[i]))

    threads = [threading.Thread(target=runs, args=(i,)) for i in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _in_child(island: OpenedIsland, x: Array, wanted: Array) -> None:
    raise SystemExit(0 if np.array_equal(_run(island, x, threads=4), wanted) else 1)


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_child_of_the_process_computes_alone(product: PlannedGraph) -> None:
    island = product.opened().islands[0].opened
    x = np.ones((700, 48), np.float32)
    wanted = _run(island, x, threads=4)
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(island, x, wanted))
    child.start()
    child.join(60)
    assert child.exitcode == 0


def test_the_constants_are_read_while_it_is_opened(product: PlannedGraph) -> None:
    entry = product.result.islands[0]
    assert entry is not None
    mine = WEIGHT.copy()
    island = OpenedIsland(product.plan, 0, entry, [mine])
    x = np.ones((3, 48), np.float32)
    wanted = _run(island, x)
    mine[:] = 0
    assert np.array_equal(_run(island, x), wanted) and wanted.any()


def test_data_that_cannot_be_taken_is_refused() -> None:
    draft = GraphDraft("rows")
    table = draft.input("table", DType.F32, ("n", 4))
    index = draft.input("index", DType.I64, ("k",))
    draft.output(draft.node("Gather", table, index, axis=0))
    island = plan_for_cpu(draft.graph(), checked({"claim": "all"})).opened().islands[0].opened
    values = np.arange(20, dtype=np.float32).reshape(5, 4)
    assert np.array_equal(_run(island, values, np.array([4, -1, 0])), values[[4, -1, 0]])
    with pytest.raises(ConfigError, match=r"island0: .*Gather"):
        _run(island, values, np.array([5]))
    assert np.array_equal(_run(island, values, np.array([2])), values[[2]])  # the next run is as if nothing had been


@pytest.mark.parametrize("fault", ["island", "constants", "plan", "inputs", "rank", "outputs"])
def test_what_a_host_does_wrong_is_told(product: PlannedGraph, fault: str) -> None:
    entry = product.result.islands[0]
    assert entry is not None
    constants = [] if fault == "constants" else [WEIGHT]
    plan = product.plan[:-9] if fault == "plan" else product.plan
    said = {
        "island": "no such island",
        "constants": "other constants",
        "plan": "plan",
        "inputs": "other inputs",
        "rank": "rank",
        "outputs": "other outputs",
    }
    with pytest.raises(ConfigError, match=said[fault]):
        island = OpenedIsland(plan, 1 if fault == "island" else 0, entry, constants)
        x = np.ones((2, 48), np.float32)
        out = np.empty((2, 32), np.float32)
        times = 2 if fault == "inputs" else 1
        shape = (2, 48, 1) if fault == "rank" else (2, 48)
        outputs = [out.ctypes.data] * (2 if fault == "outputs" else 1)
        island.run([x.ctypes.data] * times, (shape,) * times, outputs, 1)


def test_an_island_that_goes_gives_back_its_memory(product: PlannedGraph) -> None:
    from xyntra_ep.provider import registration

    library = registration.library()
    before = library.xyntra_pool_bytes()
    entry = product.result.islands[0]
    assert entry is not None
    island = OpenedIsland(product.plan, 0, entry, [WEIGHT + 1])  # which nobody else holds
    _run(island, np.ones((3, 48), np.float32))
    assert library.xyntra_pool_bytes() >= before + WEIGHT.nbytes
    del island
    assert library.xyntra_pool_bytes() == before
