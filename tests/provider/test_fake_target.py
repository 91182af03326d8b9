"""A target is one file: with it in the folder, option, session, doctor and reports know it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from tests.provider.devices.test_cuda_backend import model, rows
from tests.support import fake_target
from tests.support.fake_cuda import FakeCuda
from xyntra_ep import explain, options
from xyntra_ep.diagnostics.machine import doctor
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea import backends
from xyntra_ep.tracea.interface import Context

pytestmark = [pytest.mark.native, pytest.mark.compiler("cc")]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeCuda]:
    """Its file among the others, and a driver for it."""

    def forget() -> None:
        backends.BACKENDS._rows = None
        options.rows.cache_clear()

    driver = FakeCuda(monkeypatch, tmp_path_factory.mktemp("cuda"))
    monkeypatch.setattr(backends, "__path__", [*backends.__path__, str(Path(fake_target.__file__).parent)])
    forget()
    yield driver
    monkeypatch.undo()
    forget()


def session(cache: Path, **given: str) -> ort.InferenceSession:
    providers = [("XyntraEP", {"cache_dir": str(cache), **given}), "CPUExecutionProvider"]
    return ort.InferenceSession(model(), providers=providers, enable_fallback=0)


def test_a_session_runs_on_it(fake: FakeCuda, tmp_path: Path) -> None:
    made = session(tmp_path, backend="fake")
    (graph,) = explain(made).graphs
    assert graph.device == "CUDA / Simulated GPU / sm_80 / driver 12.8" and graph.claimed == len(graph.nodes)
    launched = fake.count("GraphLaunch")
    wanted = ort.InferenceSession(model(), providers=["CPUExecutionProvider"]).run(None, rows(5))[0]
    np.testing.assert_allclose(made.run(None, rows(5))[0], wanted, rtol=0, atol=2e-6)
    assert fake.count("GraphLaunch") > launched, "it ran there"
    assert list(tmp_path.rglob("*.fake")), "its compiler made the kernels"


def test_everybody_who_lists_targets_lists_it(fake: FakeCuda, tmp_path: Path) -> None:
    [row] = [row for row in options.rows() if row.name == "backend"]
    assert "fake" in row.values and "`fake` : a target of tests" in row.doc
    assert "fake       CUDA / Simulated GPU / sm_80 / driver 12.8: works" in str(doctor(cache_dir=tmp_path / "doctor"))
    plan = Context(cache_dir=tmp_path).plan_kernel("gemm", m=64, n=64, k=64, backend="fake")
    assert (plan.backend, plan.device) == ("fake", "a fake")


def test_without_its_file_nobody_knows_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"backend='fake' is not valid. allowed: auto, cpu, cuda, opencl"):
        options.parse({"backend": "fake"})
