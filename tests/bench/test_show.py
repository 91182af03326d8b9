from __future__ import annotations

import dataclasses
import io

from rich.console import Console

from tests.reports.conftest import ENVIRONMENT
from xyntra_bench.plan import QUICK, Scenario, Target
from xyntra_bench.results import Accuracy, CaseResult, Check, FloatError, Measurement, Ratio, Run, Status, Verdict, Weights
from xyntra_bench.show import COLUMNS, FLOAT, outcome, refused_percentiles, rows, show_cases, show_notes, summary
from xyntra_bench.statistics import latency


def compared(model: str, median: float, verdict: Verdict) -> CaseResult:
    ratio = Ratio(middle=median, low=median, high=median, pairs=12, rounds=3)
    m = Measurement(label="A", provider="A", options={}, status=Status.OK, against="CPU", ratio=ratio, verdict=verdict)
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


RIGHT = Check(state=Accuracy.OK, max_err=1e-5, error=0.0)
FAILED = Measurement(label="A", provider="A", options={}, status=Status.FAILED, error="Fail: no such\nmore", against="CPU")


def with_contender(case: CaseResult, m: Measurement) -> CaseResult:
    return dataclasses.replace(case, contenders=(m,))


def told(*cases: CaseResult, target: Target = Target.ZOO) -> list[str]:
    return list(summary(Run(environment=ENVIRONMENT, budget=QUICK, target=target, cases=cases)))


def test_the_summary_counts_every_row_and_claims_nothing_of_those_that_are_unsure() -> None:
    wrong = Check(state=Accuracy.INACCURATE, max_err=1e-5, error=0.5)
    lost = dataclasses.replace(compared("w", 1.0, Verdict.SAME), status=Status.CRASHED, error="killed", contenders=())
    few = Measurement(label="A", provider="A", options={}, status=Status.OK, against="CPU")
    cases = (
        compared("x", 0.9, Verdict.SLOWER),
        compared("y", 4.0, Verdict.FASTER),
        compared("z", 0.5, Verdict.SLOWER),
        compared("s", 1.0, Verdict.SAME),
        compared("u", 98.0, Verdict.UNSURE),
        with_contender(compared("n", 1.0, Verdict.SAME), few),
        with_contender(compared("f", 1.0, Verdict.SAME), FAILED),
        with_contender(compared("i", 1.0, Verdict.SAME), dataclasses.replace(few, check=wrong)),
        lost,
    )
    assert told(*cases) == [
        "A: faster in 1, slower in 2, same in 1, unsure in 2, failed in 3; 1.16x in geometric mean of the 4 that are sure",
        "  slower: z b1 t2 0.50x, x b1 t2 0.90x",
    ]


def test_without_a_row_that_is_sure_there_is_no_mean() -> None:
    assert told(compared("u", 98.0, Verdict.UNSURE)) == [
        "A: faster in 0, slower in 0, same in 0, unsure in 1, failed in 0; none is sure, so there is no mean"
    ]
    lost = dataclasses.replace(compared("w", 1.0, Verdict.SAME), status=Status.CRASHED, contenders=())
    assert told(lost, lost) == ["all: failed in 2"] and told() == []


def test_a_row_that_failed_says_why_in_one_line() -> None:
    case = with_contender(compared("x", 1.0, Verdict.SAME), FAILED)
    [(cells, _)] = rows(case)
    assert len(cells) == len(COLUMNS) and cells[COLUMNS.index("error")] == "failed" and cells[-1] == "Fail: no such"
    assert outcome(case) == "x b1 t2: A failed: Fail: no such"
    whole = dataclasses.replace(case, status=Status.FAILED, error="the CPU provider cannot run it", contenders=())
    [(cells, _)] = rows(whole)
    assert len(cells) == len(COLUMNS) and cells[-2:] == ["", "the CPU provider cannot run it"]


def shown(*cases: CaseResult) -> str:
    file = io.StringIO()
    show_cases(Console(file=file), cases)
    return file.getvalue()


def test_only_tables_with_quantised_models_have_a_column_about_float_models() -> None:
    plain = compared("x", 1.0, Verdict.SAME)
    (m,) = plain.contenders
    m = dataclasses.replace(m, latency=latency([1000] * 9), check=RIGHT)
    plain = dataclasses.replace(plain, contenders=(m,))
    found = FloatError(model="float", error=0.05, rms=0.04, output="y", positions=None, same_largest=None)
    quantised = dataclasses.replace(plain, contenders=(dataclasses.replace(m, float_error=found),))
    assert FLOAT not in shown(plain)
    header, without, with_it = shown(plain, quantised).splitlines()
    assert header.index(FLOAT) < with_it.index("5.0e-02") + len("5.0e-02") and "5.0e-02" not in without


def test_a_contender_beside_itself_says_what_it_is_compared_with() -> None:
    """The form that others are compared with has figures and no verdict, and is not said to have no data."""
    case = dataclasses.replace(compared("x", 1.8, Verdict.FASTER), scenario=Scenario.SPECIALISED)
    [fixed] = case.contenders
    dynamic = Measurement(label="A", provider="A", options={}, status=Status.OK, latency=latency([1000] * 9), check=RIGHT)
    fixed = dataclasses.replace(fixed, label="A fixed", against="A", latency=latency([555] * 9), check=RIGHT)
    case = dataclasses.replace(case, contenders=(dynamic, fixed))
    assert outcome(case) == "x b1 t2 specialised: A fixed: 1.80x faster than dynamic"
    assert [(cells[COLUMNS.index("verdict")], style) for cells, style in rows(case)] == [("", None), ("faster", Verdict.FASTER)]
    same = dataclasses.replace(fixed, verdict=Verdict.SAME, label="A t2")
    scaling = dataclasses.replace(case, scenario=Scenario.SCALING, contenders=(dynamic, same))
    assert outcome(scaling) == "x b1 t2 scaling: A t2: 1.80x same as one thread"


def test_what_several_rows_are_told_alike_is_said_once() -> None:
    console = Console(file=io.StringIO(), width=200)
    case = compared("x", 1.0, Verdict.SAME)
    case = with_contender(case, dataclasses.replace(case.contenders[0], notes=("planned",)))
    cases = (case, dataclasses.replace(case, threads=4))
    show_notes(console, Run(environment=ENVIRONMENT, budget=QUICK, target=Target.MODEL, cases=cases))
    assert console.file.getvalue() == "! x b1 t2 A, x b1 t4 A: planned\n"  # type: ignore[attr-defined]  # the StringIO above


def test_on_a_pipe_the_table_has_columns() -> None:
    console = Console(file=io.StringIO(), width=20)
    show_cases(console, [compared("a-long-name", 1.0, Verdict.SAME), with_contender(compared("x", 1.0, Verdict.SAME), FAILED)])
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the StringIO above
    assert len(lines) == 3 and "\t" not in "".join(lines) and "\x1b" not in "".join(lines)
    assert {line[lines[0].index("shape") :][:2] for line in lines[1:]} == {"b1"}
    assert lines[2].index("failed") == lines[0].index("error") and lines[2].endswith("Fail: no such")
