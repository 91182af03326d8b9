"""ONNX Runtime sessions of a contender: its provider made available, creation timed, placement read."""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from bench.errors import BenchError
from bench.plan import BASELINE, Contender
from bench.results import Placement

XYNTRA = "XyntraEP"

# Where a provider that ONNX Runtime does not bring along comes from.
PLUGINS = {XYNTRA: "xyntra_ep"}


def make_available(provider: str) -> None:
    """Import what registers the provider, and refuse to go on without it: ONNX Runtime itself only warns."""
    reason = ""
    if module := PLUGINS.get(provider):
        try:
            plugin = importlib.import_module(module)
            if hasattr(plugin, "register"):
                plugin.register()  # raises the reason that the import kept to itself
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
    known = available_providers()
    if provider in known:
        return
    hint = f"{module} says {reason}" if reason else f"this runtime has {', '.join(known)}"
    raise BenchError(f"{provider}: not in onnxruntime {ort.__version__}. {hint}")


def available_providers() -> list[str]:
    names: list[str] = list(ort.get_available_providers())
    if hasattr(ort, "get_ep_devices"):
        names += [device.ep_name for device in ort.get_ep_devices()]
    return list(dict.fromkeys(names))


class SessionFactory:
    """Creates sessions of one contender for one model, and says how long each took."""

    def __init__(self, model: Path, contender: Contender, threads: int, cache_dir: Path) -> None:
        self._model = model
        self._threads = threads
        self._provider = contender.provider
        self._options = dict(contender.options)
        if contender.provider in PLUGINS:
            self._options.setdefault("cache_dir", str(cache_dir))

    def create(self) -> tuple[Any, int]:
        """A session and the nanoseconds its creation took."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        providers: list[Any] = [(self._provider, self._options)]
        if self._provider != BASELINE:
            providers.append(BASELINE)
        gc.collect()
        begin = time.perf_counter_ns()
        # Without the fallback: a provider that fails must fail the measurement, not be measured as the CPU.
        session = ort.InferenceSession(str(self._model), options, providers=providers, enable_fallback=0)
        took = time.perf_counter_ns() - begin
        if self._provider not in session.get_providers():
            raise BenchError(f"{self._provider}: the session runs on {session.get_providers()} instead")
        return session, took


def placement(session: Any) -> Placement | None:
    """Nodes and groups by provider; None where the runtime does not tell."""
    if not hasattr(session, "get_provider_graph_assignment_info"):
        return None
    nodes: Counter[str] = Counter()
    groups: Counter[str] = Counter()
    for group in session.get_provider_graph_assignment_info():
        nodes[group.ep_name] += len(group.get_nodes())
        groups[group.ep_name] += 1
    return Placement(nodes=_plain(nodes), groups=_plain(groups))


def _plain(counts: Counter[str]) -> Mapping[str, int]:
    return {name: counts[name] for name in sorted(counts)}


if __name__ == "__main__":
    try:
        make_available(sys.argv[1])
    except BenchError as error:
        sys.exit(str(error))
