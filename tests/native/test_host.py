"""A C++ program loads the library without Python and carries out stored plans.

It is built with AddressSanitizer, as the examples are: its own accesses are checked, and leaks are looked for, of the library's
allocations too. The library's and the kernels' accesses are where these are built so (tests/sanitized.py).
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from tests.native.conftest import FakePlanner
from tests.native.plans.manifest_builder import Island, Plan
from tests.native.plans.models import add_answer, add_island, add_model, relu_island, relu_model
from xyntra_ep import knobs
from xyntra_ep.provider import registration
from xyntra_ep.provider.callback import make_callback
from xyntra_ep.provider.graph_buffer import RawGraph

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = next(Path(ort.__file__).parent.glob("capi/libonnxruntime.so*"), None)
LEAKS = Path(__file__).with_name("leak_suppressions.txt")
IDENTITY = ("code", "cpu", "compiler")
ADDRESS = "address,undefined"

pytestmark = [
    pytest.mark.native,
    pytest.mark.compiler("gcc"),
    pytest.mark.compiler("g++"),
    pytest.mark.skipif(RUNTIME is None, reason="this onnxruntime brings no libonnxruntime.so"),
]


@pytest.fixture(scope="session")
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("host") / "xyntra_host"
    sources = sorted(str(file) for folder in ("host", "system") for file in (ROOT / "native" / folder).glob("*.cc"))
    checks = [f"-fsanitize={knobs.current().sanitize or ADDRESS}", "-fno-sanitize-recover=all", "-g1"]
    folders = [f"-I{ROOT / 'native'}", f"-I{ROOT / 'native' / 'system'}"]
    command = ["g++", "-std=c++17", "-O1", *checks, *folders, *sources, "-o", str(program), "-ldl", "-pthread"]
    subprocess.run(command, check=True)
    return program


class Host:
    """Runs the program on a model, whose plan was made in this process under the host's identity."""

    def __init__(self, program: Path, planner: FakePlanner, make_session: Any, folder: Path) -> None:
        self.program, self.planner, self.make_session, self.folder = program, planner, make_session, folder

    def plan(self, graph: onnx.ModelProto, decide: Any) -> None:
        answers: list[bytes] = []

        def keep(raw: RawGraph) -> bytes:
            plan: Plan = self.planner.plan(decide(raw))
            plan.digest = self.planner.digests[-1]
            answers.append(plan.bytes())
            return answers[0]

        self.planner.decide = keep
        self.folder.joinpath("model.onnx").write_bytes(graph.SerializeToString())
        # As the host does it: no options file, no variables, the same options.
        library = registration.library()
        attached = make_callback(library, self.planner)
        library.xyntra_attach(attached, *(text.encode() for text in IDENTITY), b"", b"")
        self.make_session(graph, {"cache_dir": str(self.folder)})
        self.planner.store(self.folder, self.planner.digests[-1], answers[0])

    def run(self, dims: str, *more: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), str(RUNTIME), registration.get_library_path(), str(self.folder / "model.onnx")]
        command += ["--identity", *IDENTITY, "--option", "cache_dir", str(self.folder)]
        command += ["--input", "x", dims, "--output", "y", *more]
        # This process looks for leaks, as Python's cannot (docs/soundness.md).
        environment = {**os.environ, "LSAN_OPTIONS": f"suppressions={LEAKS}:print_suppressions=0"}
        if "address" in (knobs.current().sanitize or ADDRESS):
            environment["ASAN_OPTIONS"] = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "detect_leaks=1"]))
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=self.folder, env=environment)

    def numbers(self, dims: str, *more: str) -> tuple[int, np.ndarray[Any, Any]]:
        result = self.run(dims, *more)
        assert (result.returncode, result.stderr) == (0, "")
        first, *rest = result.stdout.splitlines()
        return int(first.split()[1]), np.array(rest, np.float32)


@pytest.fixture
def hosted(host: Path, planner: FakePlanner, make_session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.chdir(tmp_path)
    return Host(host, planner, make_session, tmp_path)


def given(*shape: int) -> np.ndarray[Any, Any]:
    n = int(np.prod(shape))
    return ((np.arange(n) % 17 - 8) / 4).astype(np.float32).reshape(shape)


def test_a_stored_plan_runs(hosted: Host) -> None:
    w = np.arange(300, dtype=np.float32) - 150
    hosted.plan(add_model(w), lambda raw: [add_island(raw)])
    pool, numbers = hosted.numbers("5,300", "--sessions", "2", "--repeat", "3")
    assert pool == 1200  # so the island was claimed, and both sessions share its weights
    np.testing.assert_array_equal(numbers.reshape(5, 300), add_answer(given(5, 300), w))


def test_many_threads_and_sessions(hosted: Host) -> None:
    hosted.plan(relu_model(), lambda raw: [relu_island(raw, cost=10**9)])
    arguments = ("--threads", "2", "--callers", "8", "--sessions", "3", "--repeat", "200")
    _, numbers = hosted.numbers("100,4", *arguments)
    np.testing.assert_array_equal(numbers.reshape(100, 4), -np.maximum(given(100, 4), 0))


def test_an_error_of_a_run_arrives(hosted: Host) -> None:
    def decide(raw: RawGraph) -> list[Island]:
        island = relu_island(raw)
        (alternative,) = island.alternatives
        alternative.checks.append((alternative.const(0), "never"))
        return [island]

    hosted.plan(relu_model(), decide)
    result = hosted.run("1,4")
    assert result.returncode == 1
    assert "error 2" in result.stderr and "XyntraEP: never (x [1,4]). the session can go on" in result.stderr
