"""Text from a prompt: time to the first token, tokens per second after it."""

from __future__ import annotations

from collections.abc import Iterator

from bench.plan import Scenario
from bench.results import CaseResult, Run, Status
from bench.show import milliseconds, named
from reports._markdown import cases_of, provenance, speed_up, table
from reports.registry import Report

HEADER = (
    "model",
    "provider",
    "threads",
    "tokens",
    "first token p50 ms",
    "speed-up [95 %]",
    "tokens/s",
    "speed-up [95 %]",
    "later token p50 ms",
    "p99 ms (n)",
)
NOTE = (
    "The first token is the run with the whole prompt (`s` tokens) and an empty past; each run after it takes the likeliest "
    "token and the keys and values that the run before has given. Choosing the token and handing the arrays over counts. All "
    "contenders take turns in one process; speed-up is the CPU provider's time over the contender's."
)


def render(run: Run, source: str) -> str:
    rows = [row for case in cases_of(run, Scenario.GENERATE) for row in _rows(case)]
    return f"{table(HEADER, rows, left=2)}\n\n{NOTE}\n\n{provenance(run, source)}\n"


def _rows(case: CaseResult) -> Iterator[list[str]]:
    name = f"{case.model} {case.shape}"
    if case.status is not Status.OK:
        yield [name, "-", str(case.threads), "-", str(case.status), *["-"] * 5]
        return
    for m in case.arms:
        made = m.generation
        if made is None:
            yield [name, named(m), str(m.threads), "-", str(m.status), *["-"] * 5]
            continue
        later = made.later_token
        yield [
            name,
            named(m),
            str(m.threads),
            str(made.tokens),
            milliseconds(made.first_token.p50_ns),
            speed_up(made.first_token_ratio),
            f"{made.tokens_per_s:.3g}",
            speed_up(made.later_token_ratio),
            milliseconds(later.p50_ns),
            f"{milliseconds(later.p99_ns)} ({later.n})",
        ]


REPORTS = [Report(name="generate", title="Text from a prompt", scenario=Scenario.GENERATE, render=render)]
