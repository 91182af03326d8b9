"""A C++ program without Python runs compiled models where there is no compiler, no cache and no home that could be written to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.native.test_host import RUNTIME, given, host
from tests.provider.compiled.support import chain, compiled, divided, expected
from xyntra_ep import knobs
from xyntra_ep.provider import registration

__all__ = ["host"]

pytestmark = [
    pytest.mark.native,
    pytest.mark.compiler("cc"),
    pytest.mark.compiler("g++"),
    pytest.mark.skipif(RUNTIME is None, reason="this onnxruntime brings no libonnxruntime.so"),
    pytest.mark.skipif(bool(knobs.current().sanitize), reason="sanitizers want settings of theirs in the environment"),
]
NOTHING = {"PATH": "/nonexistent", "HOME": "/nonexistent"}


def run(program: Path, model: Path, dims: str, output: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(program), str(RUNTIME), registration.get_library_path(), str(model), "--input", "x", dims, "--output", output]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/", env={**NOTHING, **environment})


@pytest.mark.parametrize("embed", [True, False])
def test_it_runs(embed: bool, host: Path, tmp_path: Path) -> None:
    model = chain()
    found = compiled(model, tmp_path, embed=embed)
    tmp_path.chmod(0o500)
    result = run(host, found.path, "6,64", "y", XYNTRA_CACHE_DIR=str(tmp_path / "cache"))
    tmp_path.chmod(0o700)
    assert (result.returncode, result.stderr) == (0, "")
    pool, *numbers = result.stdout.splitlines()
    assert int(pool.split()[1]) > 0  # the weight is packed: so the island was ours
    want = expected(model, {"x": given(6, 64)})[0]
    np.testing.assert_allclose(np.array(numbers, np.float32).reshape(6, 5), want, rtol=1e-5, atol=1e-6)
    assert not (tmp_path / "cache").exists()


def test_what_onnx_runtime_keeps_runs_too(host: Path, tmp_path: Path) -> None:
    model = divided()
    result = run(host, compiled(model, tmp_path).path, "3,4", "y")
    assert (result.returncode, result.stderr) == (0, "")
    want = expected(model, {"x": given(3, 4)})[0]
    np.testing.assert_allclose(np.array(result.stdout.splitlines()[1:], np.float32), want, rtol=1e-5)


def test_what_is_not_for_the_machine_is_refused(host: Path, tmp_path: Path) -> None:
    found = compiled(chain(), tmp_path)
    model = onnx.load(found.path)
    del model.metadata_props[:]  # by which ONNX Runtime would refuse it with less to say
    onnx.save(model, tmp_path / "bare.onnx")
    for path, why in ((found.path, "not supported"), (tmp_path / "bare.onnx", "compiled for what this machine does not have")):
        result = run(host, path, "6,64", "y", XYNTRA_ISA="scalar")
        assert result.returncode == 1 and why in result.stderr


def test_python_is_not_asked_either(tmp_path: Path) -> None:
    """In a process with Python, whose planner has neither compiler nor cache."""
    found = compiled(chain(), tmp_path)
    program = (
        "import numpy as np, onnxruntime as ort, xyntra_ep\n"
        f"session = ort.InferenceSession({str(found.path)!r}, providers=['XyntraEP'])\n"
        "print(session.run(None, {'x': np.ones((2, 64), np.float32)})[0].sum())\n"
        "[graph] = xyntra_ep.explain(session).graphs\n"
        "print(graph.claimed, graph.compiled)"
    )
    installed = (entry for entry in sys.path if entry.endswith("site-packages"))
    folders = [str(Path(registration.get_library_path()).parents[1]), *installed]
    environment = {**NOTHING, "PYTHONPATH": ":".join(folders)}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/", env=environment)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.split() == ["2.0", "3", "True"]
