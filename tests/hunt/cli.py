"""The command: hunt for some minutes, reduce what was found, report.

The exit status is 1 when a class of findings is more frequent than it may be.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hunt.case import Class
from tests.hunt.judge import Verdict
from tests.hunt.processes.pool import Answer, Child
from tests.hunt.processes.worker import Hunt, Inside
from tests.hunt.recipes import RECIPES
from tests.hunt.reduce import Reducer
from tests.hunt.report import Report, write
from xyntra_ep import knobs

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the command line asks for."""

    seed: int
    minutes: float
    first: int = 0
    cases: int | None = None
    jobs: int = 1
    only: tuple[str, ...] = ()
    preload: str = ""
    environment: dict[str, str]
    reduce_minutes: float = 0.0
    reduce_checks: int = 120  # for one finding
    patience_s: float | None = None  # what else pool.py says


def hunt(plan: Plan, progress: Callable[[Report], None] = lambda _: None) -> Report:
    """Cases until the time is over, then the smallest of each kind."""
    report = Report()
    deadline = time.monotonic() + 60 * plan.minutes
    numbers = itertools.count(plan.first) if plan.cases is None else iter(range(plan.first, plan.first + plan.cases))
    guarded = _Guarded(numbers)
    threads = [_Thread(_hunt, plan, guarded, deadline, report, progress) for _ in range(plan.jobs)]
    _join(threads)
    end = time.monotonic() + 60 * plan.reduce_minutes
    done: set[int] = set()
    threads = [_Thread(_reduce, plan, done, end, report) for _ in range(plan.jobs)]
    _join(threads)
    return report


class _Thread(threading.Thread):
    """Keeps what its function raised for the one who joins."""

    def __init__(self, function: Callable[..., None], *arguments: object) -> None:
        super().__init__(daemon=True)
        self.function, self.arguments = function, arguments
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.function(*self.arguments)
        except BaseException as error:  # raised again by _join
            self.error = error


def _join(threads: Sequence[_Thread]) -> None:
    for thread in threads:
        thread.join()
    for thread in threads:
        if thread.error is not None:
            raise thread.error


class _Guarded:
    """An iterator that threads share."""

    def __init__(self, inner: Iterator[int]) -> None:
        self.inner, self.lock = inner, threading.Lock()

    def next(self) -> int | None:
        with self.lock:
            return next(self.inner, None)


def _hunt(plan: Plan, numbers: _Guarded, deadline: float, report: Report, progress: Callable[[Report], None]) -> None:
    child = Child(preload=plan.preload, environment=plan.environment, patience_s=plan.patience_s)
    try:
        while time.monotonic() < deadline and (number := numbers.next()) is not None:
            answer = child.ask(Hunt(seed=plan.seed, number=number, only=plan.only))
            report.add(answer.case, _without_ort_crashes(child, answer))
            progress(report)
    finally:
        child.stop()


def _without_ort_crashes(child: Child, answer: Answer) -> Verdict:
    """Where our session dies and ONNX Runtime dies of one of the nodes alone, it was ONNX Runtime in both: nodes that are not
    ours run there, and an error of another node may have kept its own session from getting as far."""
    verdict, case = answer.verdict, answer.case
    for finding in [f for f in verdict.findings if f.kind in (Class.CRASH, Class.HANG)]:
        if case is not None and finding.runs and child.ask(Inside(case=case, run=finding.runs[-1])).value is None:
            verdict.findings.remove(finding)
            verdict.counts["ORT itself crashes or hangs"] += 1
    return verdict


def _reduce(plan: Plan, done: set[int], end: float, report: Report) -> None:
    """One of each class in turn, so that none waits for the others."""
    child = Child(preload=plan.preload, environment=plan.environment, patience_s=plan.patience_s)
    try:
        while time.monotonic() < end:
            with report.lock:
                waiting = [(key, d) for key, d in report.ordered() if not d.reduced and id(d) not in done]
                if not waiting:
                    return
                turns: dict[Class, int] = {}
                for key, _ in waiting:
                    turns.setdefault(key[0], sum(1 for k, d in report.distinct.items() if d.reduced and k[0] is key[0]))
                key, found = min(waiting, key=lambda item: turns[item[0][0]])
                done.add(id(found))
            seconds = min(90.0, max(5.0, end - time.monotonic()))
            reducer = Reducer(child, seconds=seconds, checks=plan.reduce_checks)
            case, finding = reducer.reduce(found.case, found.finding, lambda shown: report.knows(*shown))
            report.replace(key, case, finding)
    finally:
        child.stop()


