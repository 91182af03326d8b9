"""Threads that create sessions at once, forks, and the ways a process can end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.native.conftest import FakePlanner
from tests.native.plans.models import add_answer, add_island, add_model, relu_answer, relu_island, relu_model

pytestmark = [pytest.mark.native, pytest.mark.compiler("gcc")]
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

PRELUDE = """
import gc, os, sys, threading
from pathlib import Path
import numpy as np, onnxruntime as ort
import xyntra_ep
from tests.native.conftest import FakePlanner
from tests.native.plans.kernels import BODIES
from tests.native.plans.manifest_builder import compile_kernel
from tests.native.plans.models import *
from xyntra_ep.provider import callback, registration
folder = Path(sys.argv[1])
kernels = [compile_kernel(folder, name, body) for name, body in BODIES.items()]
planner = FakePlanner(folder, kernels, lambda raw: [relu_island(raw, cost=10**9)])
attached = callback.make_callback(registration.library(), planner)
registration.attach(registration.library(), attached)
def session(threads=1):
    settings = ort.SessionOptions()
    settings.intra_op_num_threads = threads
    return ort.InferenceSession(relu_model().SerializeToString(), settings, providers=["XyntraEP", "CPUExecutionProvider"])
x = np.linspace(-1, 1, 4000, dtype=np.float32).reshape(1000, 4)
def right(s):
    return np.array_equal(s.run(None, {"x": x})[0], relu_answer(x))
"""


def run_python(folder: Path, body: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """``before``: what runs in front of the imports."""
    code = before + PRELUDE + textwrap.dedent(body)
    return subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, timeout=120)


def test_sessions_created_at_once(planner: FakePlanner, make_session: Any) -> None:
    w = np.arange(300, dtype=np.float32)
    planner.decide = lambda raw: [add_island(raw)]
    gate = threading.Barrier(6)

    def work(seed: int) -> bool:
        gate.wait()
        session = make_session(add_model(w + seed % 2))
        x = np.full((2, 300), seed, np.float32)
        return np.array_equal(session.run(None, {"x": x})[0], add_answer(x, w + seed % 2))

    for _ in range(5):
        with ThreadPoolExecutor(6) as pool:
            assert all(pool.map(work, range(6)))
    assert planner.calls == 30
    assert threading.get_ident() not in planner.threads


def test_the_planner_may_create_a_session_itself(planner: FakePlanner, make_session: Any) -> None:
    # No lock may be held while Python plans.
    def decide(raw: Any) -> list[Any]:
        if planner.calls == 1:
            worker = threading.Thread(target=make_session, args=(relu_model(),))
            worker.start()
            worker.join(60)
            assert not worker.is_alive()
        return [relu_island(raw)]

    planner.decide = decide
    np.testing.assert_array_equal(make_session(relu_model()).run(None, {"x": X})[0], relu_answer(X))
    assert planner.calls == 2


def test_exit_with_live_sessions(tmp_path: Path) -> None:
    result = run_python(tmp_path, "keep = [session(2) for _ in range(3)]\nassert all(map(right, keep))\nprint('done')")
    assert (result.returncode, result.stdout, result.stderr) == (0, "done\n", "")


@pytest.mark.parametrize("ending", ["sys.exit(3)", "os._exit(3)", "raise SystemExit(3)"])
def test_other_endings(tmp_path: Path, ending: str) -> None:
    result = run_python(tmp_path, f"keep = session(2)\nassert right(keep)\n{ending}")
    assert (result.returncode, result.stderr) == (3, "")


def test_fork_after_creation(tmp_path: Path) -> None:
    body = """
    import warnings; warnings.simplefilter("ignore")
    keep = session(1)
    assert right(keep)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if right(keep) and right(session(1)) else 2
            finally:
                os._exit(code)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    assert right(keep)
    """
    result = run_python(tmp_path, body)
    assert (result.returncode, result.stderr) == (0, "")


def test_unregister_after_the_last_session(tmp_path: Path) -> None:
    body = """
    keep = session(1)
    assert right(keep)
    del keep; gc.collect()
    for _ in range(2):
        ort.unregister_execution_provider_library("XyntraEP")
        assert "XyntraEP" not in ort.get_available_providers()
        ort.register_execution_provider_library("XyntraEP", xyntra_ep.get_library_path())
        assert right(session(1))
        gc.collect()
    """
    result = run_python(tmp_path, body)
    assert (result.returncode, result.stderr) == (0, "")


def test_without_python_only_stored_plans_work(planner: FakePlanner, make_session: Any, tmp_path: Path) -> None:
    body = """
    import ctypes, onnxruntime as ort
    ort.register_execution_provider_library("XyntraEP", sys.argv[2])
    s = ort.InferenceSession(sys.argv[3], providers=["XyntraEP", "CPUExecutionProvider"])
    x = np.ones((2, 4), np.float32)
    assert (s.run(None, {"x": x})[0] == -1).all()
    print("quiet")
    """
    from xyntra_ep.provider.registration import get_library_path

    path = tmp_path / "model.onnx"
    path.write_bytes(relu_model().SerializeToString())
    code = "import sys, numpy as np\n" + textwrap.dedent(body)
    environment = {**os.environ, "XYNTRA_REGISTER": "0"}
    result = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), get_library_path(), str(path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "quiet\n", "")
