"""Measures one case: all its sessions in one process, interleaved. Knows no files of results and no tables."""

from __future__ import annotations

import dataclasses
import hashlib
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.accuracy import compare, compare_quantised, float_error
from xyntra_bench.contenders import BASELINE, Contender
from xyntra_bench.environment import cores_allowed, governor
from xyntra_bench.errors import BenchError, Unavailable, reason_of
from xyntra_bench.feeds import Feeds, case_feeds, float_path, save_feeds
from xyntra_bench.inside import PROVIDER, forget_plans
from xyntra_bench.interleaving import Runner, run_interleaved
from xyntra_bench.loads import Load, Loop, OneAtATime, Streams, forced_logits
from xyntra_bench.machine import CLOCK_CHANGE, Machine, MachineWatch
from xyntra_bench.memory import peak_rss_bytes, rss_bytes
from xyntra_bench.ort_sessions import plain_session
from xyntra_bench.plan import Budget, Case, Scenario
from xyntra_bench.record import conclude, result_of, row_of
from xyntra_bench.results import Accuracy, CaseResult, Check, Creation, Measurement, Moment, Status, Stopped, Warn
from xyntra_bench.serve import MIN_SEARCHES, WallClock, serve_all
from xyntra_bench.sessions import Factory, FixedShapes, Session, factory_for, make_available
from xyntra_bench.setups import Setup, setups_of
from xyntra_bench.statistics import MIN_PAIRS
from xyntra_bench.torch_compile.subject import file_of, subject_of

Outputs = list[npt.NDArray[Any]]

FORCED = 3  # tokens that all contenders are fed, to compare what they make of the past
ALIVE_FILE = "alive"  # touched after each round: a slow model may take its time, a hang is noticed
FEEDS_FILE = "feeds.npz"  # for the processes that measure memory, which must not create a session to ask for inputs


def cache_dir(scratch: Path, setup: Setup) -> Path:
    """Where a setup's provider caches kernels: empty before its first session, kept until the case is over."""
    return scratch / hashlib.sha256(setup.label.encode()).hexdigest()[:12]


def measure(case: Case, contenders: tuple[Contender, ...], budget: Budget, scratch: Path, *, quick: bool) -> CaseResult:
    """Measures all setups, interleaved, until the budget is used. One that fails does not stop the rest. `scratch` gets the
    feeds and the kernel caches, which the memory measurement then uses."""
    watch = MachineWatch()
    setups = setups_of(case, contenders)
    file = file_of(case)
    sha256 = _read_into_page_cache(file) if file else ""
    subject = subject_of(case)
    names = subject.outputs
    feeds = case_feeds(case, subject.inputs)
    fixed = FixedShapes.of(subject.inputs, feeds)
    save_feeds(feeds, scratch / FEEDS_FILE)
    exact = _float_outputs(case, names, feeds)

    failed: dict[str, tuple[Status, str]] = {}
    prepared: dict[str, tuple[Factory, Creation]] = {}
    for setup in setups:
        with _failure_noted(failed, setup):
            make_available(setup.contender.provider)
            cache = cache_dir(scratch, setup)
            factory = factory_for(file, setup, cache, fixed, case.module)
            prepared[setup.label] = (factory, _time_creation(setup, factory, budget, cache))
    runners = {}
    for setup in setups:
        if setup.label in prepared:
            with _failure_noted(failed, setup):
                runners[setup.label] = _start(case, setup, *prepared[setup.label], feeds, names)
    if setups[0].label not in runners:  # without the reference there is nothing to measure
        why = " ".join(failed[setups[0].label][1].split())
        what = "the CPU provider" if setups[0].label == BASELINE else setups[0].label
        raise BenchError(f"{what}, which all are compared with, cannot run it: {why}")

    def after_round() -> None:
        watch.sample()
        (scratch / ALIVE_FILE).touch()

    reference = runners[setups[0].label]
    _check_outputs(case, runners, names, exact, Moment.FIRST, reference=reference)
    iterations, stopped = _run_all(case, list(runners.values()), feeds, budget.for_sessions(len(runners)), after_round)
    machine = watch.seen()
    for runner in runners.values():
        assert runner.session is not None
        runner.outputs = _with_past(case, runner.session, runner.session.outputs(feeds, names), feeds, names)
    _check_outputs(case, runners, names, exact, Moment.LAST, reference=reference)
    measured = [_result(setup, failed, runners) for setup in setups]
    if case.scenario is Scenario.SINGLE_STREAM:
        measured = [_with_inside(m, runners.get(m.label), feeds) for m in measured]
    return dataclasses.replace(
        result_of(case, Status.OK, model_sha256=sha256),
        baseline=measured[0],
        contenders=tuple(measured[1:]),
        warnings=_case_warnings(case, machine, iterations, stopped, budget, quick=quick),
        iterations=iterations,
        stopped=stopped,
        wall_s=machine.wall_s,
        cpu_s=machine.cpu_s,
        throttled_s=machine.throttled_s,
        clock_before_mhz=machine.clock_before_mhz,
        clock_after_mhz=machine.clock_after_mhz,
        clock_low_mhz=machine.clock_low_mhz,
        clock_high_mhz=machine.clock_high_mhz,
        load_before=machine.load_before,
        load_after=machine.load_after,
        load_high=machine.load_high,
        foreign_cores=machine.foreign_cores,
        stolen_cores=machine.stolen_cores,
        peak_rss_bytes=peak_rss_bytes(),
    )