def fast_compiler(folder: Path) -> dict[str, str]:
    """Kernels of a few thousand elements are compiled far longer than they run: without optimising, in half the time.

    The last -O of a command counts, so it is written behind the flags that the provider gives.
    """
    command = knobs.current().cc or next((c for c in ("clang", "gcc") if shutil.which(c)), None)
    if command is None:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "cc"
    text = f'#!/bin/sh\nexec {shlex.join(shlex.split(command))} "$@" -O0\n'
    if not script.exists() or script.read_text() != text:
        script.write_text(text)
        script.chmod(0o700)
    return {"XYNTRA_CC": str(script)}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=1.0, help="of hunting; reducing comes on top")
    parser.add_argument("--reduce-minutes", type=float, help="at most so long (half of --minutes)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, metavar="NUMBER", help="of the first case")
    parser.add_argument("--cases", type=int, metavar="N", help="so many and no more")
    parser.add_argument("--jobs", type=int, default=1, help="children at a time")
    parser.add_argument("--only", default="", metavar="RECIPES", help="names of recipes, apart by commas")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "hunt", help="for findings and the cache of kernels")
    parser.add_argument("--backend", default="cpu", help="where our sessions run (%(default)s)")
    parser.add_argument("--optimise", action="store_true", help="compile kernels as users do")
    parser.add_argument("--json", type=Path, metavar="FILE")
    chosen = parser.parse_args(arguments)
    only = tuple(filter(None, chosen.only.split(",")))
    if unknown := sorted(set(only) - {recipe.name for recipe in RECIPES}):
        near = [recipe.name for recipe in RECIPES if recipe.name.rpartition(".")[2] in unknown]
        parser.error(f"--only: no recipe is called {', '.join(unknown)}{f'. there is {near}' if near else ''}")
    environment = {"XYNTRA_CACHE_DIR": str(chosen.folder / "cache"), "XYNTRA_BACKEND": chosen.backend}
    environment |= {} if chosen.optimise else fast_compiler(chosen.folder)
    plan = Plan(
        seed=chosen.seed, minutes=chosen.minutes, first=chosen.first, cases=chosen.cases, jobs=chosen.jobs,
        only=only, environment=environment,
        reduce_minutes=chosen.minutes / 2 if chosen.reduce_minutes is None else chosen.reduce_minutes,
    )  # fmt: skip
    started = time.monotonic()
    report = hunt(plan, _Progress(started))
    elapsed = time.monotonic() - started
    findings = chosen.folder / f"seed-{chosen.seed}"
    shutil.rmtree(findings, ignore_errors=True)
    for number, ((kind, operators, _), distinct) in enumerate(report.ordered()):
        words = "-".join([kind.name.lower(), *(o.replace(".", "_") for o in operators[:3])])
        write(findings / f"{number:03}-{words}", distinct)
    for line in report.lines():
        print(line)
    print(report.table())
    spent = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    print(f"seed {chosen.seed}, {elapsed / 60:.1f} minutes, {spent:.0f} s of processors, findings in {findings}")
    if chosen.json is not None:
        chosen.json.parent.mkdir(parents=True, exist_ok=True)
        chosen.json.write_text(report.as_json(seed=chosen.seed, first=chosen.first, seconds=round(elapsed)), encoding="utf-8")
    for line in report.beyond():
        print(f"beyond its bound: {line}", file=sys.stderr)
    return 1 if report.beyond() else 0


class _Progress:
    """A line now and then, on a terminal only."""

    def __init__(self, started: float) -> None:
        self.started = started
        self.shown = started

    def __call__(self, report: Report) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self.shown < 2:
            return
        self.shown = now
        runs = report.counts["runs"]
        text = f"{runs} runs, {runs / (now - self.started):.0f}/s, {len(report.distinct)} kinds of findings"
        print(f"\r{text}", end="", file=sys.stderr, flush=True)
