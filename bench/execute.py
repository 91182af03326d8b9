"""Executes a plan: builds models, measures each case in its child process, and stores each result at once."""

from __future__ import annotations

import dataclasses
import hashlib
import shlex
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer
from rich.console import Console

from xyntra_bench.ceilings import best_of, measure_ceilings
from xyntra_bench.codec import decode, encode
from xyntra_bench.contenders import XYNTRA, device_backends, devices_tried
from xyntra_bench.device_ceilings import measure_device_ceilings
from xyntra_bench.environment import Environment, read_environment
from xyntra_bench.errors import BenchError
from xyntra_bench.estimate import ESTIMATE, LIMIT_S, SLACK, Estimate, fitting, row_s
from xyntra_bench.gpus import find_gpus
from xyntra_bench.imports import measure_imports
from xyntra_bench.inside import PROVIDER
from xyntra_bench.plan import Case, Plan, Target
from xyntra_bench.results import LeftOut, lacks_data
from xyntra_bench.resume import differences, left_of
from xyntra_bench.run import ChildFailed, child_environment, in_child, kernel_compiler, kernels_isa, run_case
from xyntra_bench.show import Tick, left_out, outcome, progress, show_cases, show_notes, show_summary
from xyntra_bench.store import Store, load
from xyntra_bench.torch_compile.beside import show_beside
from xyntra_bench.trials import make_trials
from xyntra_zoo import model_path, zoo
from xyntra_zoo.cache import cache_dir


def execute(plan: Plan, path: Path, *, resume: bool) -> None:
    """Exits with 1 when something could not be measured or was wrong, with 130 when interrupted."""
    console, begin = Console(), time.monotonic()
    environment = read_environment(kernel_compiler(), find_gpus())
    store = _resumed(plan, path, environment) if resume else Store.start(path, plan, environment, command())
    left = left_of(store.run, plan)
    if resume:
        typer.echo(f"resuming {path}: {len(store.run.cases)} cases are there, {len(left)} are left", err=True)
    try:
        with progress(console, len(plan.cases)) as tick:
            _prepare(plan, store, tick)
            costs_s = _costs_s(plan, left, tick) if plan.within_s else {}
            if plan.within_s and not store.run.cases:  # a run that is resumed has chosen
                left = _chosen(plan, store, left, costs_s, plan.within_s - (time.monotonic() - begin))
            for case in left:
                tick(case.label, done=len(store.run.cases))
                cost_s = costs_s.get(case.label, 0.0)
                if plan.within_s and store.run.cases and time.monotonic() - begin + cost_s > SLACK * plan.within_s:
                    store.leave_out([LeftOut(case=case.label, seconds=cost_s)])
                    continue
                store.add(run_case(case, plan))
                tick(outcome(store.run.cases[-1]), done=len(store.run.cases))
            _measure_ceilings(plan, store, tick)
    except KeyboardInterrupt:
        show_cases(console, store.run.cases)
        kept = f"{len(store.run.cases)} of {len(plan.cases)} cases are kept in {path}"
        typer.echo(f"interrupted: {kept}. the same command with --json {path} --resume goes on", err=True)
        raise typer.Exit(130) from None
    store.finish()
    show_cases(console, store.run.cases)
    if plan.target is Target.TORCH:
        show_beside(console, store.run)
    show_summary(console, store.run)
    show_notes(console, store.run)
    console.print(f"results: {path}", soft_wrap=True, highlight=False)
    if any(lacks_data(case) for case in store.run.cases):
        raise typer.Exit(1)


def _costs_s(plan: Plan, cases: Sequence[Case], tick: Tick) -> dict[str, float]:
    """About how long each will take. What the CPU provider cannot run costs nothing: its row will say so soon enough."""
    costs: dict[str, float] = {}
    for case in cases:
        tick(f"estimating {case.label}", done=0)
        with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
            try:
                data = in_child(ESTIMATE, encode(case), Path(folder), LIMIT_S)
            except ChildFailed:
                costs[case.label] = 0.0
                continue
        costs[case.label] = row_s(decode(Estimate, data), case, plan)
    return costs