@contextmanager
def _failure_noted(failed: dict[str, tuple[Status, str]], setup: Setup) -> Iterator[None]:
    """Notes whatever a contender raises: a failure is a result too."""
    try:
        yield
    except Unavailable as error:
        failed[setup.label] = (Status.UNAVAILABLE, str(error))
    except Exception as error:
        failed[setup.label] = (Status.FAILED, reason_of(error))


def _time_creation(setup: Setup, factory: Factory, budget: Budget, cache: Path) -> Creation:
    """Times session creation: cold, with cached kernels but no cached plan, and warm (the median). Only one session is alive at a
    time: with another one, memory could not be reused and weights could be shared, which would change the times."""
    compilers_s = _children_s()
    session, cold_ns = factory.create(watched=True)
    compilers_s = _children_s() - compilers_s
    planned_ns = None
    if setup.contender.provider == PROVIDER and cache.is_dir() and forget_plans(cache):
        del session
        session, planned_ns = factory.create()
    warm = []
    for _ in range(budget.creations):
        del session
        session, took = factory.create()
        warm.append(took)
    del session
    kept = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file()) if cache.is_dir() else None
    return Creation(
        cold_ns=cold_ns,
        planned_ns=planned_ns,
        warm_ns=int(np.median(warm)),
        compile_cpu_ns=None if planned_ns is None else int(compilers_s * 1e9),
        rss_growth_bytes=0,
        artefact_bytes=kept,
    )


