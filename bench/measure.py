"""One case: all sessions in one process, taking turns. Knows no files and no tables."""

from __future__ import annotations

import dataclasses
import hashlib
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bench.accuracy import compare
from bench.environment import LoadWatch, cores_allowed, governor, load_1m
from bench.feeds import Feeds, case_feeds, case_path
from bench.plan import BASELINE, Budget, Case, Contender
from bench.results import (
    Accuracy,
    CaseResult,
    Creation,
    Measurement,
    Status,
    Verdict,
    Warn,
)
from bench.sessions import SessionFactory, make_available, placement
from bench.statistics import MIN_PAIRS, judge, latency, paired_ratio
from bench.turns import Runner, take_turns

NOISY_CV = 0.10
SLOW_FIRST_RUN = 3.0
FOREIGN_CORES = 0.25


def measure(case: Case, contenders: tuple[Contender, ...], budget: Budget, *, quick: bool) -> CaseResult:
    """Baseline and contenders in turns until the budget is used. One that fails does not stop the rest."""
    wall_begin, load_before, watch = time.monotonic(), load_1m(), LoadWatch()
    path = case_path(case)
    sha256 = _read_into_page_cache(path)
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as scratch:
        everyone = [Contender(provider=BASELINE), *contenders]
        factories = [SessionFactory(path, c, case.threads, Path(scratch) / str(i)) for i, c in enumerate(everyone)]
        factories[0].create()  # the runtime's own first steps, and the first touch of memory, are nobody's
        timed, failed = dict[int, tuple[int, int]](), dict[int, str]()
        for i, contender in enumerate(everyone):
            with _failure_noted(failed, i):
                make_available(contender.provider)
                timed[i] = _time_creation(factories[i], budget)
        baseline = _start(factories[0], everyone[0], timed[0])
        feeds = case_feeds(case, baseline.session.get_inputs())
        _first_run(baseline, feeds)
        runners = [baseline]
        for i in list(timed)[1:]:
            with _failure_noted(failed, i):
                runner = _start(factories[i], everyone[i], timed[i])
                _first_run(runner, feeds)
                runners.append(runner)
        turns = take_turns(runners, feeds, budget)
        names = [output.name for output in baseline.session.get_outputs()]
        foreign_cores = watch.foreign_cores()
        survivors = iter(runners[1:])
        measured = tuple(
            _failure(contender, failed[i]) if i in failed else _conclude(next(survivors), baseline, names, case)
            for i, contender in enumerate(contenders, start=1)
        )
        return CaseResult(
            model=case.model,
            family=case.family,
            shape=case.shape,
            batch=case.batch,
            seq=case.seq,
            threads=case.threads,
            model_sha256=sha256,
            status=Status.OK,
            baseline=_record(baseline),
            contenders=measured,
            warnings=_case_warnings(case, foreign_cores, turns, quick=quick),
            turns=turns,
            wall_s=round(time.monotonic() - wall_begin, 2),
            load_before=load_before,
            load_after=load_1m(),
            foreign_cores=foreign_cores,
            peak_rss_bytes=peak_rss_bytes(),
        )


@contextmanager
def _failure_noted(failed: dict[int, str], i: int) -> Iterator[None]:
    """Whatever a contender throws is a result of measuring it. Without the baseline there is nothing to measure."""
    try:
        yield
    except Exception as error:
        if i == 0:
            raise
        failed[i] = f"{type(error).__name__}: {error}"


def _time_creation(factory: SessionFactory, budget: Budget) -> tuple[int, int]:
    """Nanoseconds cold, and the median warm. Only one session is alive at a time: memory that another one holds
    would make this one pay for fresh pages, and weights shared with it would make this one look cheap."""
    session, cold_ns = factory.create()
    warm = []
    for _ in range(budget.creations):
        session = None
        session, took = factory.create()
        warm.append(took)
    del session
    return cold_ns, int(np.median(warm))


def _start(factory: SessionFactory, contender: Contender, timed: tuple[int, int]) -> Runner:
    """The session that will run, created a last time beside those of the others."""
    before = _rss_bytes()
    session, _ = factory.create()
    cold_ns, warm_ns = timed
    growth = max(_rss_bytes() - before, 0)
    creation = Creation(cold_ns=cold_ns, warm_ns=warm_ns, rss_growth_bytes=growth)
    return Runner(
        contender=contender,
        factory=factory,
        session=session,
        creation=creation,
        placement=placement(session),
    )


def _first_run(runner: Runner, feeds: Feeds) -> None:
    begin = time.perf_counter_ns()
    outputs = runner.session.run(None, feeds)
    runner.first_run_ns = time.perf_counter_ns() - begin
    runner.outputs = [np.array(output) for output in outputs]  # copied: a provider may reuse its buffers


def _record(runner: Runner) -> Measurement:
    measured = latency(runner.samples_ns)
    warnings = []
    if measured.cv > NOISY_CV:
        warnings.append(Warn.NOISY)
    if runner.first_run_ns > SLOW_FIRST_RUN * measured.p50_ns:
        warnings.append(Warn.SLOW_FIRST_RUN)
    return Measurement(
        label=runner.contender.label,
        provider=runner.contender.provider,
        options=runner.contender.options,
        status=Status.OK,
        latency=measured,
        first_run_ns=runner.first_run_ns,
        creation=runner.creation,
        placement=runner.placement,
        warnings=tuple(warnings),
        samples_ns=tuple(runner.samples_ns),
    )


def _conclude(runner: Runner, baseline: Runner, names: list[str], case: Case) -> Measurement:
    """The record with its verdict. A result that is not accurate, or cannot be told, has no speed."""
    contender = runner.contender
    check = compare(names, runner.outputs, baseline.outputs, contender.max_err(case.max_err))
    ratio = paired_ratio(baseline.round_ns, runner.round_ns) if check.state is Accuracy.OK else None
    record = _record(runner)
    warnings = list(record.warnings)
    if check.state in (Accuracy.INACCURATE, Accuracy.MISMATCH):
        warnings.append(Warn.INACCURATE)
    if check.state is Accuracy.DEAD_REFERENCE:
        warnings.append(Warn.DEAD_REFERENCE)
    elif check.dead_outputs:
        warnings.append(Warn.DEAD_OUTPUT)
    if runner.placement is None:
        warnings.append(Warn.NO_ASSIGNMENT)
    elif not runner.placement.nodes.get(contender.provider):
        warnings.append(Warn.NOTHING_CLAIMED)
    verdict = judge(ratio)
    return dataclasses.replace(record, check=check, ratio=ratio, verdict=verdict, warnings=tuple(warnings))


def _failure(contender: Contender, error: str) -> Measurement:
    return Measurement(
        label=contender.label,
        provider=contender.provider,
        options=contender.options,
        status=Status.FAILED,
        error=error,
        verdict=Verdict.NO_DATA,
    )


def _case_warnings(case: Case, foreign_cores: float | None, turns: int, *, quick: bool) -> tuple[Warn, ...]:
    facts = {
        Warn.QUICK: quick,
        Warn.FEW_TURNS: turns < MIN_PAIRS,
        Warn.LOADED: foreign_cores is not None and foreign_cores > FOREIGN_CORES,
        Warn.OVERSUBSCRIBED: case.threads > cores_allowed(),
        Warn.GOVERNOR: governor() not in ("performance", "unknown"),
    }
    return tuple(warn for warn, holds in facts.items() if holds)


def _read_into_page_cache(path: Path) -> str:
    """The first session then reads from memory as the second does. The digest goes into the result."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def peak_rss_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _rss_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_rss_bytes()
    return pages * resource.getpagesize()
