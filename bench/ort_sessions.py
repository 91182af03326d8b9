"""Sessions of ONNX Runtime, with any provider: one it brings along or one that a plugin registers."""

from __future__ import annotations

import gc
import importlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

from xyntra_bench.contenders import BASELINE, CPU_BACKEND, FP32, OPENVINO, PLUGINS, TORCH, Contender, did_you_mean
from xyntra_bench.errors import BenchError, Unavailable
from xyntra_bench.inside import look_inside, repetitions
from xyntra_bench.known import give_known
from xyntra_bench.results import Inside, Placement
from xyntra_bench.setups import Setup
from xyntra_bench.stderr import Captured, stderr_captured

if TYPE_CHECKING:  # `sessions` imports this module when it is asked for
    from xyntra_bench.sessions import Feeds, FixedShapes, Session

MEASURED = "planned by the ceilings that `xyntra doctor --measure` keeps, as sessions here are"
WARNING, ERROR = 2, 3  # of ONNX Runtime's log
# Pool threads spin while a session runs, and not between its runs: there several sessions share a process, and the threads of
# the one that had its turn would take the cores of the one that has it (two equal sessions came out 2x apart).
STOP_SPINNING = ("session.force_spinning_stop", "1")


def register(provider: str) -> None:
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
    others = f"this runtime has {', '.join(known)}: install a build with it, or ask for another"
    every = {*ort.get_all_providers(), *known, *PLUGINS, OPENVINO, TORCH}
    near = "" if provider in every else did_you_mean(provider, every)
    hint = f"{module} says {reason}" if reason else near or others
    raise Unavailable(f"{provider}: not in onnxruntime {ort.__version__}. {hint}")


def check_options(contender: Contender) -> None:
    """Of XyntraEP: known names, values that they may have, and a device for its backend."""
    from xyntra_ep.errors import ConfigError
    from xyntra_ep.options import parse
    from xyntra_ep.tracea.backends import BACKENDS

    try:
        backend = parse({"backend": CPU_BACKEND, **contender.options}).backend
        if backend in BACKENDS:
            BACKENDS[backend].target()
    except ConfigError as error:
        raise BenchError(str(error)) from None


def check_device_backend(name: str) -> None:
    """That a backend of XyntraEP is called so, and is another than the processor."""
    from xyntra_ep.tracea.interface.devices import device_backends

    names = [backend.name for backend in device_backends()]
    if name not in names:
        raise BenchError(f"--backend '{name}': not a device's. there are {', '.join(names)}")


def available_providers() -> list[str]:
    names: list[str] = list(ort.get_available_providers())
    if hasattr(ort, "get_ep_devices"):
        names += [device.ep_name for device in ort.get_ep_devices()]
    return list(dict.fromkeys(names))


def plain_session(model: Path, *, threads: int = 0) -> Any:
    """Of the CPU provider, by default with nothing said about threads: to be asked for inputs and outputs."""
    options = ort.SessionOptions()
    options.log_severity_level = ERROR
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(model), options, providers=[BASELINE])


class OrtSession:
    """Of ONNX Runtime, with any provider."""

    def __init__(self, session: Any, provider: str) -> None:
        self._session = session
        self._run: Callable[..., Any] = session.run
        self._provider = provider

    def run(self, feeds: Feeds) -> object:
        return self._run(None, feeds)

    def outputs(self, feeds: Feeds, names: Sequence[str]) -> list[npt.NDArray[Any]]:
        return [_array(output) for output in self._run(list(names), feeds)]

    def placement(self) -> Placement | None:
        """Nodes and groups by provider; None where the runtime does not tell."""
        if not hasattr(self._session, "get_provider_graph_assignment_info"):
            return None
        nodes: Counter[str] = Counter()
        groups: Counter[str] = Counter()
        for group in self._session.get_provider_graph_assignment_info():
            nodes[group.ep_name] += len(group.get_nodes())
            groups[group.ep_name] += 1
        return Placement(nodes=_plain(nodes), groups=_plain(groups))

    def precision(self) -> str:
        return FP32 if self._provider == BASELINE else ""

    def inside(self, feeds: Feeds, run_ns: int) -> Inside | None:
        return look_inside(self._session, self._provider, partial(self._run, None, feeds), run_ns)

    def device(self) -> str:
        """Of XyntraEP, by its own records; parts of a model may run on the CPU beside."""
        if self._provider not in PLUGINS:
            return ""
        names = dict.fromkeys(graph.device or "CPU" for graph in graphs_of(self._session) if graph.islands)
        return "" if list(names) == ["CPU"] else " and ".join(names)

    def device_ns(self, feeds: Feeds, run_ns: int) -> int | None:
        if self._provider not in PLUGINS:
            return None
        from xyntra_ep.diagnostics.kernel_times import device_run_ns

        return device_run_ns(self._session, partial(self._run, None, feeds), runs=repetitions(run_ns))


