"""The quantised models of the zoo: in short for the README, and with all columns."""

from __future__ import annotations

from functools import partial

from xyntra_bench.plan import Target
from xyntra_reports import summary, zoo
from xyntra_reports.registry import Report

NOTHING = "Not measured yet: `bench run zoo --quantised --json reports/results/quantised.json` measures it.\n"

REPORTS = [
    Report(
        name="quantised-summary",
        title="Quantised models against the CPU provider, in short",
        target=Target.QUANTISED,
        render=partial(summary.render, named={"fp32": "XyntraEP"}),
        nothing=NOTHING,
        by_isa=True,
    ),
    Report(
        name="quantised",
        title="Quantised models against the CPU provider",
        target=Target.QUANTISED,
        render=zoo.render,
        note=zoo.NOTE,
        nothing=NOTHING,
        by_isa=True,
    ),
]
