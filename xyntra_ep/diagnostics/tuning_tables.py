"""Tables of tuning results: written for other machines, taken over from them, and made of shapes that matter.

export_tuning("mine.json")      on one machine; import_tuning("mine.json") on another of its class
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from xyntra_ep.diagnostics.explain import explain
from xyntra_ep.errors import ConfigError, UnsupportedError
from xyntra_ep.options import parse
from xyntra_ep.tracea.interface.context import Context
from xyntra_ep.tracea.interface.tuning.keep import keep
from xyntra_ep.tracea.interface.tuning.shapes import SHAPES
from xyntra_ep.tracea.interface.tuning.trial import Measured
from xyntra_ep.tracea.interface.tuning.tuner import AutoTuner, Budget
from xyntra_ep.tracea.optimizer.tuning_cache import TuningCache, read_export
from xyntra_ep.tracea.runtime.cache_root import atomic_write


def context_of(options: Mapping[str, str], session: Any = None) -> Context:
    """Where sessions with these options run. ``session``: one of them, which knows what backend=auto has chosen; without it that
    is the processor."""
    from xyntra_ep.provider import registration
    from xyntra_ep.provider.placement import place
    from xyntra_ep.tracea.runtime.hashing import hash128_of

    hash128 = hash128_of(registration.library())
    asked_for = parse(options)
    if str(asked_for.backend) == "auto":
        is_on_device = session is not None and any(graph.device for graph in explain(session).graphs)
    else:
        is_on_device = str(asked_for.backend) != "cpu"
    device = place(asked_for, None, hash128).device if is_on_device else None
    return Context(cache_dir=asked_for.cache_dir, hash128=hash128, device=device)


def need_search() -> None:
    """Before anything is done. Raises UnsupportedError without the package's extra `tune`."""
    from xyntra_ep.tracea.optimizer.search import GaussianProcess
    from xyntra_ep.tracea.optimizer.space import SearchSpace

    GaussianProcess(SearchSpace())


def tune_heroes(
    target: Path,
    *,
    seconds: float = 30.0,
    hear: Callable[[str, Measured, int, int], None] = lambda name, measured, done, total: None,
) -> int:
    """Tune shapes that matter (`tracea/interface/tuning/shapes.py`) for so many ``seconds`` each, on one thread, and write what
    is best as a table for `tracea/optimizer/heroes`; how many shapes have a better kernel than the default. Raises ConfigError
    where the file cannot be written, UnsupportedError without the package's extra `tune`."""
    need_search()
    context = context_of({})
    tuner = AutoTuner(context, threads=1)
    table = TuningCache(context.machine_class)
    for number, shape in enumerate(SHAPES):
        problem = replace(shape.problem(), between_bytes=2 * max(context.machine.l3_bytes, context.machine.l2_bytes))

        def heard(measured: Measured, name: str = shape.name, done: int = number) -> None:
            hear(name, measured, done, len(SHAPES))

        try:
            result = tuner.optimize(problem, Budget(seconds=seconds), heard)
        except UnsupportedError:
            continue  # the machine has no kernel for it, or no choice
        if result.best is not None:
            table.add(replace(result, trials=()))
    _write(table, target)
    return len(table.results)


def _write(table: TuningCache, target: Path) -> None:
    try:
        atomic_write(target, table.exported(), target.parent)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", where=str(target)) from error


def export_tuning(target: Path, options: Mapping[str, str] | None = None) -> int:
    """Write what is known of this machine to a file; how many results that are."""
    context = context_of(options or {})
    tuning = TuningCache.load(context.root.path, context.machine_class, trials=True)
    if not tuning.results:
        raise ConfigError(tuning.problem or "there is nothing to export", where="tune", hint="run `xyntra tune` on a model first")
    _write(tuning, target)
    return len(tuning.results)


def import_tuning(source: Path, options: Mapping[str, str] | None = None) -> TuningCache:
    """Take over what another machine of the same class has exported. Of two results for one op the imported one counts. Raises
    ConfigError for a file that is none, or of another class."""
    context = context_of(options or {})
    found = read_export(source)
    if found.machine != context.machine_class:
        what = f"is of another class of machines ({found.machine.name})"
        hint = f"this one is {context.machine_class.name}"
        if any(result.question.device for result in found.results.values()) and context.device is None:
            hint += "; a device's results want its backend, as in -O backend=NAME"
        raise ConfigError(what, where=str(source), hint=hint)
    keep(found, context.root)
    return found
