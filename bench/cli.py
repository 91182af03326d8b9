"""`bench run zoo | run model FILE | run torch | run tune | micro | nets | architectures | device | list | determinism |
compare A B | gate FILE | bars | searches FILE | learn FILES | learned FILE | report`."""

from __future__ import annotations

import dataclasses
import signal
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from xyntra_bench import architecture_cases, device_results, micro, nets
from xyntra_bench.architecture_cases import cases_of_architectures
from xyntra_bench.cli_arguments import (
    Batches,
    Bound,
    FeedFiles,
    FeedsFile,
    Json,
    MaxTime,
    MinTime,
    Providers,
    Quick,
    Resume,
    Scenarios,
    Threads,
    Within,
)
from xyntra_bench.compare import compare_runs
from xyntra_bench.compare_table import markdown_of, show_comparison
from xyntra_bench.contenders import DEFAULT_MAX_ERR, Contender
from xyntra_bench.declared import check_inputs
from xyntra_bench.determinism import Determinism
from xyntra_bench.determinism_run import configurations, show_determinism
from xyntra_bench.device_points import POINTS
from xyntra_bench.device_results import DeviceRun, is_device_run, load_device_run
from xyntra_bench.device_run import DeviceStore, points_like
from xyntra_bench.environment import read_environment, version_of
from xyntra_bench.errors import BenchError
from xyntra_bench.execute import command, execute, result_path
from xyntra_bench.first_run import check_runs
from xyntra_bench.gpus import find_gpus
from xyntra_bench.inventory import inventory
from xyntra_bench.micro import micro_cases
from xyntra_bench.nets import net_cases
from xyntra_bench.own_feeds import gives_all, own_feeds, with_feeds
from xyntra_bench.plan import (
    Budget,
    Case,
    Plan,
    Scenario,
    Target,
    budget_of,
    file_cases,
    parse_counts,
    parse_scenarios,
    quantised_models,
    wide_cases,
    with_bound,
    zoo_cases,
)
from xyntra_bench.results import Run
from xyntra_bench.run import checked_contenders, kernel_compiler
from xyntra_bench.store import Stored, dump, load, now, write_atomically
from xyntra_bench.text_table import show_table
from xyntra_bench.torch_compile import commands as torch_commands
from xyntra_bench.tuning.commands import add_to
from xyntra_zoo.registry import RegistryError
from xyntra_zoo.weights import WeightsError

DEFAULT = ["XyntraEP"]  # who is measured unless -e says
MISUSED = 2
ONE, SINGLE = "1", Scenario.SINGLE_STREAM.value  # a batch and a scenario that nobody asked for
DOCUMENTS = (Path("README.md"), Path("docs/results.md"), Path("docs/wide.md"))

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
run_app = typer.Typer(no_args_is_help=True, help="Measure against the CPU provider.")
app.add_typer(run_app, name="run")
add_to(app, run_app)
torch_commands.add_to(run_app)


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"bench {version_of('xyntra-ep') or 'of a checkout that is not installed'}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say which, and nothing else.")
    ] = False,
) -> None: ...


QUICK_WITHIN = 10.0  # minutes: `make zoo` also installs and builds, and ends within fifteen


@run_app.command("zoo", epilog="Example: bench run zoo --model bert-base --threads 1 --quick")
def run_zoo(
    model: Annotated[list[str] | None, typer.Option("--model", "-m", help="Zoo model. Repeat.")] = None,
    providers: Providers = None,
    threads: Threads = "1,2",
    batch: Batches = ONE,
    seq: Annotated[str, typer.Option(metavar="N,N", help="Sequence lengths. Default: the model's own.")] = "",
    wide: Annotated[bool, typer.Option("--wide", help="Instead of these, each model at the sizes that people serve.")] = False,
    quantised: Annotated[
        bool, typer.Option("--quantised", help="The quantised models alone, which have tables of their own.")
    ] = False,
    scenario: Scenarios = SINGLE,
    p99_bound: Bound = None,
    tokens: Annotated[int | None, typer.Option(min=2, help="New tokens in `generate`. Default: 32, with --quick 8.")] = None,
    quick: Quick = False,
    json: Json = None,
    resume: Resume = False,
    min_time: MinTime = None,
    max_time: MaxTime = None,
    within: Within = None,
) -> None:
    """The models of the zoo: BERT, ResNet, MobileNet, ViT, GPT-2 prefill and decode."""
    seqs = parse_counts(seq, "--seq") if seq else ()
    counts, batches, scenarios = parse_counts(threads, "--threads"), parse_counts(batch, "--batch"), parse_scenarios(scenario)
    if wide:
        given = {
            "--batch": batch != ONE,
            "--seq": seq,
            "--scenario": scenario != SINGLE,
            "--tokens": tokens,
            "--p99-bound": p99_bound,
            "--quantised": quantised,
        }
        if others := [option for option, used in given.items() if used]:
            raise BenchError(
                f"--wide and {others[0]} together: the selection has sizes and a scenario of its own. give one of them"
            )
        target, cases = Target.WIDE, wide_cases(model or [], counts)
    else:
        target = Target.QUANTISED if quantised else Target.ZOO
        models = quantised_models(model or []) if quantised else model or []
        cases = zoo_cases(models, counts, batches, seqs, scenarios, quick=quick, new_tokens=tokens)
        cases = with_bound(cases, p99_bound)
    budget = budget_of(quick=quick, min_time_s=min_time, max_time_s=max_time)
    plan = _plan(target, cases, checked_contenders(providers or DEFAULT), budget, quick=quick)
    if quick and not model and within is None:
        within = QUICK_WITHIN
    plan = dataclasses.replace(plan, within_s=None if within is None else within * 60)
    execute(plan, result_path(json, target, resume=resume), resume=resume)


