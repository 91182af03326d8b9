"""One case: all sessions in one process, taking turns. Knows no files and no tables."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import resource
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.accuracy import compare
from bench.environment import LoadWatch, cores_allowed, governor, load_1m
from bench.feeds import Feeds, case_feeds, case_path
from bench.plan import BASELINE, Budget, Case, Contender
from bench.results import (
    Accuracy,
    CaseResult,
    Creation,
    Measurement,
    Placement,
    Status,
    Verdict,
    Warn,
)
from bench.sessions import SessionFactory, make_available, placement
from bench.statistics import MIN_PAIRS, judge, latency, paired_ratio

NOISY_CV = 0.10
SLOW_FIRST_RUN = 3.0
FOREIGN_CORES = 0.25

# One turn of a session: wait until the process is idle, settle, then timed runs.
IDLE_POLL_S = 0.003
MAX_IDLE_WAIT_S = 0.3
SETTLE_NS = 3_000_000
BLOCK_NS = 5_000_000
MAX_BLOCK_RUNS = 20


@dataclass(slots=True, kw_only=True)
class Runner:
    """A live session and what it has shown so far."""

    contender: Contender
    session: Any
    creation: Creation
    placement: Placement | None
    outputs: list[npt.NDArray[Any]] = field(default_factory=list)
    first_run_ns: int = 0
    samples_ns: list[int] = field(default_factory=list)
    turn_ns: list[float] = field(default_factory=list)

    def run(self, feeds: Feeds) -> int:
        begin = time.perf_counter_ns()
        self.session.run(None, feeds)
        return time.perf_counter_ns() - begin


def measure(case: Case, contenders: tuple[Contender, ...], budget: Budget, *, quick: bool) -> CaseResult:
    """Baseline and contenders in turns until the budget is used. One that fails does not stop the rest."""
    wall_begin, load_before, watch = time.monotonic(), load_1m(), LoadWatch()
    path = case_path(case)
    sha256 = _read_into_page_cache(path)
    with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as scratch:
        baseline = _start(path, Contender(provider=BASELINE), case, budget, Path(scratch) / "baseline")
        feeds = case_feeds(case, baseline.session.get_inputs())
        _first_run(baseline, feeds)
        runners, failed = [baseline], dict[int, str]()
        for i, contender in enumerate(contenders):
            try:
                make_available(contender.provider)
                runner = _start(path, contender, case, budget, Path(scratch) / str(i))
                _first_run(runner, feeds)
                runners.append(runner)
            except Exception as error:  # whatever a provider throws is a result of measuring it
                failed[i] = f"{type(error).__name__}: {error}"
        turns = _take_turns(runners, feeds, budget)
        names = [output.name for output in baseline.session.get_outputs()]
        foreign_cores = watch.foreign_cores()
        survivors = iter(runners[1:])
        measured = tuple(
            _failure(contender, failed[i])
            if i in failed
            else _conclude(next(survivors), baseline, names, case)
            for i, contender in enumerate(contenders)
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


def _start(path: Path, contender: Contender, case: Case, budget: Budget, cache_dir: Path) -> Runner:
    """Create cold, then warm as often as the budget says; the last session is the one that runs."""
    factory = SessionFactory(path, contender, case.threads, cache_dir)
    session, cold_ns = factory.create()
    warm = []
    before = _rss_bytes()
    for _ in range(budget.creations):
        session = None  # only one alive at a time, so that shared weights cannot make creation look cheap
        gc.collect()
        before = _rss_bytes()
        session, took = factory.create()
        warm.append(took)
    creation = Creation(
        cold_ns=cold_ns, warm_ns=int(np.median(warm)), rss_growth_bytes=max(_rss_bytes() - before, 0)
    )
    return Runner(contender=contender, session=session, creation=creation, placement=placement(session))


def _first_run(runner: Runner, feeds: Feeds) -> None:
    begin = time.perf_counter_ns()
    outputs = runner.session.run(None, feeds)
    runner.first_run_ns = time.perf_counter_ns() - begin
    runner.outputs = [np.array(output) for output in outputs]  # copied: a provider may reuse its buffers


def _take_turns(runners: list[Runner], feeds: Feeds, budget: Budget) -> int:
    """Rotating who starts, so that no session always follows the same other."""
    for runner in runners:
        for _ in range(budget.warmups):
            runner.run(feeds)
    enabled = gc.isenabled()
    gc.disable()
    try:
        begin, turns = time.monotonic(), 0
        while True:
            shift = turns % len(runners)
            for runner in runners[shift:] + runners[:shift]:
                _wait_until_idle()
                _repeat(runner, feeds, at_least=1, block_ns=SETTLE_NS)
                samples = _repeat(runner, feeds, at_least=budget.runs_per_turn, block_ns=BLOCK_NS)
                runner.samples_ns += samples
                runner.turn_ns.append(float(np.median(samples)))
            turns += 1
            spent = time.monotonic() - begin
            enough = turns >= budget.min_turns and spent >= budget.min_time_s
            if enough or spent >= budget.max_time_s or turns >= budget.max_turns:
                return turns
    finally:
        if enabled:
            gc.enable()


def _wait_until_idle() -> None:
    """ONNX Runtime's pool threads spin for some 40 ms after a run. Left alone, those of the session that ran
    before would take a core from this one, and two equal sessions would measure up to 1.5x apart."""
    deadline = time.monotonic() + MAX_IDLE_WAIT_S
    while time.monotonic() < deadline:
        busy_s = time.process_time()
        time.sleep(IDLE_POLL_S)
        if time.process_time() - busy_s < 0.2 * IDLE_POLL_S:
            return


def _repeat(runner: Runner, feeds: Feeds, *, at_least: int, block_ns: int) -> list[int]:
    """Runs of one session in a row; short models are run until the block is long enough to have settled."""
    samples: list[int] = []
    while len(samples) < at_least or (sum(samples) < block_ns and len(samples) < MAX_BLOCK_RUNS):
        samples.append(runner.run(feeds))
    return samples


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
    ratio = paired_ratio(baseline.turn_ns, runner.turn_ns) if check.state is Accuracy.OK else None
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
