"""`bench determinism`: each configuration in several processes, their hashes stored as they come."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from xyntra_bench.codec import decode, encode
from xyntra_bench.contenders import BASELINE, Contender, devices_tried
from xyntra_bench.determinism import Bits, Configuration, Determinism, Hashes, over_threads
from xyntra_bench.determinism_worker import HashJob
from xyntra_bench.plan import Case
from xyntra_bench.results import Status
from xyntra_bench.run import ChildFailed, child_environment, in_child
from xyntra_bench.setups import Setup
from xyntra_bench.show import note
from xyntra_bench.text_table import show_table
from xyntra_bench.trials import make_trials

MODULE = ("-m", "xyntra_bench.determinism_worker")
LIMIT_S = 600.0
COLUMNS = ("model", "shape", "contender", "threads", "runs and processes", "threads compared", "hash of the first seed")
STYLES = {Bits.EQUAL: "", Bits.DIFFER: "red", Bits.SEED_IGNORED: "yellow", Bits.NO_DATA: "magenta"}


def configurations(
    cases: Sequence[Case], contenders: Sequence[Contender], plan: Determinism, module: tuple[str, ...] = MODULE
) -> Iterator[Configuration]:
    """The CPU provider's first: what it does with the model is what others may be measured by."""
    everyone = [Contender(provider=BASELINE), *(c for c in contenders if c.provider != BASELINE)]
    make_trials(devices_tried(everyone), child_environment())
    with tempfile.TemporaryDirectory(prefix="xyntra-determinism-") as folder:
        for case in cases:
            for contender in everyone:
                yield _configuration(case, contender, plan, Path(folder), module)


def _configuration(case: Case, contender: Contender, plan: Determinism, scratch: Path, module: tuple[str, ...]) -> Configuration:
    found = Configuration(model=case.model, shape=case.shape, contender=contender.label, threads=case.threads, status=Status.OK)
    setup = Setup(label=contender.label, contender=contender, threads=case.threads)
    cache = scratch / hashlib.sha256(f"{case.model} {contender.label}".encode()).hexdigest()[:12]
    hashes: list[Hashes] = []
    for process in range(plan.processes):
        job = HashJob(case=case, setup=setup, seeds=plan.seeds, runs=plan.runs, process=process, cache_dir=str(cache))
        try:
            hashes += (decode(Hashes, item) for item in in_child(module, encode(job), scratch, LIMIT_S))
        except ChildFailed as failure:
            return dataclasses.replace(found, status=failure.status, error=failure.text)
    return dataclasses.replace(found, hashes=tuple(hashes))


def show_determinism(console: Console, result: Determinism) -> None:
    show_table(console, COLUMNS, [(_row(c, result), STYLES[c.bits]) for c in result.configurations])
    for c in result.configurations:
        where = f"{c.model} {c.shape} t{c.threads} {c.contender}"
        if c.status is not Status.OK:
            note(console, f"{where}: {c.status}: {c.error}")
        elif c.bits is Bits.DIFFER:
            note(console, f"{where}: other bits at {c.first_difference}: ask `xyntra explain` for its kernels, and report it")
        elif c.bits is Bits.SEED_IGNORED:
            note(console, f"{where}: the outputs do not depend on the inputs, so equality proves nothing: use real weights")
        elif _is_the_baseline(c, result):
            note(console, f"{where}: the CPU provider's bits, so it may have taken no node: ask `xyntra explain` why")


def _is_the_baseline(c: Configuration, result: Determinism) -> bool:
    """Another contender with the CPU provider's bits: two sets of kernels would hardly round alike."""
    same = [
        b for b in result.configurations if (b.model, b.shape, b.threads, b.contender) == (c.model, c.shape, c.threads, BASELINE)
    ]
    return c.contender != BASELINE and any(b.by_seed == c.by_seed for b in same)


def _row(c: Configuration, result: Determinism) -> list[str]:
    first = c.hashes[0].runs[0] if c.hashes else "-"
    return [c.model, c.shape, c.contender, str(c.threads), c.bits, over_threads(c, result.configurations), first]