@run_app.command("model", epilog="Example: bench run model model.onnx --shape input=1x3x224x224 --quick")
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
    resume: Resume = False,
    seed: Annotated[int, typer.Option(help="Of the made-up inputs.")] = 0,
    feeds: FeedsFile = None,
    feed: FeedFiles = None,
    max_err: Annotated[float, typer.Option(help="Largest max|a-b| / max|b| of an fp32 run.")] = DEFAULT_MAX_ERR,
    min_time: MinTime = None,
    max_time: MaxTime = None,
) -> None:
    """A model of your own, with inputs of your own or made up from its declared types."""
    counts, batches, scenarios = parse_counts(threads, "--threads"), parse_counts(batch, "--batch"), parse_scenarios(scenario)
    cases = with_bound(file_cases(file, shape or [], counts, batches, scenarios, seed=seed, max_err=max_err), p99_bound)
    with tempfile.TemporaryDirectory(prefix="xyntra-feeds-") as folder:
        given = own_feeds(file, feeds, feed or []) if feeds or feed else {}
        cases = with_feeds(cases, given, Path(folder))
        counts_made_up = check_inputs(cases, given)
        budget = budget_of(quick=quick, min_time_s=min_time, max_time_s=max_time)
        plan = _plan(Target.MODEL, cases, checked_contenders(providers or DEFAULT), budget, quick=quick)
        check_runs(cases)
        if counts_made_up:
            typer.echo(f"made up: {counts_made_up}. --feed NAME=FILE gives others", err=True)
        execute(plan, result_path(json, file.stem, resume=resume), resume=resume)


@app.command("micro", epilog="Example: bench micro 'conv*' --quick")
def run_micro(
    pattern: Annotated[str, typer.Argument(help="Chains or points: conv, 'conv*', '*/m1-*'.")] = "*",
    providers: Providers = None,
    threads: Threads = "1",
    quick: Quick = False,
    json: Json = None,
    resume: Resume = False,
) -> None:
    """Single operators with what follows them, over many shapes: where is the provider slower?"""
    contenders = checked_contenders(providers or micro.CONTENDERS)
    with tempfile.TemporaryDirectory(prefix="xyntra-micro-") as folder:
        cases = micro_cases(pattern, parse_counts(threads, "--threads"), Path(folder))
        budget = micro.QUICK_BUDGET if quick else micro.BUDGET
        plan = _plan(Target.MICRO, cases, contenders, budget, quick=quick)
        execute(plan, result_path(json, "micro", resume=resume), resume=resume)


@app.command("nets", epilog="Example: bench nets unet --quick")
def run_nets(
    pattern: Annotated[str, typer.Argument(help="Nets or points: unet, '*/224x224'.")] = "*",
    providers: Providers = None,
    threads: Threads = "1",
    quick: Quick = False,
    json: Json = None,
    resume: Resume = False,
) -> None:
    """Nets whose sizes only a run knows, at several sizes: what does it cost not to know them?"""
    contenders = checked_contenders(providers or nets.CONTENDERS)
    with tempfile.TemporaryDirectory(prefix="xyntra-nets-") as folder:
        cases = net_cases(pattern, parse_counts(threads, "--threads"), Path(folder))
        budget = nets.QUICK_BUDGET if quick else nets.BUDGET
        plan = _plan(Target.MICRO, cases, contenders, budget, quick=quick)
        execute(plan, result_path(json, "nets", resume=resume), resume=resume)


