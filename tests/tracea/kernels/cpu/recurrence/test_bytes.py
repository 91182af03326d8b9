"""recurrence.supersteps of quantised matrices: one step as the interpreter has it, and many steps as so many single ones.

A state that is quantised may fall to another byte by its last bit, and later states follow it; so the interpreter, in float64, is
compared where it was given the same states: after one step, of cells that multiply no result of the step itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.machine import AVX_VNNI, VNNI, WIDEST, runnable
from tests.support.programs.recurrences import GATES, STATES, recurrence
from tests.support.run_program import check_program, run_program
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.ops import Program, Recurrence
from xyntra_ep.tracea.core_ir.ops.memory import Array
from xyntra_ep.tracea.kernels.cpu.recurrence.supersteps import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MAX_ERR = 4e-6  # what follows the integers, in f32
MACHINES = (VNNI, AVX_VNNI, AVX512, AVX2, SCALAR)
Data = tuple[list[Any], list[Any]]


def data_for(
    cell: str, width: int, steps: int, rows: int, directions: int = 1, lengths: list[int] | None = None, initial: bool = True
) -> Data:
    rng = np.random.default_rng(width * 100 + steps * 10 + rows)
    gates = GATES[cell]
    inputs: list[Any] = [rng.standard_normal((steps, directions, gates, rows, width)).astype(np.float32)]
    if lengths is not None:
        inputs.append(np.array(lengths, np.int32))
    if initial:
        inputs += [rng.standard_normal((directions, rows, width)).astype(np.float32) for _ in range(STATES[cell])]
    weights = rng.integers(-128, 128, (directions, gates, width, width)).astype(np.int8)
    scales = (rng.uniform(0.5, 1.5, (directions, gates, width)) / np.sqrt(width) / 64).astype(np.float32)
    return inputs, [weights, scales]


def check(program: Program, data: Data, caps: Capabilities) -> list[Array]:
    return check_program(program, *data, caps, MAX_ERR, variants=VARIANTS)


@pytest.mark.parametrize(("cell", "width"), [*(("lstm", n) for n in (1, 17, 64, 101)), ("rnn", 3), ("gru", 17)])
def test_one_step(cell: str, width: int) -> None:
    program = recurrence(cell, width, of_bytes=True)
    for caps in runnable(*MACHINES):
        for rows in (1, 5):
            check(program, data_for(cell, width, 1, rows), caps)


@pytest.mark.parametrize("rows", [2, 33])
def test_rows(rows: int) -> None:
    for caps in runnable(*MACHINES):
        check(recurrence("lstm", 40, reverse=(False, True), of_bytes=True), data_for("lstm", 40, 1, rows, 2), caps)
        check(recurrence("lstm", 40, steps=1, rows=rows, of_bytes=True), data_for("lstm", 40, 1, rows), caps)


def after_single_steps(program: Program, data: Data, caps: Capabilities) -> tuple[Array, list[Array]]:
    """All states 0, and the last states."""
    (x, *states), constants = data
    sequence = []
    for t in range(len(x)):
        y, *states = run_program(program, [x[t : t + 1], *states], constants, caps, variants=VARIANTS)
        sequence.append(y)
    return np.concatenate(sequence), states


@pytest.mark.parametrize(
    ("cell", "width", "rows"),
    [
        ("lstm", 19, 3),
        ("lstm", 100, 1),
        ("lstm", 320, 2),
        ("rnn", 19, 3),
        ("gru", 19, 3),
        *(("gru_reset_before", n, 2) for n in (19, 320)),
    ],
)
def test_steps_are_single_steps(cell: str, width: int, rows: int) -> None:
    """Bit by bit, with several chunks as well."""
    program = recurrence(cell, width, of_bytes=True)
    for caps in runnable(VNNI, AVX2):
        data = data_for(cell, width, 9, rows)
        y, *finals = run_program(program, *data, caps, variants=VARIANTS)
        wanted, last = after_single_steps(program, data, caps)
        assert y.tobytes() == wanted.tobytes()
        assert [f.tobytes() for f in finals] == [s.tobytes() for s in last]


def test_all_machines_agree() -> None:
    """In the integers, so nearly in all: a state may round to another byte at one of them."""
    program = recurrence("lstm", 72, reverse=(False, True), of_bytes=True)
    data = data_for("lstm", 72, 6, 4, 2)
    results = [run_program(program, *data, caps, variants=VARIANTS)[0] for caps in runnable(*MACHINES)]
    for result in results[1:]:
        assert np.abs(result - results[0]).max() < 2e-2 and np.median(np.abs(result - results[0])) < 1e-6


@pytest.mark.parametrize("reverse", [(False,), (True,), (False, True)])
def test_lengths(reverse: tuple[bool, ...]) -> None:
    """Of at most one step the interpreter knows the result; a row that has ended keeps its states, whatever others do."""
    lengths = [1, 0, 1, 1]
    program = recurrence("lstm", 19, reverse=reverse, lengths=True, of_bytes=True)
    for caps in runnable(*MACHINES):
        inputs, constants = data_for("lstm", 19, 4, len(lengths), len(reverse), lengths)
        check(program, (inputs, constants), caps)
        longer = [inputs[0], np.array([1, 0, 4, 1], np.int32), *inputs[2:]]
        y, *finals = run_program(program, longer, constants, caps, variants=VARIANTS)
        _, *short = run_program(program, inputs, constants, caps, variants=VARIANTS)
        for a, b in zip(finals, short, strict=True):
            np.testing.assert_array_equal(a[:, [0, 1, 3]], b[:, [0, 1, 3]])
        assert not y[1:, [0, 1, 3]].any() and y[3, 2].any()


@pytest.mark.parametrize("cell", ["lstm", "rnn"])
def test_ranges(cell: str) -> None:
    """States of one sign, of nothing but zeros, and such as are far from each other."""
    inputs, constants = data_for(cell, 24, 1, 5)
    for state in inputs[1:]:
        state[0, 0] = np.abs(state[0, 0])
        state[0, 1] = -np.abs(state[0, 1])
        state[0, 2] = 0.0
        state[0, 3, 7] = 1000.0
    for caps in runnable(*MACHINES):
        check(recurrence(cell, 24, of_bytes=True), (inputs, constants), caps)
        check(recurrence(cell, 24, initial=False, of_bytes=True), data_for(cell, 24, 1, 3, initial=False), caps)


def test_lanes_behind_the_last_unit_are_in_no_range() -> None:
    """They hold cos(0), the largest of all."""
    program = recurrence("rnn", 21, of_bytes=True)
    [op] = program.ops
    assert isinstance(op, Recurrence)
    [stage] = op.stages
    [body] = stage.bodies
    program.ops[0] = replace(op, stages=(replace(stage, bodies=(call("cos", *body.args),)),))
    for caps in runnable(*MACHINES):
        check(program, data_for("rnn", 21, 2, 3), caps)


@pytest.mark.parametrize("special", [np.nan, -np.inf])
def test_special_values_spoil_their_row(special: float) -> None:
    for place in (0, 17, 23):
        inputs, constants = data_for("lstm", 24, 3, 3)
        inputs[1][0, 1, place] = special
        for caps in runnable(*MACHINES):
            y = run_program(recurrence("lstm", 24, of_bytes=True), inputs, constants, caps, variants=VARIANTS)[0]
            assert np.isnan(y[:, 1]).all() and not np.isnan(y[:, [0, 2]]).any()
            check(recurrence("lstm", 24, of_bytes=True), ([inputs[0][:1], *inputs[1:]], constants), caps)


@pytest.mark.parametrize(("steps", "rows"), [(0, 2), (2, 0)])
def test_nothing(steps: int, rows: int) -> None:
    for cell in ("lstm", "gru_reset_before"):
        check(recurrence(cell, 20, of_bytes=True), data_for(cell, 20, steps, rows), WIDEST)