class OrtFactory:
    def __init__(self, model: Path, setup: Setup, cache_dir: Path, fixed: FixedShapes | None) -> None:
        self._model = model
        self._threads = setup.threads
        self._provider = setup.contender.provider
        self._options = dict(setup.contender.options)
        self._fixed = fixed
        self.notes: tuple[str, ...] = ()
        if self._provider in PLUGINS:
            if "cache_dir" not in self._options:
                self._options["cache_dir"] = str(cache_dir)
                give_known(cache_dir)
            self._options.setdefault("backend", CPU_BACKEND)

    def create(self, *, watched: bool = False) -> tuple[Session, int]:
        if self._fixed and self._fixed.unnamed:
            raise Unavailable(
                f"{self._provider}: {self._fixed.unnamed} has a dynamic dim that cannot be fixed by name, because "
                "it has no name of its own. name it in the model"
            )
        gc.collect()
        with stderr_captured(active=watched) as captured:
            begin = time.perf_counter_ns()
            session = self._create(WARNING if watched else ERROR)
            took = time.perf_counter_ns() - begin
        if self._provider not in session.get_providers():
            raise BenchError(f"{self._provider}: the session runs on {session.get_providers()} instead")
        if watched:
            chosen = choices(graphs_of(session)) if self._provider in PLUGINS else ()
            self.notes = (*warnings_of(self._provider, captured), *chosen)
        return OrtSession(session, self._provider), took

    def _create(self, severity: int) -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.inter_op_num_threads = 1
        options.log_severity_level = severity
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        options.add_session_config_entry(*STOP_SPINNING)
        for name, size in (self._fixed.dims if self._fixed else {}).items():
            options.add_free_dimension_override_by_name(name, size)
        providers: list[Any] = [(self._provider, self._options)]
        if self._provider != BASELINE:
            providers.append(BASELINE)
        # Without the fallback: a provider that fails must fail the measurement, not be measured as the CPU.
        return ort.InferenceSession(str(self._model), options, providers=providers, enable_fallback=0)


def graphs_of(session: Any) -> Sequence[Any]:
    """What XyntraEP says of a session's graphs."""
    from xyntra_ep.diagnostics.explain import explain

    return explain(session).graphs


def choices(graphs: Sequence[Any]) -> tuple[str, ...]:
    """Where `backend=auto` computes, and why there, if no option says it; and whether figures of this machine decided what is
    taken, which another has not."""
    told = [f"backend=auto: {graph.device or 'the CPU'}, because {graph.placement}" for graph in graphs if graph.placement]
    return (*dict.fromkeys(told), *([MEASURED] if any(graph.measured for graph in graphs) else []))


def warnings_of(provider: str, captured: Captured) -> tuple[str, ...]:
    """The lines of ONNX Runtime's log that the provider wrote, without time and place.

    >>> warnings_of("XyntraEP", Captured(["2026-05-04 10:00:00.1 [W:onnxruntime:, ep.cc:7 XyntraEP] precision"]))
    ('precision',)
    """
    own = (line for line in captured.lines if provider in line and "[W:" in line)
    return tuple(dict.fromkeys(line.partition("] ")[2].removesuffix("\x1b[m") or line for line in own))


def _array(output: Any) -> npt.NDArray[Any]:
    """Of the maps that `ZipMap` makes: their values, in the order of rows and labels."""
    if isinstance(output, list) and all(isinstance(row, dict) for row in output):
        return np.array([row[label] for row in output for label in sorted(row)])
    return np.asarray(output)


def _plain(counts: Counter[str]) -> Mapping[str, int]:
    return {name: counts[name] for name in sorted(counts)}