def _chosen(plan: Plan, store: Store, cases: Sequence[Case], costs_s: Mapping[str, float], left_s: float) -> tuple[Case, ...]:
    """Those that fit into the time. The others are said now, stored, and said at the end again."""
    chosen = fitting(cases, costs_s, left_s)
    out = [LeftOut(case=case.label, seconds=round(costs_s[case.label], 1)) for case in cases if case not in chosen]
    if out:
        store.leave_out(out)
        typer.echo(f"! {left_out(store.run)}", err=True)
    about = sum(costs_s[case.label] for case in chosen) / 60
    typer.echo(f"{len(chosen)} of {len(plan.cases)} rows, about {max(about, 1):.0f} minutes", err=True)
    return chosen


def _prepare(plan: Plan, store: Store, tick: Tick) -> None:
    """What is measured once for a run, unless the run that is resumed has it."""
    names = [name for case in plan.cases if not (case.file or case.module) for name in (case.model, case.float_model) if name]
    for name in dict.fromkeys(names):
        tick(f"building {name}", done=0)
        try:
            model_path(zoo[name])
        except OSError as error:
            what = f"{cache_dir()}: {name} cannot be written there ({error.strerror})"
            raise BenchError(f"{what}. name another folder with XYNTRA_ZOO_DIR") from None
    if not store.run.imports_ns:
        tick("imports", done=0)
        store.keep_imports(measure_imports(plan.contenders))
    if not store.run.kernels_isa and any(contender.provider in (PROVIDER, XYNTRA) for contender in plan.contenders):
        store.keep_kernels_isa(kernels_isa())
    _measure_ceilings(plan, store, tick)
    if on_devices := devices_tried(plan.contenders):
        tick(f"trials on {', '.join(on_devices)}", done=0)
        if problem := make_trials(on_devices, child_environment()):
            typer.echo(f"! {problem}", err=True)
    for backend in device_backends(plan.contenders) if not store.run.device_ceilings else ():
        tick(f"ceilings of {backend}", done=0)
        found, problem = measure_device_ceilings(backend, child_environment())
        store.keep_device_ceilings((*store.run.device_ceilings, *found))
        if problem:
            typer.echo(f"! {problem}", err=True)


def _measure_ceilings(plan: Plan, store: Store, tick: Tick) -> None:
    """Where XyntraEP is measured, whose kernels are held against them."""
    if not any(contender.provider == PROVIDER for contender in plan.contenders):
        return
    tick("ceilings", done=len(store.run.cases))
    ceilings, problem = measure_ceilings(sorted({1, *(case.threads for case in plan.cases)}), child_environment())
    store.keep_ceilings(best_of(store.run.ceilings, ceilings))
    if problem:
        typer.echo(f"! {problem}", err=True)


def _resumed(plan: Plan, path: Path, environment: Environment) -> Store:
    """The store of the run that was interrupted, if the rest of the plan may be added to it."""
    run = load(path)
    # The points of `bench micro` are built anew by each run, with the same content at the same revision.
    files = {case.model: case.file for case in plan.cases if case.file and plan.target is not Target.MICRO}
    sha256 = {model: hashlib.sha256(Path(file).read_bytes()).hexdigest() for model, file in files.items()}
    if different := differences(run, plan, environment, command(), sha256):
        raise BenchError(f"{path}: cannot be resumed: {'; '.join(different)}. start again without --resume")
    return Store(path, dataclasses.replace(run, finished=""))


def command() -> str:
    """As typed, but without the folders of this machine: results are meant to be published."""
    return shlex.join(["bench", *(Path(a).name if Path(a).is_absolute() else a for a in sys.argv[1:])])


def result_path(json: Path | None, what: str, *, resume: bool) -> Path:
    if json:
        return json
    if resume:
        raise BenchError("--resume: which run? give its file with --json")
    return Path("results") / f"{what}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
