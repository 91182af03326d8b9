from __future__ import annotations

import io

from rich.console import Console

from bench.plan import QUICK
from bench.results import CaseResult, Measurement, Ratio, Run, Status, Verdict
from bench.show import show_summary
from tests.reports.conftest import ENVIRONMENT


def compared(model: str, median: float, verdict: Verdict) -> CaseResult:
    ratio = Ratio(middle=median, low=median, high=median, pairs=12, rounds=3)
    m = Measurement(label="A", provider="A", options={}, status=Status.OK, ratio=ratio, verdict=verdict)
    return CaseResult(
        model=model, family="", shape="b1", batch=1, seq=None, threads=2, model_sha256="", status=Status.OK, contenders=(m,)
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
