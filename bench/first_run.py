"""Asks once whether the CPU provider, the reference for all, can run a user's model at all.

Otherwise minutes would go into ceilings, and into cases that all fail for the same reason.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from xyntra_bench.codec import encode
from xyntra_bench.errors import BenchError
from xyntra_bench.estimate import ESTIMATE, LIMIT_S
from xyntra_bench.plan import Case
from xyntra_bench.run import ChildFailed, in_child

NOT_RUN = "the CPU provider, which all are compared with, cannot run it"


def check_runs(cases: Sequence[Case]) -> None:
    """Runs each batch in a child process, which may crash."""
    for case in {case.batch: case for case in cases}.values():
        with tempfile.TemporaryDirectory(prefix="xyntra-bench-") as folder:
            try:
                in_child(ESTIMATE, encode(case), Path(folder), LIMIT_S)
            except ChildFailed as failure:
                raise BenchError(f"{Path(case.file).name}: {NOT_RUN}: {_said(failure)}{_hint(case)}") from None


def _hint(case: Case) -> str:
    """Behind what the runtime says, where the caller gave what may be wrong."""
    asked = "feeds fit the model" if case.feeds else "shapes given with --shape fit each other"
    return f". do the {asked}?" if case.shapes else ""


def _said(failure: ChildFailed) -> str:
    """The sentence, without "onnxruntime.capi...: [ONNXRuntimeError] : 2 : INVALID_ARGUMENT"."""
    return failure.text.partition("\n")[0].split(" : ", 3)[-1].rstrip(".")
