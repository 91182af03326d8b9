"""Runs live sessions interleaved, so that what disturbs the machine disturbs all of them alike.

rounds (new sessions) > iterations (each session once, in rotating order) > timed runs of one session
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from xyntra_bench.feeds import Feeds
from xyntra_bench.loads import Load, Sample
from xyntra_bench.plan import Budget
from xyntra_bench.results import Accuracy, Check, Creation, FloatError, Placement, Serving, Stopped
from xyntra_bench.sessions import Factory, Session
from xyntra_bench.setups import Setup
from xyntra_bench.statistics import MIN_PAIRS
from xyntra_bench.stop import Comparison, Spent, stop, unsettled

# What a session does in an iteration: wait until the process is idle, settle, then timed runs.
IDLE_POLL_S = 0.003
MAX_IDLE_WAIT_S = 0.3
SETTLE_NS = 3_000_000
BLOCK_NS = 5_000_000
MAX_BLOCK_RUNS = 20


@dataclass(slots=True, kw_only=True)
class Runner:
    """A setup's live session, renewed in every round, and what its sessions have shown so far."""

    setup: Setup
    factory: Factory
    session: Session | None  # None while it is being renewed
    creation: Creation
    placement: Placement | None
    precision: str
    load: Load
    device: str = ""
    outputs: list[npt.NDArray[Any]] = field(default_factory=list)
    check: Check | None = None  # against the reference's outputs; the reference itself has none
    float_error: FloatError | None = None  # of a quantised model
    first_run_ns: int = 0
    samples: list[Sample] = field(default_factory=list)
    round_ns: list[list[float]] = field(default_factory=list)  # median of each iteration, by round
    first_ns: list[list[float]] = field(default_factory=list)  # the same of a loop's first token
    later_ns: list[list[float]] = field(default_factory=list)  # and of those after it together
    serving: Serving | None = None

    @property
    def speed_counts(self) -> bool:
        return self.check is None or self.check.state is Accuracy.OK

    @property
    def runs(self) -> int:
        """Timed ones; of a loop, its tokens after the first."""
        return sum(max(len(sample.steps_ns) - 1, 1) for sample in self.samples)

    def run(self, feeds: Feeds) -> Sample:
        assert self.session is not None
        return self.load.sample(self.session, feeds)


def run_interleaved(
    runners: Sequence[Runner], feeds: Feeds, budget: Budget, after_round: Callable[[], None] = lambda: None
) -> tuple[int, Stopped]:
    """Runs rounds until `stop` ends them; returns the number of iterations and why they ended.

    Each round and each iteration begins with another session, so that no session always follows the same one. All sessions
    take part to the end, also those whose comparisons are settled: the run times of a case, which stand beside each other in a
    table, are then of the same iterations. `after_round` may look at the machine.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _rounds(list(runners), feeds, budget, after_round)
    finally:
        if enabled:
            gc.enable()


def comparisons(runners: Sequence[Runner]) -> list[Comparison]:
    """Those that can come to a verdict: both were measured, and the results of both are right."""
    good = {runner.setup.label for runner in runners if runner.speed_counts}
    wanted = [Comparison(label, r.setup.label) for r in runners for label in (r.setup.against, *r.setup.peers)]
    return [pair for pair in wanted if pair.reference in good and pair.other in good]


def _rounds(runners: list[Runner], feeds: Feeds, budget: Budget, after_round: Callable[[], None]) -> tuple[int, Stopped]:
    wanted = comparisons(runners)
    iterations, rounds, begin = 0, 0, time.monotonic()
    while True:
        shift = rounds % len(runners)
        order = runners[shift:] + runners[:shift]
        if rounds > 0:
            renew(order)
        for runner in runners:
            for by_round in (runner.round_ns, runner.first_ns, runner.later_ns):
                by_round.append([])
        iterations += _one_round(order, feeds, budget)
        rounds += 1
        after_round()
        by_label = {runner.setup.label: runner.round_ns for runner in runners}
        left = unsettled(wanted, by_label) if rounds >= budget.rounds else wanted
        spent = Spent(rounds=rounds, iterations=iterations, runs=min(r.runs for r in runners), seconds=time.monotonic() - begin)
        if why := stop(spent, budget, left):
            return iterations, why


def renew(runners: Sequence[Runner]) -> None:
    """Creates new sessions in that order, after all old ones are destroyed."""
    for runner in runners:
        runner.session = None
    for runner in runners:
        runner.session, _ = runner.factory.create()


def _one_round(runners: list[Runner], feeds: Feeds, budget: Budget) -> int:
    """One round's share of the budget's minimum. Where time may cut it short, not before its share of what a verdict takes."""
    for runner in runners:
        _repeat(runner, feeds, at_least=budget.warmups, block_ns=SETTLE_NS)
    before = {runner.setup.label: runner.runs for runner in runners}
    begin, iterations, share = time.monotonic(), 0, 1 / budget.rounds
    while True:
        shift = iterations % len(runners)
        for runner in runners[shift:] + runners[:shift]:
            wait_until_idle()
            _repeat(runner, feeds, at_least=1, block_ns=SETTLE_NS)
            samples = _repeat(runner, feeds, at_least=budget.runs_per_iteration, block_ns=BLOCK_NS)
            _keep(runner, samples)
        iterations += 1
        spent_s = time.monotonic() - begin
        runs = min(runner.runs - before[runner.setup.label] for runner in runners)
        has_iterations = iterations >= budget.min_iterations * share
        enough = has_iterations and spent_s >= budget.min_time_s * share and runs >= budget.min_runs * share
        late = budget.may_cut and iterations >= MIN_PAIRS * share and spent_s >= budget.max_time_s * share
        if enough or late or iterations >= budget.max_iterations * share:
            return iterations


def _keep(runner: Runner, samples: Sequence[Sample]) -> None:
    """An iteration's samples, and the median of each kind."""
    runner.samples += samples
    runner.round_ns[-1].append(float(np.median([sample.ns for sample in samples])))
    if all(len(sample.steps_ns) > 1 for sample in samples):
        runner.first_ns[-1].append(float(np.median([sample.steps_ns[0] for sample in samples])))
        runner.later_ns[-1].append(float(np.median([sum(sample.steps_ns[1:]) for sample in samples])))


def wait_until_idle() -> None:
    """Waits until the process uses little processor time. A runtime's threads may spin after a run; those of the session before
    would take a core from this one, and two equal sessions would differ by up to 1.5x."""
    deadline = time.monotonic() + MAX_IDLE_WAIT_S
    while time.monotonic() < deadline:
        busy_s = time.process_time()
        time.sleep(IDLE_POLL_S)
        if time.process_time() - busy_s < 0.2 * IDLE_POLL_S:
            return


def _repeat(runner: Runner, feeds: Feeds, *, at_least: int, block_ns: int) -> list[Sample]:
    """Runs one session several times in a row; a short model until the block is long enough to be steady."""
    samples: list[Sample] = []
    while len(samples) < at_least or (sum(sample.spent_ns for sample in samples) < block_ns and len(samples) < MAX_BLOCK_RUNS):
        samples.append(runner.run(feeds))
    return samples
