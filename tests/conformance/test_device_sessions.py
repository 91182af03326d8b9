"""The zoo through sessions on the devices that the machine has, against ONNX Runtime: what a user of ``backend`` gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest

from xyntra_ep import explain
from xyntra_ep.tracea.backends import DeviceTarget
from xyntra_ep.tracea.interface import trials
from xyntra_zoo import ZooModel, model_path, zoo

pytestmark = [pytest.mark.native]

CASES = [
    ("opencl", "fp32", 1e-4),
    ("webgpu", "fp32", 1e-4),
    ("cuda", "fp32", 1e-4),
    ("cuda", "bf16", 2e-2),
    ("cuda", "fp16", 2e-2),
    ("cuda", "tf32", 5e-3),
]
# A driver that compiles for a CPU takes its time: these are quick enough for every day.
QUICK = frozenset({"gpt2-decode-tiny", "vit-tiny16-tiny"})
FLOAT = [model for model in zoo if not model.float_model]  # GPU kernels compute no quantised ones
_LENGTH = 32  # of sequences: kernels are the same for all, and a CPU is slow at work that is cut for GPUs


def parameters() -> list[Any]:
    found: list[Any] = []
    for backend, precision, max_err in CASES:
        for model in FLOAT:
            whole = backend == "opencl" and not model.tiny and not model.generates  # at batch 1
            every_day = model.name in QUICK or whole or (backend == "cuda" and model.tiny)
            marks = [pytest.mark.device(backend), *([] if every_day else [pytest.mark.slow])]
            found.append(pytest.param(model, backend, precision, max_err, id=f"{model.name}-{backend}-{precision}", marks=marks))
    return found


TRIED: list[str] = []  # devices, as often as their kernels' trials were made


@pytest.fixture
def cache(device_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One for all of these tests: a device's trials are made with its first session, and a kernel is compiled once."""
    try_all = trials.try_all

    def counted(target: DeviceTarget, *more: Any) -> trials.Outcome:
        TRIED.append(target.identity)
        return try_all(target, *more)

    monkeypatch.setattr(trials, "try_all", counted)
    yield device_cache
    assert len(TRIED) == len(set(TRIED)), "trials were made again"


@pytest.mark.parametrize(("model", "backend", "precision", "max_err"), parameters())
def test_session(model: ZooModel, backend: str, precision: str, max_err: float, cache: Path) -> None:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    options = {"backend": backend, "precision": precision, "cache_dir": str(cache)}
    providers = [("XyntraEP", options), "CPUExecutionProvider"]
    session = ort.InferenceSession(str(model_path(model)), settings, providers=providers, enable_fallback=0)
    for graph in explain(session).graphs:
        assert graph.device and all("the device binds" in why for why in (d.reason for d in graph.declined)), graph
    feeds = model.feeds(1, min((_LENGTH, *model.seqs)) if model.seqs else 1, 0)
    wanted = ort.InferenceSession(str(model_path(model)), settings, providers=["CPUExecutionProvider"]).run(None, feeds)
    for _ in range(2 if model.tiny else 1):  # the second run has nothing left to prepare
        for ours, theirs in zip(session.run(None, feeds), wanted, strict=True):
            assert np.abs(ours - theirs).max() <= max_err * np.abs(theirs).max()
