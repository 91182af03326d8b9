"""Programs as Triton, run by Triton's interpreter, and what they have to give."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from xyntra_ep.frameworks.triton.module import module_text
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Program, ValueKind

Array = NDArray[Any]
CHILD = Path(__file__).with_name("child.py")
needs_triton = [
    pytest.mark.torch,
    pytest.mark.triton,
    pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION:UserWarning"),  # of Triton 3.9, about what it will do later
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A program with its data; ``most``: of max |a - b| / max |b|, of what is stored as f32."""

    name: str
    program: Program
    inputs: Sequence[Array]
    constants: Sequence[Array] = ()
    most: float = 2e-6


def kind(program: Program, of: ValueKind) -> list[DType]:
    values = sorted((v for v in program.values if v.kind is of), key=lambda v: v.index)
    return [v.dtype for v in values]


def run_child(jobs: Sequence[Any], folder: Path) -> list[Any]:
    given, results = folder / "jobs.pickle", folder / "results.pickle"
    given.write_bytes(pickle.dumps(list(jobs)))
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(CHILD), str(given), str(results)], env=environment, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: list[Any] = pickle.loads(results.read_bytes())
    return found


def differences(cases: Sequence[Case], folder: Path) -> list[str]:
    """A line for each output that is not what it should be."""
    jobs = []
    for number, case in enumerate(cases):
        module = module_text(case.name, [case.program])
        assert not module.refused, (case.name, module.refused)
        path = folder / f"module_{number}.py"
        path.write_text(module.text, encoding="utf-8")
        arguments = list(zip(case.inputs, map(str, kind(case.program, ValueKind.INPUT)), strict=True))
        weights = zip(case.program.constants, case.constants, kind(case.program, ValueKind.CONST), strict=True)
        jobs.append((str(path), "island_0", arguments, {name: (array, str(dtype)) for name, array, dtype in weights}))
    found = []
    for case, got in zip(cases, run_child(jobs, folder), strict=True):
        if isinstance(got, str):
            found.append(f"{case.name}: {got}")
            continue
        wanted = interpret(case.program, case.inputs, case.constants)
        for k, (dtype, ours, right) in enumerate(zip(kind(case.program, ValueKind.OUTPUT), got, wanted, strict=True)):
            if (line := _difference(dtype, to_float64(ours, dtype), right, case.most)) is not None:
                found.append(f"{case.name}, output {k}: {line}")
    return found


_HALF_A_STEP = {DType.F16: 2.0**-10, DType.BF16: 2.0**-7}


def _difference(dtype: DType, ours: Array, right: Array, most: float) -> str | None:
    if ours.shape != right.shape:
        return f"shape {ours.shape}, not {right.shape}"
    if not dtype.is_float:
        wrong = int((ours != to_float64(from_float64(right, dtype), dtype)).sum())
        return f"{wrong} of {ours.size} differ" if wrong else None
    right = to_float64(from_float64(right, dtype), dtype)
    finite = np.isfinite(right)
    odd = int((~finite & ~((ours == right) | (np.isnan(ours) & np.isnan(right)))).sum())
    if odd:
        return f"{odd} of NaN and infinity are wrong"
    scale = float(np.abs(right[finite]).max(initial=0.0)) or 1.0
    error = float(np.abs(ours[finite] - right[finite]).max(initial=0.0)) / scale
    return None if error <= max(most, _HALF_A_STEP.get(dtype, 0.0)) else f"error {error:.2g}"
