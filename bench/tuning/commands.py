"""The commands of `bench` about tuning: `run tune`, `searches FILE`, `learn FILES`, `learned FILE`."""

from __future__ import annotations

import dataclasses
import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from xyntra_bench.cli_arguments import Json
from xyntra_bench.environment import read_environment
from xyntra_bench.execute import command, result_path
from xyntra_bench.gpus import find_gpus
from xyntra_bench.run import kernel_compiler, kernels_isa
from xyntra_bench.store import dump, now, write_atomically
from xyntra_bench.tuning import learning, searches
from xyntra_bench.tuning.learned_results import LearnedRun, load_learned_run
from xyntra_bench.tuning.search_results import SearchRun, load_search_run


def add_to(app: typer.Typer, run_app: typer.Typer) -> None:
    """The commands, to ``app`` and to those that measure."""
    run_app.command("tune", epilog="Example: bench run tune 'conv3x3*' --json searches.json")(run_tune)
    example = "Example: bench searches reports/tuning/search-zen4.json --figure docs/figures/tuning-search.svg"
    app.command("searches", epilog=example)(show_searches)
    app.command("learn", epilog="Example: bench learn reports/tuning/search-*.json --weights cost_model.json")(learn)
    example = "Example: bench learned reports/tuning/learned.json --figure docs/figures/learned-costs.svg"
    app.command("learned", epilog=example)(show_learned)


def run_tune(
    pattern: Annotated[str, typer.Argument(help="Kernels whose name matches.")] = "*",
    seeds: Annotated[int, typer.Option(min=1, help="Of each search.")] = searches.SEEDS,
    json: Json = None,
) -> None:
    """The tuner's search against chance: every configuration of twenty kernels, and how many trials find a good one."""
    kernels = searches.kernels_like(pattern)
    environment, machine = read_environment(kernel_compiler(), find_gpus()), searches.machine_facts()
    run = SearchRun(command=command(), started=now(), environment=environment, kernels_isa=kernels_isa(), machine=machine)
    path = result_path(json, "tune", resume=False)
    for number, kernel in enumerate(kernels):
        typer.echo(f"[{number}/{len(kernels)}] {kernel.name}", err=True)
        run = dataclasses.replace(run, kernels=(*run.kernels, searches.search_kernel(kernel, seeds=seeds)))
        write_atomically(path, dump(run))
    run = dataclasses.replace(run, finished=now())
    write_atomically(path, dump(run))
    from xyntra_reports import searches_page

    typer.echo(searches_page(run, path.name), nl=False)


def show_searches(
    file: Annotated[Path, typer.Argument(help="A stored run of `bench run tune`.")],
    drawn: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="Write the curves, too: .svg or .png.")] = None,
) -> None:
    """What `bench run tune` has found: a page, and a plot of the best so far over trials."""
    from xyntra_reports import searches_page, searches_picture

    run = load_search_run(file)
    if drawn is not None:
        picture = searches_picture(run)
        drawn.write_bytes(picture.png if drawn.suffix == ".png" else picture.svg.encode())
    typer.echo(searches_page(run, file.name), nl=False)


def learn(
    files: Annotated[list[Path], typer.Argument(help="Stored runs of `bench run tune`, of one machine or several.")],
    json: Json = None,
    weights: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the fitted model here.")] = None,
) -> None:
    """A cost model from measured configurations, and what it is worth on those that it has not seen. Measures nothing."""
    runs = [load_search_run(file) for file in files]
    kernels, model = learning.learned(runs)
    machines = tuple(f"{r.environment.cpu}, kernels for {r.kernels_isa}, {r.started[:10]}" for r in runs)
    found = LearnedRun(
        command=command(),
        made=now(),
        sources=tuple(file.name for file in files),
        machines=machines,
        better_for=tuple(sorted(model.better_for)),
        kernels=tuple(kernels),
    )
    path = result_path(json, "learned", resume=False)
    write_atomically(path, dump(found))
    if weights is not None:
        write_atomically(weights, json_module.dumps(model.data(), separators=(",", ":")) + "\n")
    from xyntra_reports import learned_page

    typer.echo(learned_page(found, path.name), nl=False)


def show_learned(
    file: Annotated[Path, typer.Argument(help="What `bench learn` has stored.")],
    drawn: Annotated[Path | None, typer.Option("--figure", metavar="FILE", help="Write the plot, too: .svg or .png.")] = None,
) -> None:
    """What `bench learn` has found: a page, and a plot of the learned rankings beside the estimates'."""
    from xyntra_reports import learned_page, learned_picture

    run = load_learned_run(file)
    if drawn is not None:
        picture = learned_picture(run)
        drawn.write_bytes(picture.png if drawn.suffix == ".png" else picture.svg.encode())
    typer.echo(learned_page(run, file.name), nl=False)
