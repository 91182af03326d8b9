"""Tuning the kernels of a model, and whether the model is faster for it.

    found = tune("model.onnx", seconds=120)      found.kernels: each with what it took before and after; found.model: the whole

The model's session is planned, its kernels are tuned the longest first (`tracea/interface/tuning/model.py`), and then two
sessions, one with what was found and one without, run in turn. If the model is slower with it, nothing of it is kept.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.feeds import made_up
from xyntra_ep.diagnostics.sessions import open_session
from xyntra_ep.diagnostics.sizes import Sizes
from xyntra_ep.errors import ConfigError
from xyntra_ep.options import parse
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.model import TunedKernel, TuningRequest, asked
from xyntra_ep.tracea.interface.tuning.trial import Measured
from xyntra_ep.tracea.interface.tuning.tuner import Budget
from xyntra_ep.tracea.optimizer.interval import median_interval
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache, read_export
from xyntra_ep.tracea.runtime.plan_store import forget_plans
from xyntra_ep.wording import counted

_ROUNDS = 31  # of the two sessions, in turn
_ROUND_S = 0.1
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
class TuningReport:
    """``kept``: whether later sessions use what was found; they do not where the model is slower with it."""

    kernels: tuple[TunedKernel, ...]
    model: ModelTimes | None
    kept: bool
    stopped: bool
    file: Path

    def __str__(self) -> str:
        if not self.kernels:
            return "nothing of the model is computed by kernels that can be tuned"
        lines = [f"{'kernel':<44} {'share':>6} {'before':>10} {'after':>10} {'ratio':>6} {'ceiling':>8}  variant"]
        lines += [_line(kernel) for kernel in self.kernels]
        if self.stopped:
            lines.append("stopped: what was found is kept, and a second call goes on from there")
        if self.model is not None:
            lines.append(f"the model: {self.model}")
        if not self.kept:
            lines.append("the model is slower with it: nothing of it is used")
        elif any(k.result is not None and k.result.best is not None for k in self.kernels):
            lines.append(f"kept in {self.file}; sessions find it there")
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
    options: Mapping[str, str] | None = None,
    sizes: Mapping[str, int] | None = None,
    hear: Hear = lambda kernel, measured, done, total: None,
) -> TuningReport:
    """Tune the kernels of ``model`` for so many ``seconds``, or with at most so many ``trials`` each.

    ``threads``: of the session, 0: as ONNX Runtime chooses; ``options``: provider options, as sessions will have them; ``sizes``:
    usual sizes of symbolic dimensions (option dim_hints). Raises ConfigError for what cannot be opened, UnsupportedError
    without the package's extra `tune`.
    """
    given = dict(options or {})
    if "tune" in given or "deterministic" in given:
        raise ConfigError("tune and deterministic are decided here", where="tune", hint="leave them out")
    if sizes:
        given["dim_hints"] = ",".join(f"{name}={size}" for name, size in sizes.items())
    if not (seconds > 0 and (trials is None or trials > 0)):
        raise ConfigError("there is nothing to spend", where="tune", hint="give more than 0 seconds and trials")
    _need_search()
    context = _context(given)
    known = dict(context.tuning.results)
    untuned = open_session(model, {**given, "tune": "off"}, threads=threads)
    feeds = made_up(untuned, Sizes.of(untuned, dict(sizes or {}), {}), seed=0, besides={})
    forget_plans(context.root)  # which would be found, and nothing planned
    request = TuningRequest(
        budget=Budget(seconds=seconds, trials=trials or Budget().trials), threads=threads or None, hear=hear, stoppable=True
    )
    with asked(request):
        open_session(model, {**given, "tune": "session"}, threads=threads)
    times = None
    kept = True
    if any(k.result is not None and k.result.best is not None for k in request.kernels) and not request.stopped:
        forget_plans(context.root)
        tuned = open_session(model, {**given, "tune": "cached"}, threads=threads)
        times = compared(lambda: untuned.run(None, feeds), lambda: tuned.run(None, feeds))
        if times.high < 1.0:
            kept = False
            _take_back(context, request, known)
    return TuningReport(
        kernels=tuple(request.kernels),
        model=times,
        kept=kept,
        stopped=request.stopped,
        file=context.root.path / context.machine_class.file,
    )


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


def _take_back(context: Context, request: TuningRequest, known: Mapping[str, Any]) -> None:
    """What was found just now, so that sessions choose as before; its trials stay, with what they took."""
    tuning = TuningCache.load(context.root.path, context.machine_class)
    for kernel in request.kernels:
        if kernel.result is not None:
            key = kernel.result.question.key
            before = known.get(key)
            tuning.results[key] = replace(kernel.result, best=before.best if before is not None else None)
    tuning.save(context.root.path, context.root.tmp)
    forget_plans(context.root)


def export_tuning(target: Path, options: Mapping[str, str] | None = None) -> int:
    """Write what is known of this machine to a file; how many results that are."""
    context = _context(dict(options or {}))
    tuning = context.tuning
    if not tuning.results:
        raise ConfigError(tuning.problem or "there is nothing to export", where="tune", hint="run `xyntra tune` on a model first")
    try:
        tuning.write(target, target.parent)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(target)) from error
    return len(tuning.results)


def import_tuning(source: Path, options: Mapping[str, str] | None = None) -> TuningCache:
    """Take over what another machine of the same class has exported. Of two results for one op the imported one counts. Raises
    ConfigError for a file that is none, or of another class."""
    context = _context(dict(options or {}))
    found = read_export(source)
    if found.machine != context.machine_class:
        what = f"is of another class of machines ({found.machine.name})"
        raise ConfigError(what, where=str(source), hint=f"this one is {context.machine_class.name}")
    found.save(context.root.path, context.root.tmp)
    forget_plans(context.root)
    return found


def _context(options: Mapping[str, str]) -> Context:
    from xyntra_ep.provider import registration
    from xyntra_ep.provider.placement import place
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    hash128 = hash128_of(registration.library())
    asked_for = parse(options)
    device = None if str(asked_for.backend) in ("auto", "cpu") else place(asked_for, None, hash128).device
    return Context(cache_dir=asked_for.cache_dir, hash128=hash128, device=device)


def _need_search() -> None:
    """Before anything is done."""
    from xyntra_ep.tracea.optimizer.search import GaussianProcess
    from xyntra_ep.tracea.optimizer.space import SearchSpace

    GaussianProcess(SearchSpace())