@app.command("architectures", epilog="Example: bench architectures 'unet*' --quick")
def run_architectures(
    pattern: Annotated[str, typer.Argument(help="Their names: bert, 'resn*'.")] = "*",
    providers: Providers = None,
    threads: Threads = "1",
    quick: Quick = False,
    json: Json = None,
    resume: Resume = False,
    within: Within = None,
) -> None:
    """Models of all kinds as PyTorch exports them, dynamic and fixed: is any of them slower?"""
    contenders = checked_contenders(providers or architecture_cases.CONTENDERS)
    cases = cases_of_architectures(pattern, parse_counts(threads, "--threads"))
    budget = architecture_cases.QUICK_BUDGET if quick else architecture_cases.BUDGET
    plan = _plan(Target.ARCHITECTURES, cases, contenders, budget, quick=quick)
    plan = dataclasses.replace(plan, within_s=None if within is None else within * 60)
    execute(plan, result_path(json, "architectures", resume=resume), resume=resume)


@app.command("device", epilog="Example: bench device gemm --backend cuda")
def run_device(
    pattern: Annotated[str, typer.Argument(help="Points: gemm, 'attention-*', '*-bf16'.")] = "*",
    backend: Annotated[str, typer.Option(help="A device's, as `xyntra doctor` lists them.")] = "cuda",
    tiny: Annotated[bool, typer.Option("--tiny", help="Small points, to try the command.")] = False,
    json: Json = None,
    resume: Resume = False,
) -> None:
    """Single operators on a device, by its own clock, beside PyTorch's: products, attention, what memory bounds."""
    points = points_like(pattern, tiny=tiny)
    from xyntra_bench.ort_sessions import check_device_backend  # with ONNX Runtime

    check_device_backend(backend)
    environment = read_environment(kernel_compiler(), find_gpus())
    path = result_path(json, "device", resume=resume)
    if resume:
        store = DeviceStore.resumed(path, environment, command())
    else:
        store = DeviceStore(path, DeviceRun(command=command(), started=now(), environment=environment))
    measured = []
    for point in store.measure(points, backend, lambda problem: typer.echo(f"! {problem}", err=True)):
        measured.append((device_results.cells(point, next(iter(store.run.device_ceilings), None)), ""))
        typer.echo(f"[{len(measured)}/{len(points)}] {point.name}: {point.failure or f'{point.ns / 1e3:.1f} µs'}", err=True)
    show_table(Console(), device_results.COLUMNS, measured)
    typer.echo(f"results: {path}")
    if not all(point.good for point in store.run.points):
        raise typer.Exit(1)


@app.command("list", epilog="Example: bench list")
def list_everything() -> None:
    """Models, chains of operators, scenarios, and the contenders with what is installed of them."""
    for title, rows in inventory():
        typer.echo(title)
        for row in rows:
            typer.echo(f"  {row}".rstrip())


@app.command(epilog="Example: bench determinism --model bert-base --threads 2")
def determinism(
    model: Annotated[list[str] | None, typer.Option("--model", "-m", help="Zoo model. Repeat.")] = None,
    file: Annotated[Path | None, typer.Option(help="An ONNX file instead of zoo models.")] = None,
    shape: Annotated[list[str] | None, typer.Option(metavar="NAME=1x128", help="Shape of an input of --file. Repeat.")] = None,
    providers: Providers = None,
    threads: Threads = "1,2",
    seeds: Annotated[str, typer.Option(metavar="N,N", help="Of the inputs that are made up.")] = "1,2",
    feeds: FeedsFile = None,
    feed: FeedFiles = None,
    runs: Annotated[int, typer.Option(min=1, help="Runs of each seed in each process.")] = 3,
    processes: Annotated[int, typer.Option(min=1, help="Processes, each with a session of its own.")] = 2,
    json: Json = None,
) -> None:
    """Are outputs the same bits over runs, sessions and processes? Exits with 1 when they are not."""
    counts = parse_counts(threads, "--threads")
    cases = file_cases(file, shape or [], counts, seed=0, max_err=0.0) if file else zoo_cases(model or [], counts, quick=True)
    contenders = checked_contenders(providers or DEFAULT)
    chosen = parse_counts(seeds, "--seeds")
    with tempfile.TemporaryDirectory(prefix="xyntra-feeds-") as folder:
        if feeds or feed:
            if file is None:
                raise BenchError("--feed: of which model? name it with --file")
            given = own_feeds(file, feeds, feed or [])
            cases = with_feeds(cases, given, Path(folder))
            check_inputs(cases, given)
            chosen = chosen[:1] if gives_all(file, given) else chosen  # nothing is left that a seed could change
        result = Determinism(
            command=command(),
            started=now(),
            environment=read_environment(kernel_compiler(), find_gpus()),
            seeds=chosen,
            runs=runs,
            processes=processes,
        )
        path = result_path(json, "determinism", resume=False)
        write_atomically(path, dump(result))
        for configuration in configurations(cases, contenders, result):
            result = dataclasses.replace(result, configurations=(*result.configurations, configuration))
            write_atomically(path, dump(result))
    result = dataclasses.replace(result, finished=now())
    write_atomically(path, dump(result))
    show_determinism(Console(), result)
    typer.echo(f"results: {path}")
    if not result.good:
        raise typer.Exit(1)


