"""Kernels that take the place of others while a session runs (native/first_run/successors.h), over hand-made plans."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import NUMBER
from tests.native.plans.manifest_builder import Kernel, Plan, compile_kernel
from tests.native.plans.models import relu_answer, relu_island, relu_model
from xyntra_ep.diagnostics.kernel_times import take_rows
from xyntra_ep.provider import registration
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.trusted_file import seal

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]

LOOK_S = 1.1  # an island looks for files once a second
PLUS_ONE = """
    const float *x = b[0]; float *y = b[1];
    for (int64_t i = begin * 16; i < end * 16 && i < p[0]; i++) y[i] = (x[i] > 0 ? x[i] : 0) + 1;"""
TWO_PARAMS = PLUS_ONE + "(void)p[1];"

Run = Callable[[], NDArray[np.float32]]


@dataclass
class Setting:
    """A session over a Relu whose successor adds 1, so that one sees which of them ran."""

    planner: FakePlanner
    made: Kernel
    compiled: bytes
    place: Path
    make_session: Any

    def publish(self, data: bytes | None = None, mode: int = 0o700) -> None:
        """Rename it to its place, as the cache does; sealed, if nothing else is given."""
        part = self.place.with_suffix(".part")
        part.write_bytes(seal(self.compiled) if data is None else data)
        part.chmod(mode)
        part.rename(self.place)

    def plan(self, raw: RawGraph) -> Plan:
        kernels = list(self.planner.kernels)
        kernels[NUMBER["relu"]] = replace(kernels[NUMBER["relu"]], successor=str(self.place), successor_symbol=self.made.symbol)
        return Plan("", str(self.planner.root), kernels=kernels, islands=[relu_island(raw, cost=100_000)])

    def session(self, **more: Any) -> Run:
        self.planner.decide = self.plan
        session = self.make_session(relu_model(), threads=2, **more)

        def run(rows: int = 5) -> NDArray[np.float32]:
            x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
            y: NDArray[np.float32] = session.run(None, {"x": x})[0]
            differs: NDArray[np.float32] = y - relu_answer(x)  # -1 for the successor, since a Neg follows
            return differs

        return run


def _setting(planner: FakePlanner, make_session: Any, folder: Path, body: str = PLUS_ONE) -> Setting:
    built = folder / "built"
    built.mkdir()
    made = compile_kernel(built, "after", body)
    return Setting(planner, made, (built / made.path).read_bytes(), folder / "successor.so", make_session)


@pytest.fixture
def setting(planner: FakePlanner, make_session: Any, tmp_path: Path) -> Setting:
    return _setting(planner, make_session, tmp_path)


def test_a_run_goes_on_with_the_successor(setting: Setting) -> None:
    run = setting.session()
    assert not run().any()
    time.sleep(LOOK_S)
    assert not run().any()
    setting.publish()
    time.sleep(LOOK_S)
    assert np.allclose(run(), -1)
    setting.place.unlink()  # it is looked for no more
    time.sleep(LOOK_S)
    assert np.allclose(run(), -1)


def test_the_profile_names_what_has_run(setting: Setting) -> None:
    """Not what the plan has in its place: before and after the exchange are rows of their own."""
    run, library = setting.session(), registration.library()
    library.xyntra_profile(1)
    try:
        run()
        setting.publish()
        time.sleep(LOOK_S)
        run()
        run()
    finally:
        library.xyntra_profile(0)
    calls = [(row["kernel"], row["calls"]) for row in take_rows(library)]
    general = calls[0][0]
    assert general != setting.made.symbol and {(general, 1), (setting.made.symbol, 2)} <= set(calls)


def test_it_looks_once_a_second(setting: Setting) -> None:
    run = setting.session()
    began = time.monotonic()
    run()
    setting.publish()
    calls = 0
    while not run().any():
        calls += 1
        assert time.monotonic() < began + 30
    assert calls > 20, "not at each run"


def test_what_is_there_serves_the_first_run(setting: Setting) -> None:
    setting.publish()
    assert np.allclose(setting.session()(), -1)


def _cut(data: bytes) -> bytes:
    return data[:-1]


def _flipped(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("damage", [_cut, _flipped, lambda data: data[:-46], lambda data: b""])
def test_a_damaged_one_is_refused(setting: Setting, damage: Callable[[bytes], bytes]) -> None:
    run = setting.session()
    setting.publish(damage(seal(setting.compiled)))
    time.sleep(LOOK_S)
    assert not run().any()
    setting.publish()
    time.sleep(LOOK_S)
    assert not run().any(), "it is tried once"


def test_one_that_others_may_write_is_refused(setting: Setting) -> None:
    run = setting.session()
    setting.publish(mode=0o722)
    time.sleep(LOOK_S)
    assert not run().any()


def test_one_that_takes_something_else_is_refused(planner: FakePlanner, make_session: Any, tmp_path: Path) -> None:
    setting = _setting(planner, make_session, tmp_path, TWO_PARAMS)
    setting.publish()
    assert not setting.session()().any()


def test_runs_at_the_time_have_one_or_the_other(setting: Setting) -> None:
    run: Any = setting.session()
    mixed: list[Any] = []
    seen: set[float] = set()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            found = np.unique(np.round(run(4000)))
            seen.update(found.tolist())
            if len(found) != 1:
                mixed.append(found)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    setting.publish()
    time.sleep(2 * LOOK_S)
    stop.set()
    for thread in threads:
        thread.join()
    assert not mixed and seen == {0.0, -1.0}
    assert np.allclose(run(4000), -1)


def test_a_stored_plan_waits_for_its_successors(setting: Setting, tmp_path: Path) -> None:
    options = {"cache_dir": str(tmp_path / "cache")}
    setting.session(options=options)
    assert setting.planner.calls == 1
    plan = setting.plan(setting.planner.graphs[0])
    plan.digest = setting.planner.digests[0]
    setting.planner.store(tmp_path / "cache", plan.digest, plan.bytes())
    setting.session(options=options)
    assert setting.planner.calls == 2, "somebody has to compile them"
    setting.publish(_flipped(seal(setting.compiled)))
    setting.session(options=options)
    assert setting.planner.calls == 3
    setting.publish()
    run = setting.session(options=options)
    assert setting.planner.calls == 3
    assert np.allclose(run(), -1)
