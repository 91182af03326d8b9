"""The zoo with prebuilt kernels: what a machine without a compiler has."""

from __future__ import annotations

from xyntra_reports import zoo
from xyntra_reports.registry import Report

NOTHING = "Not measured yet: `XYNTRA_CC=none bench run zoo --json reports/results/prebuilt.json` measures it.\n"

REPORTS = [
    Report(
        name="prebuilt",
        title="The zoo without a compiler",
        render=zoo.render,
        note=zoo.NOTE,
        nothing=NOTHING,
        by_isa=True,
        without_compiler=True,
    )
]
