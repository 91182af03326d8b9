from __future__ import annotations

import dataclasses
import re

import pytest

from tests.reports.conftest import CEILINGS, HOSTILE, INSIDE, choice, kernel
from xyntra_bench.results import Inside, KernelTime, Run
from xyntra_reports import choices, parts
from xyntra_reports._kernels import cpu_roofs, groups
from xyntra_reports.choices import ALONE, HEADER, choices_table, chosen, summary

ROOFS = cpu_roofs(CEILINGS)


def inside(*kernels: KernelTime) -> Inside:
    return dataclasses.replace(INSIDE, kernels=kernels)


def cells(text: str) -> list[list[str]]:
    """Of the rows of a table, without its head."""
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in text.splitlines()[2:]]


def test_kernels_that_were_chosen_alike_are_one_row_and_the_hottest_comes_first() -> None:
    products, softmax = cells(choices_table(chosen(INSIDE, ROOFS)))
    assert len(products) == len(softmax) == len(HEADER)
    assert products[0].endswith(" +2 (x2)")
    assert products[1:] == [
        "gemm.packed_b", "rows=8 columns=48", "tuning", "gemm.streamed", "100000", "40000", "50000", "1.25", "96%",
    ]  # fmt: skip
    assert softmax[1:-1] == ["row_reduce.rows", "-", "estimate", ALONE, "-", "20000", "10000", "0.50"]


def test_kernels_whose_choices_differ_are_rows_of_their_own() -> None:
    """The same work by the same variant: only configuration, evidence or runner-up tell them apart."""
    made = (choice(10, rows=8), choice(10, rows=6), choice(10, tuned=True, rows=8), choice(10, "gemm.dots", 20, rows=8))
    found = chosen(inside(*(kernel("n", ns, 100, 100, choice=c) for ns, c in zip((1, 2, 3, 4), made, strict=True))), None)
    assert [c.group.ns for c in found] == [4, 3, 2, 1] and all(c.group.of_roof is None for c in found)
    assert len(groups(inside(*(kernel("n", 1, 100, 100, choice=c) for c in made)), None)) == 1, "elsewhere they are one"


def test_the_rest_is_one_row() -> None:
    found = chosen(inside(*(kernel("n", 100 - i, i, 100, choice=choice(50)) for i in range(5))), None)
    *shown, rest = cells(choices_table(found, rows=3))
    assert len(shown) == 3 and rest == ["2 more", *["-"] * 5, "0.100", "0.193", "1.93", "-"]


def test_what_was_predicted_to_take_nothing_has_no_ratio() -> None:
    found = chosen(inside(kernel("n", 10, 1, 1, choice=choice(0)), kernel("m", 20, 2, 2, choice=choice(10))), None)
    assert [c.ratio for c in found] == [2.0, None] and cells(choices_table(found))[1][-4:] == ["-", "0.0100", "-", "-"]
    assert "One kernel of 1% of the time or more took 2.00 times" in summary(found)
    (nothing,) = chosen(inside(kernel("n", 10, 1, 1, choice=choice(0))), None)
    assert summary([nothing]) == "Measurement (tuning) chose kernels of 0% of the time, estimates those of the rest."


def test_the_summary_says_how_far_predictions_are_off_and_what_measurement_chose() -> None:
    text = summary(chosen(INSIDE, ROOFS))
    assert text.startswith("2 kernels of 1% of the time or more took 0.79 times as long as predicted, by geometric mean")
    assert "off by a factor of 1.58." in text, "one is too short by 1.25, the other too long by 2"
    assert "furthest off is /layer.0/Softmax +2 by row_reduce.rows: 0.50 times" in text
    assert text.endswith("chose kernels of 83% of the time, estimates those of the rest.")


@pytest.mark.parametrize(("ns", "counts"), [(9_900, False), (10_200, True)])
def test_a_kernel_that_hardly_counts_is_not_the_worst(ns: int, counts: bool) -> None:
    small = kernel("/small", ns, 1, 1, choice=choice(ns // 100))
    found = chosen(inside(kernel("/large", 990_000, 2, 2, choice=choice(495_000)), small), None)
    text = summary(found)
    assert ("furthest off is /small" in text) is counts and ("One kernel" in text) is not counts
    assert any("/small" in row[0] for row in cells(choices_table(found)))


def test_it_stands_after_the_roofline() -> None:
    order = [part.name for part in sorted(parts, key=lambda part: part.order)]
    assert order[order.index("roofline") + 1] == "choices"


def test_a_page_has_the_table_its_summary_and_how_to_read_it(run: Run) -> None:
    shown = choices.part(run, run.cases[0])
    assert shown is not None and shown.text.startswith("**XyntraEP**") and shown.text.endswith(choices.HOW_TO_READ)
    assert "| 1.25 | 96% |" in shown.text and "The furthest off is" in shown.text
    assert HOSTILE not in shown.text and "<script" not in shown.text.replace("\\<", "")
    worst = kernel(HOSTILE, 10, 1, 1, choice=choice(1))
    case = dataclasses.replace(run.cases[0], contenders=(dataclasses.replace(run.cases[0].contenders[0], inside=inside(worst)),))
    hostile = choices.part(run, case)
    assert hostile is not None and "<script" not in hostile.text.replace("\\<", ""), "names are escaped in the summary, too"


def test_a_run_from_before_choices_were_stored_has_no_such_section(run: Run) -> None:
    case = run.cases[0]
    old = inside(*(dataclasses.replace(k, choice=None) for k in INSIDE.kernels))
    before = dataclasses.replace(case, contenders=(dataclasses.replace(case.contenders[0], inside=old),))
    assert choices.part(run, before) is None
    assert choices.part(run, dataclasses.replace(case, contenders=())) is None
