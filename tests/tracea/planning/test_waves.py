"""Waves: which steps are side by side, in which order, and that no result changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.programs.builder import ProgramBuilder
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.ops import Operand
from xyntra_ep.tracea.planning.order.waves import REACH, _disjoint
from xyntra_ep.tracea.planning.plan import BufferKind, PlannedProgram
from xyntra_ep.tracea.planning.planner import plan_program
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, Capabilities

ROWS = 64


def waves_of(p: ProgramBuilder, caps: Capabilities = AVX512) -> list[list[int]]:
    """The ops of each wave, and of steps alone, in the order in which they are carried out."""
    return groups(plan_for(p.program, caps))


def groups(planned: PlannedProgram) -> list[list[int]]:
    found, at = [], 0
    starts = {wave.first: wave.last for wave in planned.waves}
    while at < len(planned.run):
        last = starts.get(at, at)
        found.append([planned.run[i].op for i in range(at, last + 1)])
        at = last + 1
    return found


def checked(p: ProgramBuilder, *shapes: tuple[int, ...], caps: Capabilities = WIDEST) -> PlannedProgram:
    """Against the interpreter; steps of a wave come in random order there."""
    rng = np.random.default_rng(3)
    constants = [rng.standard_normal(v.shape).astype(np.float32) for v in p.program.values if v.kind == "const"]  # type: ignore[arg-type]
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for seed in (0, 7):
        check_program(p.program, inputs, constants, caps, max_err=1e-5, seed=seed)
    return plan_for(p.program, caps)


def product(p: ProgramBuilder, a: Operand, columns: int, out: Operand | None = None) -> Operand:
    depth = a.shape[-1]
    assert isinstance(depth, int)
    return p.gemm(a, p.constant(depth, columns), out=out)


def branches(p: ProgramBuilder, x: Operand, widths: tuple[tuple[int, ...], ...]) -> list[Operand]:
    """Chains of products of ``x``."""
    ends = []
    for chain in widths:
        end = x
        for columns in chain:
            end = product(p, end, columns)
        ends.append(end)
    return ends


@pytest.mark.compiler("gcc")
def test_branches_are_side_by_side_level_by_level() -> None:
    p = ProgramBuilder()
    a, b = branches(p, p.input(ROWS, 32), ((48, 32), (40, 32)))
    p.output(p.add(a, b))
    assert [sorted(wave) for wave in waves_of(p)] == [[0, 2], [1, 3], [4]]
    planned = checked(p, (ROWS, 32))
    assert len(planned.waves) == 2


def test_the_longest_chain_comes_first() -> None:
    p = ProgramBuilder()
    a, b, c = branches(p, p.input(ROWS, 32), ((32,), (32, 32, 32), (32, 32)))
    p.output(p.add(p.add(a, b), c))
    assert waves_of(p)[0] == [1, 4, 0]


def test_a_chain_stays_as_it_is() -> None:
    p = ProgramBuilder()
    x = p.input(ROWS, 32)
    p.output(p.add(*branches(p, x, ((48, 64, 32),)), x))
    planned = plan_for(p.program, AVX512)
    assert planned.waves == () and [step.op for step in planned.run] == [0, 1, 2, 3]


def test_nothing_is_side_by_side_where_that_is_not_wanted() -> None:
    p = ProgramBuilder()
    a, b = branches(p, p.input(ROWS, 32), ((48, 32), (40, 32)))
    p.output(p.add(a, b))
    planned = plan_program(p.program, AVX512, side_by_side=False)
    assert planned.waves == () and [step.op for step in planned.run] == [0, 1, 2, 3, 4]


def test_long_steps_are_alone() -> None:
    p = ProgramBuilder()
    a, b = branches(p, p.input(ROWS, 32), ((4096,), (4096,)))
    slow = replace(AVX512, fma_gflops=0.01)
    p.output(p.add(a, b))
    assert waves_of(p, slow) == [[0], [1], [2]]


def test_what_a_wave_touches_stays_in_the_cache() -> None:
    p = ProgramBuilder()
    a, b, c = branches(p, p.input(ROWS, 32), ((32,), (32,), (32,)))
    p.output(p.add(p.add(a, b), c))
    each = 4 * ROWS * 32
    assert waves_of(p, replace(AVX512, l2_bytes=3 * each))[:2] == [[0, 1], [2]], "what they read, and two results"
    assert waves_of(p, replace(AVX512, l2_bytes=4 * each))[0] == [0, 1, 2]


def test_none_comes_from_far_away() -> None:
    p = ProgramBuilder()
    x = p.input(ROWS, 32)
    *_, a, b = branches(p, x, ((32,) * (REACH + 1), (32,)))
    p.output(p.add(a, b))
    assert waves_of(p)[:2] == [[0], [1, REACH + 1]]


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("axis", [0, 1])
def test_parts_of_one_value_are_side_by_side(axis: int) -> None:
    p = ProgramBuilder()
    x = p.input(ROWS, 32)
    shape = (2 * ROWS, 24) if axis == 0 else (ROWS, 48)
    whole = p.temp(*shape)
    half = replace(whole, shape=(ROWS, 24))
    product(p, x, 24, out=half)
    product(p, x, 24, out=replace(half, offset=24 if axis else ROWS * 24))
    p.output(p.add(whole, whole))
    assert [sorted(wave) for wave in waves_of(p)] == [[0, 1], [2]]
    checked(p, (ROWS, 32))


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize(("columns", "offset"), [(24, 16), (24, 0), (32, 24), (24, 25)], ids=["partly", "all", "around", "rows"])
def test_parts_that_overlap_are_one_after_the_other(columns: int, offset: int) -> None:
    """The second one would win over the first: which comes last is seen."""
    p = ProgramBuilder()
    x = p.input(ROWS, 32)
    whole = p.temp(ROWS + 1, 48)
    product(p, x, 48, out=replace(whole, shape=(ROWS, 48)))
    product(p, p.input(1, 32), 48, out=replace(whole, shape=(1, 48), offset=ROWS * 48))
    first = replace(whole, shape=(ROWS, 24))
    product(p, x, 24, out=first)
    product(p, x, columns, out=replace(first, shape=(ROWS, columns), offset=offset))
    p.output(p.add(whole, whole))
    assert [op for wave in waves_of(p) for op in wave if op in (2, 3)] == [2, 3]
    assert not any({2, 3} <= set(wave) for wave in waves_of(p))
    checked(p, (ROWS, 32), (1, 32))


def test_parts_that_are_not_nested_may_overlap() -> None:
    """Rows every 10 elements and planes every 15: a row further in one part is where a plane further is in the other."""
    p = ProgramBuilder()
    whole = p.temp(64)
    first = Operand(value=whole.value, dtype=whole.dtype, shape=(2, 2, 2), strides=(15, 10, 1))
    assert not _disjoint(first, replace(first, offset=5)), "element 15 is 0 + 15 and 5 + 10"
    nested = replace(first, strides=(20, 10, 1))
    assert _disjoint(nested, replace(nested, offset=5)) and _disjoint(replace(nested, offset=5), nested)
    assert not _disjoint(nested, replace(nested, offset=9)), "into the next row"


@pytest.mark.compiler("gcc")
def test_what_is_read_is_not_overwritten_beside() -> None:
    """No step of a wave takes the memory of an operand that another one of it reads."""
    p = ProgramBuilder()
    x = product(p, p.input(ROWS, 32), 32)
    a = p.add(x, p.constant(32))
    b = p.mul(x, p.constant(32))
    p.output(p.add(a, b))
    planned = checked(p, (ROWS, 32))
    wave = next(wave for wave in planned.waves if planned.run[wave.first].op in (1, 2))
    for step in planned.run[wave.first : wave.last + 1]:
        for use in step.buffers:
            buffer = planned.buffers[use.buffer]
            assert buffer.kind is not BufferKind.ARENA or (buffer.first <= wave.first and wave.last <= buffer.last)
    assert len({use.buffer for step in planned.run[wave.first : wave.last + 1] for use in step.buffers}) >= 4


@pytest.mark.compiler("gcc")
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    """Sums and products of any earlier values, of any length."""
    rng = np.random.default_rng(seed)
    p = ProgramBuilder()
    values = [p.input("n", 16), p.input("n", 16)]
    for _ in range(24):
        a, b = (values[int(i)] for i in rng.integers(max(0, len(values) - 8), len(values), 2))
        kind = rng.integers(3)
        values.append(product(p, a, 16) if kind == 0 else p.add(a, b) if kind == 1 else p.mul(a, p.constant(16)))
    end = values[-1]
    for value in values[-4:-1]:
        end = p.add(end, value)
    p.output(p.add(end, end))
    planned = checked(p, (ROWS, 16), (ROWS, 16))
    assert planned.waves
