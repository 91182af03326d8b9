"""`bench run zoo | run model FILE | micro | list | report`."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench import micro
from bench.ceilings import measure_ceilings
from bench.contenders import DEFAULT_MAX_ERR, parse_contenders
from bench.environment import read_environment
from bench.errors import BenchError
from bench.imports import measure_imports
from bench.inside import PROVIDER
from bench.micro import micro_cases
from bench.plan import (
    FULL,
    QUICK,
    Budget,
    Case,
    Plan,
    Scenario,
    Target,
    file_cases,
    parse_counts,
    parse_scenarios,
    with_bound,
    zoo_cases,
)
from bench.results import lacks_data
from bench.run import child_environment, probe, run_case
from bench.show import COLUMNS, progress, show_cases, show_notes, show_summary
from bench.store import Store
from zoo import model_path, zoo
from zoo.registry import RegistryError
from zoo.weights import WeightsError

DOCUMENTS = (Path("README.md"), Path("docs/results.md"))

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
run_app = typer.Typer(no_args_is_help=True, help="Measure against the CPU provider.")
app.add_typer(run_app, name="run")

Providers = Annotated[
    list[str] | None,
    typer.Option(
        "--providers", "-e", metavar="SPEC,SPEC", help="Contenders, XyntraEP,XyntraEP:claim=all+precision=bf16,OpenVINO:bf16."
    ),
]
Scenarios = Annotated[
    str,
    typer.Option("--scenario", "-s", metavar="NAME,NAME", help=f"{', '.join(Scenario)}, or all."),
]
Threads = Annotated[str, typer.Option(help="Intra-op thread counts.", metavar="N,N")]
Batches = Annotated[str, typer.Option(metavar="N,N", help="Batch sizes, which multiply the dynamic first dims of the inputs.")]
Quick = Annotated[bool, typer.Option("--quick", help="Few runs per case: orientation, not a result.")]
Json = Annotated[Path | None, typer.Option("--json", help="Result file, written case by case. Default: below results/.")]
Bound = Annotated[float | None, typer.Option(help="Milliseconds p99 may take in `server`. Default: 5 runs of the CPU provider.")]
MinTime = Annotated[float | None, typer.Option(help="Least seconds of turns per case.")]
MaxTime = Annotated[float | None, typer.Option(help="Most seconds of turns per case.")]


@run_app.command("zoo")
def run_zoo(
    model: Annotated[list[str] | None, typer.Option("--model", "-m", help="Zoo model. Repeat.")] = None,
    providers: Providers = None,
    threads: Threads = "1,2",
    batch: Batches = "1",
    seq: Annotated[str, typer.Option(metavar="N,N", help="Sequence lengths. Default: the model's own.")] = "",
    scenario: Scenarios = "single-stream",
    p99_bound: Bound = None,
    quick: Quick = False,
    json: Json = None,
    min_time: MinTime = None,
    max_time: MaxTime = None,
) -> None:
    """The models of the zoo: BERT, ResNet, MobileNet, ViT, GPT-2 prefill and decode."""
    seqs = parse_counts(seq, "--seq") if seq else ()
    counts, batches, scenarios = parse_counts(threads, "--threads"), parse_counts(batch, "--batch"), parse_scenarios(scenario)
    cases = with_bound(zoo_cases(model or [], counts, batches, seqs, scenarios, quick=quick), p99_bound)
    _execute(_plan(Target.ZOO, cases, providers, _budget(quick, min_time, max_time), quick=quick), json or _default_json("zoo"))


@run_app.command("model")
def run_model(
    file: Annotated[Path, typer.Argument(help="An ONNX file.")],
    shape: Annotated[list[str] | None, typer.Option(metavar="NAME=1x128", help="Shape of an input. Repeat.")] = None,
    providers: Providers = None,
    threads: Threads = "1,2",
    batch: Batches = "1",
    scenario: Scenarios = "single-stream",
    p99_bound: Bound = None,
    quick: Quick = False,
    json: Json = None,
    seed: Annotated[int, typer.Option(help="Of the made-up inputs.")] = 0,
    max_err: Annotated[float, typer.Option(help="Largest max|a-b| / max|b| of an fp32 run.")] = DEFAULT_MAX_ERR,
    min_time: MinTime = None,
    max_time: MaxTime = None,
) -> None:
    """A model of your own, with inputs made up from its declared types."""
    counts, batches, scenarios = parse_counts(threads, "--threads"), parse_counts(batch, "--batch"), parse_scenarios(scenario)
    cases = with_bound(file_cases(file, shape or [], counts, batches, scenarios, seed=seed, max_err=max_err), p99_bound)
    budget = _budget(quick, min_time, max_time)
    _execute(_plan(Target.MODEL, cases, providers, budget, quick=quick), json or _default_json(file.stem))


@app.command("micro")
def run_micro(
    pattern: Annotated[str, typer.Argument(help="Chains or points: conv, 'conv*', '*/m1-*'.")] = "*",
    providers: Providers = None,
    threads: Threads = "1",
    quick: Quick = False,
    json: Json = None,
) -> None:
    """Single operators with what follows them, over many shapes: where is the provider slower?"""
    with tempfile.TemporaryDirectory(prefix="xyntra-micro-") as folder:
        cases = micro_cases(pattern, parse_counts(threads, "--threads"), Path(folder))
        budget = micro.QUICK_BUDGET if quick else micro.BUDGET
        plan = _plan(Target.MICRO, cases, providers or micro.CONTENDERS, budget, quick=quick)
        _execute(plan, json or _default_json("micro"))


@app.command("list")
def list_models() -> None:
    """The models of the zoo."""
    for model in zoo:
        lengths = ",".join(map(str, model.seqs)) or "-"
        typer.echo(f"{model.name:20} {model.family:8} seq {lengths:8} {'tests only' if model.tiny else ''}".rstrip())


@app.command()
def report(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when the tables are stale.")] = False,
    readme: Annotated[
        list[Path] | None,
        typer.Option(help="File with <!-- bench:NAME --> markers. Default: README.md and docs/results.md."),
    ] = None,
    results: Annotated[Path, typer.Option(help="A result file, or a folder of which the newest is read.")] = Path(
        "reports/results"
    ),
    show: Annotated[str, typer.Option(metavar="NAME", help="Print one report instead.")] = "",
) -> None:
    """Fill the tables between the markers of a Markdown file from stored results. Measures nothing."""
    from reports import render_report, update_file

    if show:
        typer.echo(render_report(show, results), nl=False)
        return
    for document in readme or DOCUMENTS:
        stale = update_file(document, results, write=not check)
        if check and stale:
            raise BenchError(f"{document}: not what the stored results say: {', '.join(stale)}. run `bench report`")
        typer.echo(f"{document}: {'updated ' + ', '.join(stale) if stale else 'up to date'}")


def main() -> None:
    """Mistakes print one line and exit 1; an interrupted run says what it kept and exits 130."""
    try:
        app(standalone_mode=True)
    except (BenchError, RegistryError, WeightsError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(1)


def _execute(plan: Plan, path: Path) -> None:
    console = Console()
    environment = read_environment()
    missing = [reason for contender in plan.contenders if (reason := probe(contender))]
    if len(missing) == len(plan.contenders):
        raise BenchError(missing[0])
    for reason in missing:
        typer.echo(f"! {reason}", err=True)
    with progress(console, len(plan.cases)) as tick:
        for name in dict.fromkeys(case.model for case in plan.cases if not case.file):
            tick(f"building {name}", done=0)
            model_path(zoo[name])
        tick("imports", done=0)
        store = Store(path, plan, environment, _command(sys.argv[1:]), measure_imports(plan.contenders))
        if any(contender.provider == PROVIDER for contender in plan.contenders):
            tick("ceilings", done=0)
            ceilings, problem = measure_ceilings(sorted({1, *(case.threads for case in plan.cases)}), child_environment())
            store.keep_ceilings(ceilings)
            if problem:
                typer.echo(f"! {problem}", err=True)
        if not console.is_terminal:
            print("\t".join(COLUMNS))
        try:
            for done, case in enumerate(plan.cases):
                tick(case.label, done=done)
                result = run_case(case, plan)
                store.add(result)
                if not console.is_terminal:
                    show_cases(console, [result])
        except KeyboardInterrupt:
            typer.echo(f"interrupted: {len(store.run.cases)} of {len(plan.cases)} cases are kept in {path}", err=True)
            raise typer.Exit(130) from None
    store.finish()
    if console.is_terminal:
        show_cases(console, store.run.cases)
    show_summary(console, store.run)
    show_notes(console, store.run)
    console.print(f"results: {path}", soft_wrap=True, highlight=False)
    if any(lacks_data(case) for case in store.run.cases):
        raise typer.Exit(1)


def _plan(target: Target, cases: tuple[Case, ...], specs: Sequence[str] | None, budget: Budget, *, quick: bool) -> Plan:
    contenders = parse_contenders(specs or ["XyntraEP"])
    return Plan(target=target, cases=cases, contenders=contenders, budget=budget, quick=quick)


def _budget(quick: bool, min_time_s: float | None, max_time_s: float | None) -> Budget:
    budget = QUICK if quick else FULL
    budget = dataclasses.replace(budget, min_time_s=budget.min_time_s if min_time_s is None else min_time_s)
    return dataclasses.replace(budget, max_time_s=budget.max_time_s if max_time_s is None else max_time_s)


def _command(arguments: list[str]) -> str:
    """As typed, but without the folders of this machine: results are meant to be published."""
    return shlex.join(["bench", *(Path(a).name if Path(a).is_absolute() else a for a in arguments)])


def _default_json(what: str) -> Path:
    return Path("results") / f"{what}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"


if __name__ == "__main__":
    main()
