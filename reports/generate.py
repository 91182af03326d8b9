"""Text from a prompt: time to the first token, tokens per second after it."""

from __future__ import annotations

from collections.abc import Iterator

from xyntra_bench.plan import Scenario
from xyntra_bench.results import CaseResult, Run
from xyntra_bench.show import milliseconds, named
from xyntra_reports._markdown import case_table, speed_up
from xyntra_reports.registry import Report

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
    "The first token is the run with the whole prompt (`s` tokens) and an empty past. Each later run takes the most likely token "
    "and the keys and values of the run before; choosing the token and passing the arrays on is included. All contenders run "
    "interleaved in one process; speed-up is the CPU provider's time over the contender's."
)


def render(run: Run, source: str) -> str:
    return case_table(run, source, Scenario.GENERATE, HEADER, _rows, NOTE)


def _rows(case: CaseResult) -> Iterator[list[str]]:
    for m in case.measurements:
        head = [f"{case.model} {case.shape}", named(m), str(m.threads)]
        made = m.generation
        if made is None:
            yield [*head, str(m.status)]
            continue
        later = made.later_token
        yield [
            *head,
            str(made.tokens),
            milliseconds(made.first_token.p50_ns),
            speed_up(made.first_token_ratio),
            f"{made.tokens_per_s:.3g}",
            speed_up(made.later_token_ratio),
            milliseconds(later.p50_ns),
            f"{milliseconds(later.p99_ns)} ({later.n})",
        ]


REPORTS = [Report(name="generate", title="Text from a prompt", scenario=Scenario.GENERATE, render=render)]