@app.command(epilog="Example: bench compare before.json after.json")
def compare(
    old: Annotated[Path, typer.Argument(help="A stored run.")],
    new: Annotated[Path, typer.Argument(help="A later one of the same cases.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="As a document, for a build server's summary.")] = False,
) -> None:
    """Has a contender become faster or slower against the CPU provider? Exits with 1 when one has become slower or fails."""
    comparison = compare_runs(load(old), load(new))
    if markdown:
        typer.echo(markdown_of(comparison))
    else:
        show_comparison(Console(), comparison)
    if not comparison.good:
        raise typer.Exit(1)


@app.command(epilog="Example: bench gate run.json --ratio 0.98")
def gate(
    file: Annotated[Path, typer.Argument(help="A stored run.")],
    provider: Annotated[str, typer.Option(help="Whose results have to hold the floors.")] = "XyntraEP",
    ratio: Annotated[float, typer.Option(help="Speed-up over the CPU provider, below which no whole interval may lie.")] = 0.98,
    roof: Annotated[float, typer.Option(help="Part of what the machine reaches at best, in all kernels of a model.")] = 0.0,
) -> None:
    """For a build server: exits with 1 when a result is below a floor, wrong or missing. Asks for ratios only, never times."""
    from xyntra_reports import Floors, check_floors, gate_table

    run = load(file)
    rows = check_floors(run, provider, Floors(ratio=ratio, roof=roof))
    if not rows:
        there = dict.fromkeys(m.provider for case in run.cases for m in case.contenders)
        hint = f"name another with --provider: it has {', '.join(there)}" if there else "measure again"
        raise BenchError(f"{file}: nothing of {provider} in it, so nothing is gated. {hint}")
    typer.echo(gate_table(rows))
    if not all(row.held for row in rows):
        raise typer.Exit(1)


@app.command(epilog="Example: bench bars device.json zoo.json")
def bars(
    files: Annotated[list[Path], typer.Argument(help="Stored runs of `bench device` and of `bench run zoo` on a GPU.")],
) -> None:
    """What XyntraEP should reach on a GPU, beside PyTorch: a page, and exit status 1 when a bar fails or has no data."""
    from xyntra_reports import bars as held_bars
    from xyntra_reports import bars_page

    runs: dict[str, Run | DeviceRun] = {f.name: load_device_run(f) if is_device_run(f) else load(f) for f in files}
    found = held_bars(runs, [point.name for point in POINTS])
    typer.echo(bars_page(runs, found), nl=False)
    if not all(bar.held for bar in found):
        raise typer.Exit(1)


@app.command(epilog="Example: bench report --results run.json --html site")
def report(
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when the tables are stale.")] = False,
    readme: Annotated[
        list[Path] | None,
        typer.Option(help="File with <!-- bench:NAME --> markers. Default: README.md, docs/results.md and docs/wide.md."),
    ] = None,
    results: Annotated[Path, typer.Option(help="A result file, or a folder of which the newest is read.")] = Path(
        "reports/results"
    ),
    show: Annotated[str, typer.Option(metavar="NAME", help="Print one report instead.")] = "",
    html: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write a static site instead: an overview, a page per model, the plots.")
    ] = None,
) -> None:
    """Fill the tables between the markers of a Markdown file from stored results. Measures nothing."""
    from xyntra_reports import render_report, update_file

    stored = Stored.at(results)
    if show:
        typer.echo(render_report(show, stored), nl=False)
        return
    if html:
        from xyntra_reports import write_site

        pages = write_site(stored, html)
        typer.echo(f"{pages[0]}: {len(pages)} pages")
        return
    for document in readme or DOCUMENTS:
        stale = update_file(document, stored, write=not check)
        if check and stale:
            typer.echo(f"{document}: not what the stored results say: {', '.join(stale)}. run `bench report`", err=True)
            raise typer.Exit(1)
        typer.echo(f"{document}: {'updated ' + ', '.join(stale) if stale else 'up to date'}")


def main() -> None:
    """Exit status: 0 all is well; 1 something could not be measured, is wrong or below what was asked for; 2 the question was
    wrong, which prints one line; 130 interrupted or told to end, after saying what is kept."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # else the process that measures would go on without this one
    try:
        app(standalone_mode=True)
    except (BenchError, RegistryError, WeightsError) as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(MISUSED)
    except OSError as error:  # a folder that cannot be written to, a full disk
        typer.echo(f"error: {error.filename or 'bench'}: {error.strerror or error}", err=True)
        sys.exit(MISUSED)


def _plan(target: Target, cases: tuple[Case, ...], contenders: tuple[Contender, ...], budget: Budget, *, quick: bool) -> Plan:
    return Plan(target=target, cases=cases, contenders=contenders, budget=budget, quick=quick)