def _children_s() -> float:
    """Processor time of the child processes that have ended; for a contender that compiles, of its compilers."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _start(case: Case, setup: Setup, factory: Factory, creation: Creation, feeds: Feeds, names: list[str]) -> Runner:
    """Creates the session that will run, beside those of the others, and times its first run."""
    before = rss_bytes()
    session, _ = factory.create()
    creation = dataclasses.replace(creation, rss_growth_bytes=max(rss_bytes() - before, 0))
    begin = time.perf_counter_ns()
    outputs = session.outputs(feeds, names)
    first_run_ns = time.perf_counter_ns() - begin
    load: Load = OneAtATime()
    if case.scenario is Scenario.GENERATE:
        load = Loop(names, case.new_tokens)
    elif setup.streams and case.scenario is not Scenario.SERVER:
        load = Streams(setup.streams)
    return Runner(
        setup=setup,
        factory=factory,
        session=session,
        creation=creation,
        placement=session.placement(),
        precision=session.precision(),
        device=session.device(),
        load=load,
        outputs=_with_past(case, session, outputs, feeds, names),
        first_run_ns=first_run_ns,
    )


def _run_all(
    case: Case, runners: list[Runner], feeds: Feeds, budget: Budget, after_round: Callable[[], None]
) -> tuple[int, Stopped]:
    if case.scenario is not Scenario.SERVER:
        return run_interleaved(runners, feeds, budget, after_round)
    bound_ns = None if case.p99_bound_ms is None else int(case.p99_bound_ms * 1e6)
    return serve_all(runners, feeds, budget, bound_ns, WallClock(), after_round)


def _with_past(case: Case, session: Session, outputs: Outputs, feeds: Feeds, names: list[str]) -> Outputs:
    """The outputs of a run; of a model that generates, also logits of the tokens after it."""
    if case.scenario is not Scenario.GENERATE:
        return outputs
    made = dict(zip(names, outputs, strict=True))
    return [*outputs, *forced_logits(session, feeds, made, FORCED).values()]


def _float_outputs(case: Case, names: list[str], feeds: Feeds) -> Outputs | None:
    """Of the model that a quantised one was made from, by the CPU provider. Its session is gone before any is measured."""
    path = float_path(case)
    return plain_session(path, threads=case.threads).run(names, feeds) if path else None


def _check_outputs(
    case: Case, runners: Mapping[str, Runner], names: list[str], exact: Outputs | None, moment: Moment, *, reference: Runner
) -> None:
    """Compares outputs before the iterations, because a contender with wrong results need not be measured until its speed is
    known well; and after them, because memory that is used again may spoil in a later run what was right in the first."""
    for runner in runners.values():
        if exact:
            moved = float_error(case.float_model, names, runner.outputs, exact)
            runner.float_error = max(filter(None, (runner.float_error, moved)), key=lambda found: found.error, default=None)
        if runner is not reference:
            bound = runner.setup.contender.max_err(case.max_err)
            named = [*names, *(f"logits after {i + 1} tokens" for i in range(len(runner.outputs) - len(names)))]
            compared = (
                compare_quantised(named, runner.outputs, reference.outputs, exact, bound)
                if exact
                else compare(named, runner.outputs, reference.outputs, bound)
            )
            found = dataclasses.replace(compared, moments=(moment,))
            runner.check = found if runner.check is None else _worse(runner.check, found)


def _worse(first: Check, last: Check) -> Check:
    """The worse of two checks of a contender: the wrong one, otherwise the one with the larger error."""
    worst = first if first.state is not Accuracy.OK else last
    if first.state is last.state is Accuracy.OK:
        worst = max(first, last, key=lambda check: check.error or 0.0)
    return dataclasses.replace(worst, moments=(*first.moments, *last.moments))


def _result(setup: Setup, failed: Mapping[str, tuple[Status, str]], runners: Mapping[str, Runner]) -> Measurement:
    if setup.label in failed:
        return row_of(setup, *failed[setup.label])
    return conclude(runners[setup.label], runners)


def _with_inside(m: Measurement, runner: Runner | None, feeds: Feeds) -> Measurement:
    """Profiles the session, after the iterations, so that profiling disturbs none of them."""
    if runner is None or m.latency is None:
        return m
    session = runner.session
    assert session is not None
    run_ns = m.latency.p50_ns
    return dataclasses.replace(m, inside=session.inside(feeds, run_ns), device_ns=session.device_ns(feeds, run_ns))


def _case_warnings(
    case: Case, machine: Machine, iterations: int, stopped: Stopped, budget: Budget, *, quick: bool
) -> tuple[Warn, ...]:
    facts = {
        Warn.QUICK: quick,
        Warn.CUT_SHORT: stopped is Stopped.CUT,
        Warn.FEW_ITERATIONS: iterations < (MIN_SEARCHES if case.scenario is Scenario.SERVER else MIN_PAIRS),
        Warn.STILL_UNSURE: budget.until_sure and stopped in (Stopped.TIME, Stopped.ITERATIONS),
        Warn.LOADED: machine.loaded,
        Warn.STOLEN: machine.robbed,
        Warn.THROTTLED: bool(machine.throttled_s),
        Warn.CLOCK: machine.clock_changed > CLOCK_CHANGE,
        Warn.OVERSUBSCRIBED: case.threads > cores_allowed(),
        Warn.GOVERNOR: governor() not in ("performance", "unknown"),
    }
    return tuple(warn for warn, holds in facts.items() if holds)


def _read_into_page_cache(path: Path) -> str:
    """Reads the model file once, so that the first session finds it in memory as the second does. Returns its digest."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
