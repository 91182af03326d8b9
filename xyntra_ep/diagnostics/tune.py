"""Tuning the kernels of a model, and whether the model is faster for it.

    found = tune("model.onnx", seconds=120)      found.kernels: each with what it took before and after; found.model: the whole

The model's session is planned, its kernels are tuned the longest first (`tracea/interface/tuning/model.py`), and then two
sessions, one with what was found and one without, run in turn. If the model is slower with it, nothing of it is kept.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.explain import GraphReport, IslandReport, explain
from xyntra_ep.diagnostics.feeds import Feeds, outputs_of, read_feeds
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.sizes import Array, Sizes
from xyntra_ep.diagnostics.tuning_tables import context_of, need_search
from xyntra_ep.errors import ConfigError
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.keep import keep
from xyntra_ep.tracea.interface.tuning.model import TunedKernel, TuningRequest, asked
from xyntra_ep.tracea.interface.tuning.trial import Measured
from xyntra_ep.tracea.interface.tuning.tuner import Budget
from xyntra_ep.tracea.optimizer.interval import median_interval
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache, TuningResult, Verdict
from xyntra_ep.tracea.runtime.plan_store import forget_plans
from xyntra_ep.wording import counted, wording

_ROUNDS = 31  # of the two sessions, in turn
_ROUND_S = 0.1
_MOST_ISLANDS = 4  # that are measured beside ONNX Runtime
_MOST_RUNS = 10  # of a session in a round


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelTimes:
    """``ratio``: the run without tuning over the run with it, from ``low`` to ``high`` with 95 % confidence, over so many
    ``rounds``."""

    before_ns: float
    after_ns: float
    ratio: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        times = f"{self.before_ns / 1e6:.3g} ms before, {self.after_ns / 1e6:.3g} ms after"
        return f"{times}: {self.ratio:.3f}x ({self.low:.3f} to {self.high:.3f}, {counted(self.rounds, 'round')})"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedIsland:
    """An island by the name that explain calls it."""

    name: str
    verdict: Verdict

    def __str__(self) -> str:
        v = self.verdict
        follows = "" if v.wins else ", declined from now on" if v.loses else ", not sure: estimates decide"
        return f"{self.name}, {v.what}: {v.ratio:.3f}x with it ({v.low:.3f} to {v.high:.3f}){follows}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningReport:
    """``kept``: whether later sessions use what was found; they do not where the model is slower with it. ``dim_hints``: the
    sizes at which it was found, as the option says them; "" where none was given."""

    kernels: tuple[TunedKernel, ...]
    islands: tuple[JudgedIsland, ...] = ()
    model: ModelTimes | None
    kept: bool
    stopped: bool
    file: Path
    dim_hints: str = ""

    def __str__(self) -> str:
        if not self.kernels and not self.islands:
            return "nothing of the model is computed by kernels that can be tuned"
        lines = [f"{'kernel':<44} {'share':>6} {'before':>10} {'after':>10} {'ratio':>6} {'ceiling':>8}  variant"]
        lines += [_line(kernel) for kernel in self.kernels]
        if self.stopped:
            lines.append("stopped: what was found is kept, and a second call goes on from there")
        if self.model is not None:
            lines.append(f"the model: {self.model}")
        lines += [f"beside ONNX Runtime: {island}" for island in self.islands]
        if not self.kept:
            lines.append("the model is slower with it: nothing of it is used")
        elif any(k.result is not None and k.result.best is not None for k in self.kernels):
            lines.append(f"kept in {self.file}; sessions find it there")
            if self.dim_hints:
                lines.append(f"it counts where these sizes are usual, or half or twice of them: dim_hints={self.dim_hints}")
        return "\n".join(lines)


def _line(kernel: TunedKernel) -> str:
    name = f"{kernel.label[:38]}{f' x{kernel.count}' if kernel.count > 1 else ''}"
    head = f"{name:<44} {kernel.share:>6.1%}"
    result = kernel.result
    if result is None:
        return f"{head} {kernel.problem}"
    best = result.best or result.default
    config = " ".join(f"{name}={value}" for name, value in best.config.items())
    before, after = (f"{ns / 1e3:.4g} us" if ns else "-" for ns in (result.default.ns, best.ns))
    ceiling = f"{kernel.floor_ns / best.ns:.0%}" if best.ns and kernel.floor_ns else "-"
    what = f"{best.variant} {config}".rstrip()
    if result.best is None:
        what += f" (as before; {counted(len(result.trials), 'trial')})"
    return f"{head} {before:>10} {after:>10} {result.ratio:>5.2f}x {ceiling:>8}  {what}"


Hear = Callable[[TunedKernel, Measured, int, int], None]


def tune(
    model: str | Path,
    *,
    seconds: float = 120.0,
    trials: int | None = None,
    threads: int = 0,
    feeds: Mapping[str, Array | Path] | Path | None = None,
    options: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    hear: Hear = lambda kernel, measured, done, total: None,
) -> TuningReport:
    """Tune the kernels of ``model`` for so many ``seconds``, or with at most so many ``trials`` each.

    ``threads``: of the session, 0: as ONNX Runtime chooses; ``options``: provider options, as sessions will have them. Kernels
    are tuned for the usual sizes of symbolic dimensions (option dim_hints): those of ``feeds`` (arrays, or files as `read_feeds`
    takes them) and ``shapes``, and ``sizes``. Raises ConfigError for what cannot be opened or does not run, UnsupportedError
    without the package's extra `tune`.
    """
    given = dict(options or {})
    if "tune" in given or "deterministic" in given:
        raise ConfigError("tune and deterministic are decided here", where="tune", hint="leave them out")
    if not (seconds > 0 and (trials is None or trials > 0)):
        raise ConfigError("there is nothing to spend", where="tune", hint="give more than 0 seconds and trials")
    need_search()
    arrays, known = _asked(model, feeds or {}, sizes or {}, shapes or {})
    hints = [f"{name}={size}" for name, size in known.given.items() if size > 0 and "," not in name]  # which an option can say
    if hints:
        given["dim_hints"] = ",".join(hints)
    untuned = open_session(model, {**given, "tune": "off"}, threads=threads)
    made = Feeds(session=untuned, given=arrays, sizes=known, seed=0)
    outputs_of(untuned, made, "the model does not run", hint=f"give {wording().some_size}")
    context = context_of(given, untuned)
    results = dict(context.tuning.results)
    request = TuningRequest(
        budget=Budget(seconds=seconds, trials=trials or Budget().trials),
        threads=threads or None,
        hear=hear,
        again=True,
        stoppable=True,
        left_out=frozenset(),
    )

    def opened(asked_for: TuningRequest, tune: str = "cached") -> Any:
        forget_plans(context.root)  # which would be found, and nothing planned
        with asked(asked_for):
            return open_session(model, {**given, "tune": tune}, threads=threads)

    def without(*islands: str) -> Any:
        return opened(TuningRequest(left_out=frozenset(islands)))

    opened(request, "session")
    times = None
    kept = True
    islands: tuple[JudgedIsland, ...] = ()
    if not request.stopped:
        tuned = without()
        if any(k.result is not None and k.result.best is not None for k in request.kernels):
            times = compared(lambda: untuned.run(None, made.feeds), lambda: tuned.run(None, made.feeds))
            if times.high < 1.0:
                kept = False
                _take_back(context, request, results)
                tuned = without()
        if context.device is None and given.get("claim", "profitable") != "all":
            islands = _judged(context, tuned, without, made.feeds)
    return TuningReport(
        kernels=tuple(request.kernels),
        islands=islands,
        model=times,
        kept=kept,
        stopped=request.stopped,
        file=context.root.path / context.machine_class.file,
        dim_hints=given.get("dim_hints", ""),
    )


def _asked(
    model: str | Path, feeds: Mapping[str, Array | Path] | Path, sizes: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> tuple[Mapping[str, Array], Sizes]:
    """Inputs and sizes that the caller gave, by a session that is gone when tuning begins: its memory is another's then."""
    session = open_session(model)
    arrays = read_feeds(session, feeds)
    return arrays, Sizes.of(session, sizes, arrays, shapes)


