"""To trace what happens between two points of a program, or some runs of a model.

with xyntra_ep.tracing("run.json") as trace:
    session = ort.InferenceSession("model.onnx", providers=["XyntraEP", "CPUExecutionProvider"])
    session.run(None, feeds)

print(trace_model("model.onnx", Path("run.json"), runs=20))        # the same for a model, with ONNX Runtime's nodes in it
"""

from __future__ import annotations

import ctypes
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.feeds import Feeds, outputs_of, read_feeds
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.sizes import Array, Sizes
from xyntra_ep.diagnostics.trace import otel
from xyntra_ep.diagnostics.trace.activity import Activity, activity
from xyntra_ep.diagnostics.trace.ceilings import CpuCeilings
from xyntra_ep.diagnostics.trace.names import Names
from xyntra_ep.diagnostics.trace.ort_profile import OrtSpan, monotonic_start, read_profile
from xyntra_ep.diagnostics.trace.ring import Batch, Ring
from xyntra_ep.diagnostics.trace.timeline import timeline
from xyntra_ep.errors import ConfigError, XyntraError
from xyntra_ep.provider import registration
from xyntra_ep.wording import counted

RECORDS = 1 << 18  # 16 MiB; the oldest go when there are more
_EACH_STEP = 2  # what `xyntra_trace` is asked for


@dataclass(slots=True)
class Trace:
    """What is being traced. After the `with` block the file is written, and ``batch`` and ``names`` are there."""

    path: Path
    ort: list[OrtSpan] = field(default_factory=list)
    batch: Batch | None = None
    names: Names | None = None

    def take_profile(self, session: Any) -> None:
        """End ONNX Runtime's profile of a session that has one (SessionOptions.enable_profiling), and put its nodes between our
        islands. Its file stays where it is."""
        start = monotonic_start(session)
        self.ort += read_profile(Path(session.end_profiling()), start)


@contextmanager
def tracing(path: str | Path, *, records: int = RECORDS) -> Iterator[Trace]:
    """Everything that sessions of this process do meanwhile is written to ``path``: for Perfetto, which has it at
    ui.perfetto.dev. ``records``: how many are kept, a power of two; it counts for the first trace of a process. Raises
    ConfigError where the file cannot be written, XyntraError where the system has no memory for a trace."""
    target = Path(path)
    if not os.access(target.parent, os.W_OK | os.X_OK) or target.is_dir():
        raise ConfigError("the trace cannot be written there", where=str(target), hint="give a file in a folder that is there")
    registration.register()
    library = registration.library()
    before = ctypes.c_int()
    library.xyntra_trace_ring(ctypes.byref(before))
    if library.xyntra_trace(_EACH_STEP, records) < 0 or (ring := Ring.own()) is None:
        raise XyntraError("there is no memory for it", where="trace", hint="records wants a power of two from 16 to 16777216")
    trace, since = Trace(target), ring.now
    try:
        yield trace
    finally:
        library.xyntra_trace(0, 0)
        if before.value:
            library.xyntra_trace(before.value, records)
        trace.batch, trace.names = ring.read(since), Names.of(ring.texts())
        write(trace.path, ring, trace.batch, trace.names, trace.ort)


def write(path: Path, ring: Ring, batch: Batch, names: Names, ort: Sequence[OrtSpan] = ()) -> None:
    """A file for Perfetto; and spans for OpenTelemetry, where that is set up."""
    found = timeline(batch, names, pid=ring.pid, ceilings=CpuCeilings.here(), ort=ort, lost=batch.lost)
    found.write(path)
    otel.emit(batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedModel:
    """``seconds``: what the runs took together."""

    path: Path
    activity: Activity
    lost: int
    nodes_of_ort: int
    measured_ceilings: bool

    def __str__(self) -> str:
        a = self.activity
        lines = [f"{counted(a.runs, 'run')}, p50 {_us(a.p50_ns)}, p99 {_us(a.p99_ns)}, {counted(a.threads, 'thread')}"]
        lines.append(f"{'kernel':<34} {'share':>6} {'time us':>9} {'GFLOP/s':>8} {'GB/s':>7} {'ceiling':>8}  nodes")
        for k in a.kernels:
            ceiling = "-" if k.of_ceiling is None else f"{k.of_ceiling:.0%}"
            figures = f"{k.share:>6.1%} {k.ns / max(k.calls, 1) / 1e3:>9.1f} {k.gflops:>8.1f} {k.gbs:>7.1f} {ceiling:>8}"
            lines.append(f"{k.label[:34]:<34} {figures}  {some(k.nodes)}")
        if not self.measured_ceilings:
            lines.append("ceilings are assumed; `xyntra doctor --measure` measures this machine's")
        if self.lost:
            lines.append(f"the oldest {counted(self.lost, 'record')} were lost: trace fewer runs")
        lines.append(f"written to {self.path}: open it in ui.perfetto.dev")
        return "\n".join(lines)


def _us(ns: int | None) -> str:
    return "-" if ns is None else f"{ns / 1e3:.1f} us"


def some(nodes: Sequence[str]) -> str:
    """The first of them."""
    return ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


def trace_model(
    model: str | Path,
    path: Path,
    *,
    runs: int = 10,
    threads: int = 0,
    feeds: Mapping[str, Array | Path] | Path | None = None,
    options: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> TracedModel:
    """Create a session of ``model``, run it so many times, once more before that, and write all of it to ``path``. Inputs that
    are not given are made up, as for `compare`. Raises ConfigError for what cannot be opened or does not run."""
    if runs < 1:
        raise ConfigError(f"runs={runs} is none", where="trace", hint="it wants an integer of at least 1")
    given = dict(options or {})
    if "trace" in given:
        raise ConfigError("trace is what happens anyway", where="trace", hint="leave the option out; -o names the file")
    with tempfile.TemporaryDirectory() as folder:
        with tracing(path) as trace:
            session = open_session(model, given, threads=threads, profile_to=Path(folder) / "ort")
            arrays = read_feeds(session, feeds or {})
            known = Sizes.of(session, sizes or {}, arrays, shapes or {})
            made = Feeds(session=session, given=arrays, sizes=known, seed=seed)
            outputs_of(session, made, "the model does not run")
            names, values = [o.name for o in session.get_outputs()], made.feeds
            for _ in range(runs):
                session.run(names, values)
            trace.take_profile(session)
        assert trace.batch is not None and trace.names is not None
    ceilings = CpuCeilings.here()
    warm = _without_first_run(trace.batch)
    return TracedModel(
        path=path,
        activity=activity([warm], trace.names, seconds=0.0, ceilings=ceilings),
        lost=trace.batch.lost,
        nodes_of_ort=len({span.name for span in trace.ort if span.category == "node"}),
        measured_ceilings=ceilings.is_measured,
    )


def _without_first_run(batch: Batch) -> Batch:
    """Records up to that of the first run are of creating the session and of warming it up."""
    first = next((i for i, record in enumerate(batch) if record.kind.name == "RUN"), -1)
    return Batch(words=batch.words[first + 1 :], next=batch.next, lost=batch.lost)
