"""Sessions with the provider, and what its planner was asked meanwhile.

session = planned(model, {"min_island": "2"})
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import onnxruntime as ort

import xyntra_ep
from xyntra_ep import knobs
from xyntra_ep.provider import callback, registration
from xyntra_ep.provider.graph_buffer import RawGraph
from xyntra_ep.provider.planner import plan_graph
from xyntra_ep.tracea.planning.manifest_reader import ReadManifest, read_manifest
from xyntra_ep.tracea.runtime.cache_root import PLANS


def planned(
    model: onnx.ModelProto, options: Mapping[str, str] | None = None, *, level: Any = None, threads: int = 1
) -> ort.InferenceSession:
    """A session that claims everything unless told otherwise; what ONNX Runtime would try instead is an error."""
    xyntra_ep.register()
    settings = ort.SessionOptions()
    settings.log_severity_level = 3
    settings.intra_op_num_threads = threads
    if level is not None:
        settings.graph_optimization_level = level
    providers = [("XyntraEP", {"claim": "all", **(options or {})}), "CPUExecutionProvider"]
    return ort.InferenceSession(model.SerializeToString(), settings, providers=providers, enable_fallback=0)


@dataclass
class Planned:
    """Graphs that the planner was given, and its answers."""

    graphs: list[RawGraph] = field(default_factory=list)
    answers: list[ReadManifest] = field(default_factory=list)

    def __call__(self, raw: RawGraph, digest: str) -> bytes:
        answer = plan_graph(raw, digest)
        self.graphs.append(raw)
        self.answers.append(read_manifest(answer))
        return answer

    @property
    def calls(self) -> int:
        return len(self.graphs)

    def reasons(self, call: int) -> dict[str, str]:
        """Why what was left was left, by op type."""
        return {d["op_type"]: d["reason"] for d in json.loads(self.answers[call].report)["declined"]}

    def claimed(self, call: int) -> int:
        return sum(len(i.nodes) for i in self.answers[call].islands)


@contextmanager
def watched_planner() -> Iterator[Planned]:
    """The real planner, watched; plans of earlier sessions are forgotten."""
    forget_plans(knobs.current().cache_root)
    watched = Planned()
    library = registration.library()
    registration.attach(library, callback.make_callback(library, watched))
    try:
        yield watched
    finally:
        registration.attach(library, callback.make_callback(library))


def forget_plans(cache: Path) -> None:
    """Kernels stay, plans are made anew."""
    for path in (cache / PLANS).glob("*.plan"):
        path.unlink(missing_ok=True)  # another worker may be doing the same
