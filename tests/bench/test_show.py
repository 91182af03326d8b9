from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from bench.plan import QUICK
from bench.results import CaseResult, Measurement, Ratio, Run, Status, Verdict, Weights
from bench.show import refused_percentiles, show_summary
from bench.statistics import latency
from tests.reports.conftest import ENVIRONMENT


def compared(model: str, median: float, verdict: Verdict) -> CaseResult:
    ratio = Ratio(middle=median, low=median, high=median, pairs=12, rounds=3)
    m = Measurement(label="A", provider="A", options={}, status=Status.OK, ratio=ratio, verdict=verdict)
    return CaseResult(
        model=model,
        family="",
        shape="b1",
        batch=1,
        seq=None,
        threads=2,
        model_sha256="",
        weights=Weights.RANDOM,
        status=Status.OK,
        contenders=(m,),
    )


def test_percentiles_that_few_runs_cannot_tell_are_named() -> None:
    def of(*counts: int) -> str:
        measured = [
            Measurement(label=str(n), provider="A", options={}, status=Status.OK, latency=latency([1000] * n)) for n in counts
        ]
        case = dataclasses.replace(compared("x", 1.0, Verdict.SAME), contenders=tuple(measured))
        return refused_percentiles(Run(environment=ENVIRONMENT, budget=QUICK, cases=(case,)))

    assert of(1000) == ""
    assert of(200, 30) == (
        "percentiles left out: p99 in 1 of 2, which needs 100; p99.9 in 2 of 2, which needs 1000 runs. "
        "a longer run has them: --min-time"
    )


def test_the_summary_names_the_cases_that_lose_worst_first() -> None:
    cases = (
        compared("x", 0.9, Verdict.SLOWER),
        compared("y", 4.0, Verdict.FASTER),
        compared("z", 0.5, Verdict.SLOWER),
        compared("u", 0.98, Verdict.UNSURE),
    )
    console = Console(file=io.StringIO(), width=200)
    show_summary(console, Run(environment=ENVIRONMENT, budget=QUICK, cases=cases))
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    assert text == "A: 1.15x in geometric mean of 4; slower in 2: z b1 t2 0.50x, x b1 t2 0.90x\n"
