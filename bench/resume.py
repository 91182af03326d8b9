"""Going on with an interrupted run: which cases are left, and whether the rest would belong to the same numbers. Pure."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping

from xyntra_bench.environment import Environment
from xyntra_bench.plan import Case, Plan
from xyntra_bench.results import Run

FLAG = "--resume"
MOMENTARY = ("load_1m", "clock_mhz")  # of an environment: they differ from one minute to the next
NAMES = {"git_revision": "revision", "git_dirty": "local changes"}


def left_of(run: Run, plan: Plan) -> tuple[Case, ...]:
    """The cases that the run lacks, in their order. A case that crashed is there: its crash is its result. One that was left out
    for time stays out."""
    done = {case.label for case in run.cases} | {out.case for out in run.left_out}
    return tuple(case for case in plan.cases if case.label not in done)


def differences(run: Run, plan: Plan, environment: Environment, command: str, sha256: Mapping[str, str]) -> tuple[str, ...]:
    """Why the plan cannot go on with this run, a text each; `sha256` is that of each model file now, by its name."""
    return (*_of_options(run, plan, command), *environment_differences(run.environment, environment), *_of_files(run, sha256))


def _of_options(run: Run, plan: Plan, command: str) -> Iterator[str]:
    yield from command_differences(run.command, command)
    for field in dataclasses.fields(plan.budget):
        was, is_now = getattr(run.budget, field.name), getattr(plan.budget, field.name)
        if was != is_now:
            yield f"budget {field.name}: {was}, now {is_now}"
    planned = {case.label for case in plan.cases}
    if unknown := [case.label for case in run.cases if case.label not in planned]:
        yield f"cases: {unknown[0]} is there and was not asked for"


def command_differences(was: str, now: str) -> Iterator[str]:
    """Whether the command was another, but for the flag that goes on with it."""
    before, after = _without_flag(was), _without_flag(now)
    if before != after:
        yield f"options: it was `{before}`, now it is `{after}`"


def environment_differences(was: Environment, now: Environment) -> Iterator[str]:
    """A text each, of what does not differ from one minute to the next."""
    for field in dataclasses.fields(Environment):
        before, after = getattr(was, field.name), getattr(now, field.name)
        if before == after or field.name in MOMENTARY:
            continue
        if isinstance(before, Mapping):
            for name in sorted({*before, *after}):
                if before.get(name) != after.get(name):
                    yield f"{name}: {before.get(name) or 'none'}, now {after.get(name) or 'none'}"
        else:
            yield f"{NAMES.get(field.name, field.name)}: {before}, now {after}"


def _of_files(run: Run, sha256: Mapping[str, str]) -> Iterator[str]:
    for case in run.cases:
        if case.model_sha256 and sha256.get(case.model, case.model_sha256) != case.model_sha256:
            yield f"{case.model}: another file than the one measured"


def _without_flag(command: str) -> str:
    return shlex.join(part for part in shlex.split(command) if part != FLAG)
