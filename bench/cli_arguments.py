"""Arguments that several commands of `bench` take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from xyntra_bench.plan import Scenario

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
Quick = Annotated[bool, typer.Option("--quick", help="100 runs of each session, sure or not, and fewer rows.")]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        help="Result file, written case by case. Default: a new one in the folder results/ of where you are, made if need be.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the interrupted run in --json. Refused if things differ.")]
Bound = Annotated[float | None, typer.Option(help="Milliseconds p99 may take in `server`. Default: 5 runs of the CPU provider.")]
MinTime = Annotated[float | None, typer.Option(help="Least seconds of iterations per case.")]
MaxTime = Annotated[
    float | None,
    typer.Option(
        help="Most seconds of iterations per case of two sessions; more sessions get more. A row that this cuts short is marked, "
        "and not published."
    ),
]
FeedsFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Inputs from a .npz, or a folder with input_0.pb, input_1.pb ...")
]
FeedFiles = Annotated[list[str] | None, typer.Option(metavar="NAME=FILE", help="An input from a .npy or .pb. Repeat.")]
Within = Annotated[
    float | None,
    typer.Option(
        min=0.1,
        metavar="MINUTES",
        help="For all rows: what does not fit is left out, and named. Default: 10 with --quick and without -m, else none.",
    ),
]
