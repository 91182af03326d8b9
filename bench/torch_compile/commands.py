"""The command `bench run torch`."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from xyntra_bench.cli_arguments import Json, MaxTime, MinTime, Providers, Quick, Resume, Threads, Within
from xyntra_bench.contenders import BASELINE, EAGER, INDUCTOR, XYNTRA
from xyntra_bench.execute import execute, result_path
from xyntra_bench.plan import Plan, Target, budget_of, parse_counts
from xyntra_bench.run import checked_contenders
from xyntra_bench.torch_compile.cases import cases_of_modules

CONTENDERS = (XYNTRA, INDUCTOR, BASELINE)


def add_to(run_app: typer.Typer) -> None:
    """The command, to those that measure."""
    run_app.command("torch", epilog="Example: bench run torch -m bert-base --threads 1 --batch 1 --quick")(run_torch)


def run_torch(
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Module, as `bench list` has them. Repeat. Default: of full size.")
    ] = None,
    providers: Providers = None,
    threads: Threads = "1,2",
    batch: Annotated[str, typer.Option(metavar="N,N", help="Batch sizes.")] = "1,8",
    quick: Quick = False,
    json: Json = None,
    resume: Resume = False,
    min_time: MinTime = None,
    max_time: MaxTime = None,
    within: Within = None,
) -> None:
    """Modules of PyTorch by torch.compile(backend="xyntra"), beside eager, inductor, and ONNX Runtime with the exported model."""
    counts, batches = parse_counts(threads, "--threads"), parse_counts(batch, "--batch")
    contenders = checked_contenders(providers or CONTENDERS, EAGER)
    cases = cases_of_modules(model or [], counts, batches, contenders, lambda text: typer.echo(f"! {text}", err=True))
    budget = budget_of(quick=quick, min_time_s=min_time, max_time_s=max_time)
    plan = Plan(target=Target.TORCH, cases=cases, contenders=contenders, budget=budget, quick=quick)
    plan = dataclasses.replace(plan, within_s=None if within is None else within * 60)
    execute(plan, result_path(json, Target.TORCH, resume=resume), resume=resume)
