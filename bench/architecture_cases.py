"""Cases from the architectures: each is exported once, and measured with its dimensions dynamic and fixed."""

from __future__ import annotations

from collections.abc import Sequence

from xyntra_bench.architectures import architectures
from xyntra_bench.errors import BenchError
from xyntra_bench.micro import matches
from xyntra_bench.plan import Budget, Case, Scenario

FAMILY = "architectures"
BUDGET = Budget(rounds=8, warmups=2, min_iterations=48, runs_per_iteration=1, min_time_s=4.0, max_time_s=30.0)
QUICK_BUDGET = Budget(
    rounds=4, warmups=1, min_iterations=16, runs_per_iteration=1, min_time_s=0.0, max_time_s=8.0, until_sure=False
)
CONTENDERS = ("XyntraEP",)


def cases_of_architectures(pattern: str, threads: Sequence[int]) -> tuple[Case, ...]:
    """Those whose name matches, exported if need be."""
    wanted = [a for a in architectures if matches(a.name, pattern)]
    if not wanted:
        raise BenchError(f"'{pattern}': no architecture of that name. there are {', '.join(architectures.names())}")
    from xyntra_bench.architectures._export import exported

    return tuple(
        Case(
            model=a.name,
            family=FAMILY,
            scenario=Scenario.SPECIALISED,
            threads=count,
            file=str(exported(a)),
            shapes=a.shapes,
            max_err=a.max_err,
        )
        for a in wanted
        for count in threads
    )
