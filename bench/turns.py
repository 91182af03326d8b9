"""The order of things: live sessions take turns, so that what disturbs the machine disturbs them alike."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.arms import Arm
from bench.feeds import Feeds
from bench.loads import Load
from bench.plan import Budget
from bench.results import Creation, Placement
from bench.sessions import Factory, Session

# One turn of a session: wait until the process is idle, settle, then timed runs.
IDLE_POLL_S = 0.003
MAX_IDLE_WAIT_S = 0.3
SETTLE_NS = 3_000_000
BLOCK_NS = 5_000_000
MAX_BLOCK_RUNS = 20


@dataclass(slots=True, kw_only=True)
class Runner:
    """An arm's live session, renewed in every round, and what its sessions have shown so far."""

    arm: Arm
    factory: Factory
    session: Session | None  # None only while it is being renewed
    creation: Creation
    placement: Placement | None
    precision: str
    load: Load
    outputs: list[npt.NDArray[Any]] = field(default_factory=list)
    first_run_ns: int = 0
    samples_ns: list[int] = field(default_factory=list)
    round_ns: list[list[float]] = field(default_factory=list)  # median of each turn, by round

    def run(self, feeds: Feeds) -> int:
        """Nanoseconds of a run, or of one among concurrent runs."""
        assert self.session is not None
        return self.load.sample(partial(self.session.run, feeds))


def take_turns(runners: list[Runner], feeds: Feeds, budget: Budget) -> int:
    """All rounds. Rounds and turns rotate who starts, so that no session always follows the same other."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        turns = 0
        for i in range(budget.rounds):
            shift = i % len(runners)
            order = runners[shift:] + runners[:shift]
            if i > 0:
                _renew(order)
            turns += _one_round(order, feeds, budget)
        return turns
    finally:
        if enabled:
            gc.enable()


def _renew(runners: list[Runner]) -> None:
    for runner in runners:
        runner.session = None
    for runner in runners:
        runner.session, _ = runner.factory.create()


def _one_round(runners: list[Runner], feeds: Feeds, budget: Budget) -> int:
    """This round's share of the budget."""
    for runner in runners:
        runner.round_ns.append([])
        _repeat(runner, feeds, at_least=budget.warmups, block_ns=SETTLE_NS)
    begin, turns, share = time.monotonic(), 0, 1 / budget.rounds
    while True:
        shift = turns % len(runners)
        for runner in runners[shift:] + runners[:shift]:
            _wait_until_idle()
            _repeat(runner, feeds, at_least=1, block_ns=SETTLE_NS)
            samples = _repeat(runner, feeds, at_least=budget.runs_per_turn, block_ns=BLOCK_NS)
            runner.samples_ns += samples
            runner.round_ns[-1].append(float(np.median(samples)))
        turns += 1
        spent = time.monotonic() - begin
        enough = turns >= budget.min_turns * share and spent >= budget.min_time_s * share
        if enough or spent >= budget.max_time_s * share or turns >= budget.max_turns * share:
            return turns


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
