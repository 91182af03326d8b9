"""recurrence.supersteps against the interpreter: the cells of ONNX at ragged sizes, both orders of time, rows that end early."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.machine import WIDEST, runnable
from tests.support.programs.recurrences import CELLS, GATES, STATES, recurrence
from tests.support.run_program import check_program
from xyntra_ep.tracea.core_ir.ops import Program, Recurrence
from xyntra_ep.tracea.kernels.cpu.recurrence._panels import panels_of
from xyntra_ep.tracea.kernels.cpu.recurrence.supersteps import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MAX_ERR = 4e-6  # sums of up to 512 products in f32, carried through 50 steps


def data_for(
    cell: str, width: int, steps: int, rows: int, directions: int = 1, lengths: list[int] | None = None, initial: bool = True
) -> tuple[list[Any], list[Any]]:
    """Inputs and constants; the matrices neither explode nor die."""
    rng = np.random.default_rng(width * 100 + steps * 10 + rows)
    gates = GATES[cell]
    inputs: list[Any] = [rng.standard_normal((steps, directions, gates, rows, width)).astype(np.float32)]
    if lengths is not None:
        inputs.append(np.array(lengths, np.int32))
    if initial:
        inputs += [rng.standard_normal((directions, rows, width)).astype(np.float32) for _ in range(STATES[cell])]
    weights = (rng.uniform(-1, 1, (directions, gates, width, width)) / np.sqrt(width)).astype(np.float32)
    return inputs, [weights]


def check(program: Program, data: tuple[list[Any], list[Any]], caps: Capabilities, max_err: float = MAX_ERR) -> list[Any]:
    return check_program(program, *data, caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("width", [1, 3, 8, 17, 64, 100])
def test_widths(cell: str, width: int) -> None:
    program = recurrence(cell, width)
    for caps in runnable(AVX512, AVX2, SCALAR):
        for steps, rows in ((7, 1), (2, 5)):
            check(program, data_for(cell, width, steps, rows), caps)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("width", [256, 512])
def test_wide(cell: str, width: int) -> None:
    """Several chunks, which are walked to and fro."""
    program = recurrence(cell, width)
    for caps in runnable(AVX512, AVX2):
        check(program, data_for(cell, width, 7, 2), caps)
    check(program, data_for(cell, width, 50, 1), WIDEST)


@pytest.mark.parametrize("rows", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_rows(cell: str, rows: int) -> None:
    for caps in runnable(AVX512, AVX2):
        check(recurrence(cell, 40, reverse=(False, True)), data_for(cell, 40, 3, rows, 2), caps)
        check(recurrence(cell, 40, steps=3, rows=rows), data_for(cell, 40, 3, rows), caps)


@pytest.mark.parametrize("reverse", [(False,), (True,), (False, True), (True, True)])
@pytest.mark.parametrize("cell", CELLS)
def test_lengths(cell: str, reverse: tuple[bool, ...]) -> None:
    """Zeros after a row's end, its states as they were there; lengths beyond [0, T] are taken as the nearest in it."""
    lengths = [4, 0, 1, 3, 9, -2, 4]
    program = recurrence(cell, 19, reverse=reverse, lengths=True)
    for caps in runnable(AVX512, AVX2, SCALAR):
        y, *finals = check(program, data_for(cell, 19, 4, len(lengths), len(reverse), lengths), caps)
        assert not y[1:, 2].any() and not y[:, 1].any() and y[0, 2].any()
        assert all(not final[:, 1].any() and final[:, 2].any() for final in finals)


@pytest.mark.parametrize("cell", CELLS)
def test_no_initial_state_and_few_outputs(cell: str) -> None:
    for outputs in ((True, False, False), (False, True, False), (False, False, True)):
        if any(outputs[: 1 + STATES[cell]]):
            program = recurrence(cell, 20, initial=False, outputs=outputs)
            check(program, data_for(cell, 20, 5, 3, initial=False), WIDEST)


@pytest.mark.parametrize(("steps", "rows"), [(0, 2), (2, 0), (0, 0)])
def test_nothing(steps: int, rows: int) -> None:
    """No steps: the final states are zeros."""
    check(recurrence("lstm", 20), data_for("lstm", 20, steps, rows), WIDEST)
    check(recurrence("gru_reset_before", 20), data_for("gru_reset_before", 20, steps, rows), WIDEST)


@pytest.mark.parametrize("cell", CELLS)
def test_special_values(cell: str) -> None:
    """A NaN spoils its row from there on, infinities saturate; other rows do not notice."""
    inputs, constants = data_for(cell, 24, 4, 3)
    inputs[0][1, 0, 0, 0, 3] = np.nan
    inputs[0][2, 0, :, 1, 5] = np.inf
    inputs[0][2, 0, :, 1, 7] = -np.inf
    inputs[0][3, 0, :, 2, :] = -0.0
    for caps in runnable(AVX512, AVX2, SCALAR):
        y = check(recurrence(cell, 24), (inputs, constants), caps)[0]
        assert np.isnan(y[3, 0]).any() and not np.isnan(y[:, 1:]).any()


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("caps", [AVX2, AVX512], ids=lambda caps: caps.isa)
def test_sums_stay_in_registers_whatever_the_rows(cell: str, caps: Capabilities) -> None:
    """Beside the vectors of a step and the element that they are multiplied by; of rows that are not known, too."""
    [op] = recurrence(cell, 64).ops
    assert isinstance(op, Recurrence)
    for rows in (1, 4, 64):
        sized = replace(op, domain=(*op.domain[:2], rows, op.domain[3]))
        for panels in panels_of(sized, caps):
            assert panels.rows * panels.together + panels.together + 1 <= caps.vector_registers
