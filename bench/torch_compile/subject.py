"""What the sessions of a case are made of, and what they are fed and asked for: a model file, or a module of PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xyntra_bench.architectures._modules import OUTPUT, module_row
from xyntra_bench.feeds import case_path
from xyntra_bench.ort_sessions import plain_session
from xyntra_bench.plan import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`inputs` are as ONNX Runtime's `get_inputs` describes them."""

    inputs: Sequence[Any]
    outputs: list[str]


def file_of(case: Case) -> Path | None:
    """Of a module its export; None where it was not exported."""
    if case.module:
        return Path(case.file) if case.file else None
    return case_path(case)


def subject_of(case: Case) -> Subject:
    """A file is asked by a session, which also does the runtime's one-time initialisation and touches memory first."""
    if case.module:
        return Subject(inputs=module_row(case.module).declared, outputs=[OUTPUT])
    session = plain_session(case_path(case))
    return Subject(inputs=session.get_inputs(), outputs=[output.name for output in session.get_outputs()])
