"""`xyntra top` at a process that serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.diagnostics.trace.chrome import check, spans
from xyntra_ep.cli import main
from xyntra_ep.diagnostics.trace.ring import Ring, traced_processes
from xyntra_ep.errors import XyntraError

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]
Capture = pytest.CaptureFixture[str]

SERVER = """
import sys, time
import numpy as np, onnxruntime as ort, xyntra_ep
settings = ort.SessionOptions()
settings.intra_op_num_threads = 2
settings.log_severity_level = 3
session = ort.InferenceSession(sys.argv[1], settings, providers=[("XyntraEP", {"claim": "all"}), "CPUExecutionProvider"])
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    session.run(None, {"x": np.ones((512, 64), np.float32)})
print("served")
"""


@pytest.fixture
def server(mlp: Path) -> Iterator[int]:
    """A process that serves for a minute at most."""
    environment = {**os.environ, "XYNTRA_TRACE": "live"}
    child = subprocess.Popen([sys.executable, "-c", SERVER, str(mlp), "60"], env=environment, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                if Ring.of_process(child.pid).now > 1000:
                    break
            except XyntraError:
                pass
            assert time.monotonic() < deadline and child.poll() is None
            time.sleep(0.05)
        yield child.pid
    finally:
        child.kill()
        child.wait()


def test_json_of_a_process(server: int, tmp_path: Path, capsys: Capture) -> None:
    record = tmp_path / "seen.json"
    assert main(["top", str(server), "--json", "--count", "2", "--interval", "0.5s", "--record", str(record)]) == 0
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert last["pid"] == server and last["runs"] > first["runs"] > 0 and 0 < last["p50_ns"] <= last["p99_ns"]
    assert last["runs_a_second"] == pytest.approx(last["runs"] / last["seconds"], rel=0.01)
    assert last["threads"] == 2 and last["sessions"] == 1 and last["failed_runs"] == 0
    assert last["memory"]["resident_bytes"] > last["memory"]["weights_bytes"] > 4 * 2 * 64 * 256
    named = {node for kernel in last["kernels"] for node in kernel["nodes"]}
    assert any("fc1" in node for node in named) and any("fc2" in node for node in named)
    assert sum(kernel["share"] for kernel in last["kernels"]) == pytest.approx(1) and last["kernels"][0]["of_ceiling"] > 0
    document = json.loads(record.read_text())
    check(document)
    assert len(spans(document, "run")) == pytest.approx(last["runs"], abs=last["runs"] // 2)
    assert server in traced_processes()


def test_the_view(server: int, capsys: Capture) -> None:
    assert main(["top", str(server), "--count", "1", "--interval", "0.3s"]) == 0
    out = capsys.readouterr().out
    assert f"process {server}" in out and "runs/s" in out and "p99" in out and "gemm" in out and "2 threads" in out


def test_a_command_is_started_with_it_and_its_status_is_ours(mlp: Path, capsys: Capture) -> None:
    ends_badly = SERVER + "sys.exit(7)\n"
    assert main(["top", "--json", "--interval", "0.3s", "--", sys.executable, "-c", ends_badly, str(mlp), "1"]) == 7
    said = capsys.readouterr()
    assert json.loads(said.out.splitlines()[-1])["runs"] > 0 and "served" in said.err


def test_a_command_that_has_no_session(capsys: Capture) -> None:
    assert main(["top", "--json", "--", sys.executable, "-c", "raise SystemExit(3)"]) == 1
    assert "ended without a session of XyntraEP. its exit status was 3" in capsys.readouterr().err
    assert main(["top", "--json", "--", "/no/such/program"]) == 2
    assert "/no/such/program: cannot be started: No such file or directory" in capsys.readouterr().err


def test_a_process_that_does_not_trace(capsys: Capture) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert main(["top", str(child.pid), "--json"]) == 1
    finally:
        child.kill()
        child.wait()
    assert f"process {child.pid}: is not traced. start it with XYNTRA_TRACE=live" in capsys.readouterr().err


def test_without_rich_there_is_json(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    assert main(["top", "1"]) == 2
    assert "the live view needs rich. pip install 'xyntra-ep[bench]', or `--json`" in capsys.readouterr().err


def test_nothing_to_look_at(capsys: Capture) -> None:
    assert main(["top", "1", "--json", "--count", "0"]) == 2
    assert "there is nothing to look at" in capsys.readouterr().err
