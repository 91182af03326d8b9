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
from xyntra_ep.provider import registration
from xyntra_ep.tracea import AutoTuner, Budget, TuningCache, backends, named_problem
from xyntra_ep.tracea.interface import Context
from xyntra_ep.tracea.optimizer.search import Exhaustive
from xyntra_ep.tracea.runtime.hashing import hash128_of

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


def test_its_kernels_can_be_tuned(fake: FakeCuda, tmp_path: Path) -> None:
    """By the same tuner, in the same process of trials."""
    [backend] = [b for b in backends.BACKENDS if b.name == "fake"]
    assert isinstance(backend, backends.DeviceBackend)
    context = Context(cache_dir=tmp_path, hash128=hash128_of(registration.library()), device=backend.target())
    tuner = AutoTuner(context, search=lambda space, seeds, seed: Exhaustive(space, seeds=seeds, seed=seed))
    result = tuner.optimize(named_problem("gemm", m=70, n=72, k=40), Budget(trials=6))
    assert len(result.trials) == 6 and {trial.problem for trial in result.trials} == {""}
    assert result.question.device == context.device_identity and result.question.threads == 1
    assert TuningCache.load(tmp_path, context.machine_class, trials=True).find(result.question) == result


def test_without_its_file_nobody_knows_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"backend='fake' is not valid. allowed: auto, cpu, cuda, hip, metal, opencl, webgpu"):
        options.parse({"backend": "fake"})
