"""Sessions over hand-made plans: real ONNX Runtime, a fake planner, kernels compiled by gcc."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnxruntime as ort
import pytest

from tests.native.plans import kernels as kernel_texts
from tests.native.plans.manifest_builder import Island, Kernel, Plan, compile_kernel
from xyntra_ep.provider import callback, registration
from xyntra_ep.provider.graph_buffer import RawGraph

Decide = Callable[[RawGraph], list[Island] | Plan | bytes]


@dataclass
class FakePlanner:
    """Stands in for the planner; `decide` says what to answer, everything asked is kept."""

    root: Path
    kernels: list[Kernel]
    decide: Decide = lambda raw: []
    graphs: list[RawGraph] = field(default_factory=list)
    digests: list[str] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)

    def __call__(self, raw: RawGraph, digest: str) -> bytes:
        self.graphs.append(raw)
        self.digests.append(digest)
        self.threads.append(threading.get_ident())
        answer = self.decide(raw)
        if isinstance(answer, bytes):
            return answer
        if isinstance(answer, list):
            answer = self.plan(answer)
        answer.digest = answer.digest or digest
        return answer.bytes()

    def plan(self, islands: list[Island], **more: Any) -> Plan:
        return Plan("", str(self.root), kernels=self.kernels, islands=islands, **more)

    @property
    def calls(self) -> int:
        return len(self.graphs)

    def store(self, cache: Path, digest: str, answer: bytes) -> Path:
        """Put a plan where native code looks for it."""
        folder = cache / "plans"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = folder / f"{digest}.plan"
        path.write_bytes(answer)
        path.chmod(0o600)
        return path


@pytest.fixture(scope="session")
def kernel_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Kernel]]:
    folder = tmp_path_factory.mktemp("kernels")
    return folder, [compile_kernel(folder, name, body) for name, body in kernel_texts.BODIES.items()]


@pytest.fixture
def planner(kernel_folder: tuple[Path, list[Kernel]]) -> Iterator[FakePlanner]:
    registration.register()
    fake = FakePlanner(*kernel_folder)
    library = registration.library()
    attached = callback.make_callback(library, fake)
    registration.attach(library, attached)
    yield fake
    registration.attach(library, callback.make_callback(library))


@pytest.fixture
def make_session() -> Callable[..., ort.InferenceSession]:
    def make(
        model: Any, options: dict[str, str] | None = None, *, threads: int = 0, level: Any = None, **config: str
    ) -> ort.InferenceSession:
        settings = ort.SessionOptions()
        settings.intra_op_num_threads = threads
        settings.log_severity_level = 3
        if level is not None:
            settings.graph_optimization_level = level
        for key, value in config.items():
            settings.add_session_config_entry(key.replace("__", "."), value)
        providers = [("XyntraEP", options or {}), "CPUExecutionProvider"]
        return ort.InferenceSession(model.SerializeToString(), settings, providers=providers, enable_fallback=0)

    return make
