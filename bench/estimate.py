"""Estimates how long each row of a run will take, so that a run with a time limit can choose its rows.

It measures fewer rows, never fewer runs, and names what it leaves out. A child process for each case,
`python -m xyntra_bench.estimate JOB RESULT`, runs the model a few times with the CPU provider; contenders are assumed to be as
fast. Of a module of PyTorch it is eager that runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xyntra_bench.architectures._modules import module_row
from xyntra_bench.codec import decode, encode
from xyntra_bench.contenders import INDUCTOR, PLUGINS, XYNTRA
from xyntra_bench.feeds import case_feeds, case_path
from xyntra_bench.plan import Case, Plan, Scenario
from xyntra_bench.setups import setups_of

ESTIMATE = ("-m", "xyntra_bench.estimate")
LIMIT_S = 300.0
RUNS = 2
COMPILE_S = 15.0  # a first session of XyntraEP's with its kernels and its plan: 5 to 15 seconds on two cores
INDUCTOR_S = 60.0  # of PyTorch's own compiler: 44 seconds for BERT-base, 86 for ResNet-50 on two busy cores
PROCESS_S = 1.5  # to start one and import the runtime
PROFILED_RUNS = 10
SLACK = 1.2  # of the time given, before a row that was chosen is left out after all


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    create_s: float
    run_s: float


def row_s(found: Estimate, case: Case, plan: Plan) -> float:
    """All that a case takes: creating sessions cold, warm and for each round, compiling, the iterations, profile and memory."""
    setups, budget = setups_of(case, plan.contenders), plan.budget
    creations = 2 + budget.creations + budget.rounds
    each_s = creations * found.create_s + _iterations_s(found, case, plan) + PROFILED_RUNS * found.run_s
    memory_s = PROCESS_S + found.create_s + PROFILED_RUNS * found.run_s if case.memory else 0.0
    compiled = sum(setup.contender.provider in (*PLUGINS, XYNTRA) for setup in setups)
    by_inductor = sum(setup.contender.provider == INDUCTOR for setup in setups)
    return PROCESS_S + found.create_s + len(setups) * (each_s + memory_s) + compiled * COMPILE_S + by_inductor * INDUCTOR_S


def _iterations_s(found: Estimate, case: Case, plan: Plan) -> float:
    """The time that one setup takes of the iterations: its timed runs, and one untimed run in each iteration."""
    budget = plan.budget
    if case.scenario is Scenario.SERVER:
        return budget.max_time_s / 2
    iterations, share_s = budget.min_iterations, budget.min_time_s / len(setups_of(case, plan.contenders))
    runs, run_s = budget.min_runs, found.run_s
    if case.scenario is Scenario.GENERATE:
        runs, run_s = runs // max(case.new_tokens - 1, 1) + 1, run_s * case.new_tokens
    iterations = max(iterations, runs // budget.runs_per_iteration)
    return max(share_s, run_s * (iterations * (budget.runs_per_iteration + 1) + budget.rounds * budget.warmups))


def fitting(cases: Sequence[Case], costs_s: Mapping[str, float], left_s: float) -> tuple[Case, ...]:
    """Those that fit, in the order to measure them: with the fewest threads first, so that each model has a row before one has
    two; there models before the quantised ones that were made from them, and the cheap before the expensive. One is always
    measured."""
    chosen: list[Case] = []
    for case in sorted(cases, key=lambda case: (case.threads, case.float_model != "", costs_s[case.label])):
        if not chosen or costs_s[case.label] <= left_s:
            chosen.append(case)
            left_s -= costs_s[case.label]
    return tuple(chosen)


def measure_estimate(case: Case) -> Estimate:
    begin = time.perf_counter()
    run = _eager(case) if case.module else _on_the_cpu_provider(case)
    create_s = time.perf_counter() - begin
    took = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return Estimate(create_s=create_s, run_s=min(took))


def _on_the_cpu_provider(case: Case) -> Callable[[], object]:
    from xyntra_bench.ort_sessions import plain_session

    session = plain_session(case_path(case), threads=case.threads)
    return partial(session.run, None, case_feeds(case, session.get_inputs()))


def _eager(case: Case) -> Callable[[], object]:
    from xyntra_bench.sessions import factory_for

    [setup] = setups_of(case, ())
    session, _ = factory_for(None, setup, Path(), None, case.module).create()
    return partial(session.run, case_feeds(case, module_row(case.module).declared))


if __name__ == "__main__":
    job = decode(Case, json.loads(Path(sys.argv[1]).read_text()))
    Path(sys.argv[2]).write_text(json.dumps(encode(measure_estimate(job))))