def compared(before: Callable[[], object], after: Callable[[], object]) -> ModelTimes:
    """Two runs, in turn: of the ratios of the rounds the median, and where it lies with 95 % confidence."""
    for run in (before, after):
        run()
    begin = time.perf_counter()
    before()
    runs = max(1, min(_MOST_RUNS, int(_ROUND_S / max(1e-9, time.perf_counter() - begin))))
    rounds = []
    for number in range(_ROUNDS):
        pair = (before, after) if number % 2 == 0 else (after, before)
        taken = {run: _median_ns(run, runs) for run in pair}
        rounds.append((taken[before], taken[after]))
    ratios = [b / a for b, a in rounds]
    low, high = median_interval(ratios)
    b, a = (statistics.median(column) for column in zip(*rounds, strict=True))
    return ModelTimes(before_ns=b, after_ns=a, ratio=statistics.median(ratios), low=low, high=high, rounds=len(rounds))


def _median_ns(run: Callable[[], object], runs: int) -> float:
    """After one that is not counted: the threads of the other session may still be waiting for work."""
    run()
    times = []
    for _ in range(runs):
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times)


def _judged(context: Context, tuned: Any, without: Callable[[str], Any], feeds: Mapping[str, Any]) -> tuple[JudgedIsland, ...]:
    """The largest islands, each by the whole model without it and with it, kept for sessions."""
    found: list[JudgedIsland] = []
    tuning = TuningCache(context.machine_class)
    largest = sorted(_islands(tuned), key=lambda row: -row[1].ours_ns)[:_MOST_ISLANDS]
    for graph, island in largest:
        other = without(island.key)
        times = compared(lambda other=other: other.run(None, feeds), lambda: tuned.run(None, feeds))  # type: ignore[misc]
        kinds = ", ".join(dict.fromkeys(graph.nodes[n][0] for n in island.nodes))
        what = f"{counted(len(island.nodes), 'node')}: {kinds}"
        verdict = Verdict(what=what, ratio=times.ratio, low=times.low, high=times.high, form=island.form, sizes=island.sizes)
        tuning.islands[island.key] = verdict
        found.append(JudgedIsland(name=island.name, verdict=verdict))
    if found:
        keep(tuning, context.root)
    return tuple(found)


def _islands(session: Any) -> Iterator[tuple[GraphReport, IslandReport]]:
    for graph in explain(session).graphs:
        for island in graph.islands:
            if island.key:
                yield graph, island


def _take_back(context: Context, request: TuningRequest, known: Mapping[str, TuningResult]) -> None:
    """What was found just now, so that sessions choose as before; its trials stay, with what they took."""
    tuning = TuningCache(context.machine_class)
    for kernel in request.kernels:
        if kernel.result is not None:
            before = known.get(kernel.result.question.key)
            tuning.add(replace(kernel.result, best=before.best if before is not None else None))
    keep(tuning, context.root)
