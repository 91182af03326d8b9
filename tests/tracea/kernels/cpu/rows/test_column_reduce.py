"""column_reduce.columns against the interpreter: pools in both layouts, means over leading axes, Softmax over channels."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.machine import runnable, widest_vectors
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, rows
from tests.support.programs.random import RandomProgram
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_int, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind, RowReduce, Stage
from xyntra_ep.tracea.kernels.cpu.rows.column_reduce import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

VECTORS = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON)]


def check(program: Program, inputs: list[np.ndarray], caps: Capabilities | None = None, max_err: float = 2e-6) -> None:
    check_program(program, inputs, [], caps or widest_vectors(), max_err, variants=VARIANTS)


def pool(kind: ReduceKind, shape: tuple[int | str, ...], kernel: int, stride: int, pad: int, channels_last: bool) -> Program:
    """Over (n, c, h, w), stored as [N, H, W, C] or [N, C, H, W]; a mean counts what is inside the image."""
    n, c, h, w = shape
    p = ProgramBuilder()
    stored = p.input(n, h, w, c) if channels_last else p.input(n, c, h, w)
    x = permuted(stored, (0, 3, 1, 2)) if channels_last else stored
    batch, channels, height, width = x.shape
    extents = [(e + 2 * pad - kernel) // stride + 1 for e in (height, width)]
    outer = (batch, *extents, channels) if channels_last else (batch, channels, *extents)
    channel, first = (3, 1) if channels_last else (1, 2)
    index = [call("sub", call("add", call("mul", axis(first + i), const(stride)), axis(4 + i)), const(pad)) for i in range(2)]
    inside: Expr = const(True)
    for at, extent in zip(index, (height, width), strict=True):
        both = call("and", call("le", const(0), at), call("lt", at, size(extent)))
        inside = both if inside.kind == "const" else call("and", inside, both)
    tap = load(0, axis(0), axis(channel), *index, dtype=DType.F32)
    neutral = const(0.0 if kind is ReduceKind.SUM else float("-inf"))
    stages = [Stage(kind=kind, body=call("where", inside, tap, neutral))]
    result = acc(0)
    if kind is ReduceKind.SUM:
        stages.append(Stage(kind=kind, body=call("to_f", inside)))
        result = call("div", acc(0), acc(1))
    return rows(outer, (kernel, kernel), [x], stages, [(result, True)], p)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("channels_last", [True, False], ids=["nhwc", "nchw"])
@pytest.mark.parametrize("kind", [ReduceKind.MAX, ReduceKind.SUM, ReduceKind.ANY_NAN_MAX], ids=["max", "mean", "nan"])
def test_pools(kind: ReduceKind, channels_last: bool, caps: Capabilities) -> None:
    for shape, kernel, stride, pad in (
        ((2, 17, 9, 11), 3, 2, 1),
        ((1, 64, 8, 40), 2, 2, 0),
        ((1, 5, 20, 20), 3, 1, 1),
        ((1, 16, 7, 7), 7, 1, 3),
    ):
        data = random_like(shape, DType.F32, 0)
        data[0, 0, 0, :2] = np.nan if kind is not ReduceKind.SUM else 1.0
        stored = np.ascontiguousarray(data.transpose(0, 2, 3, 1)) if channels_last else data
        check(pool(kind, shape, kernel, stride, pad, channels_last), [stored], caps)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("channels_last", [True, False], ids=["nhwc", "nchw"])
def test_pools_of_sizes_that_only_a_run_knows(channels_last: bool, caps: Capabilities) -> None:
    """Images without pixels too: their windows see the padding alone, and nothing is read."""
    program = pool(ReduceKind.MAX, ("n", 24, "h", "w"), 2, 1, 1, channels_last)
    for n, h, w in ((2, 9, 40), (1, 1, 1), (1, 0, 5), (2, 3, 0), (1, 0, 0)):
        data = random_like((n, 24, h, w), DType.F32, h)
        check(program, [np.ascontiguousarray(data.transpose(0, 2, 3, 1)) if channels_last else data], caps)


@pytest.mark.parametrize("shape", [("n", 24, 20, 20), ("n", 24, "h", "w"), (1, 24, "h", "w")])
def test_sizes_that_only_a_run_knows_cost_no_gather(shape: tuple[int | str, ...]) -> None:
    [kernel] = plan_for(pool(ReduceKind.MAX, shape, 3, 2, 1, channels_last=True), AVX512, VARIANTS).kernels
    assert "gather" not in kernel.text and "f32x1(" not in kernel.text  # neither for whole vectors nor for their rest


@pytest.mark.parametrize("caps", VECTORS)
def test_means_over_leading_axes(caps: Capabilities) -> None:
    n = caps.lanes
    for columns in (1, n - 1, n, 4 * n + 1, 300):
        for terms in (0, 1, 49, 1000):
            p = ProgramBuilder()
            x = p.input(terms, "c")
            turned = permuted(x, (1, 0))
            program = rows(
                turned.shape[:1], (terms,), [turned], [Stage(kind=ReduceKind.SUM, body=here(turned, 0))], [(acc(), True)], p
            )
            check(program, [random_like((terms, columns), DType.F32, 0)], caps)


def test_long_sums_are_added_in_chunks() -> None:
    p = ProgramBuilder()
    x = p.input(60000, 16)
    turned = permuted(x, (1, 0))
    program = rows((16,), (60000,), [turned], [Stage(kind=ReduceKind.SUM, body=here(turned, 0))], [(acc(), True)], p)
    check(program, [random_like((60000, 16), DType.F32, 0) + 1], max_err=3e-6)


@pytest.mark.parametrize("caps", VECTORS)
def test_softmax_over_channels(caps: Capabilities) -> None:
    p = ProgramBuilder()
    x = p.input("n", 5, "s")
    turned = permuted(x, (0, 2, 1))
    weight = call("exp", call("sub", here(turned, 0), acc(0)))
    stages = [Stage(kind=ReduceKind.MAX, body=here(turned, 0)), Stage(kind=ReduceKind.SUM, body=weight)]
    program = rows(turned.shape[:2], (5,), [turned], stages, [(call("div", weight, acc(1)), False)], p)
    data = random_like((2, 5, 37), DType.F32, 0)
    data[1, :, 3], data[0, 2, 4] = -np.inf, np.nan
    check(program, [data], caps)


@pytest.mark.parametrize("kind", [ReduceKind.ARGMAX, ReduceKind.ARGMIN_LAST])
def test_positions(kind: ReduceKind) -> None:
    p = ProgramBuilder()
    x = p.input(6, 3, 50)
    turned = permuted(x, (2, 0, 1))
    stage = Stage(kind=kind, body=here(turned, 0), dtype=DType.I64)
    program = rows((50,), (6, 3), [turned], [stage], [(acc_int(0), True)], p, DType.I64)
    check(program, [np.round(random_like((6, 3, 50), DType.F32, 0))])


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_random_expressions(seed: int) -> None:
    made = RandomProgram(seed, rank=(2, 3, 4)[seed % 3], symbolic=seed % 4 == 0, special=seed % 3 == 2)
    made.row_reduce(inner=1, depth=seed % 3)
    machines = runnable(AVX512, AVX2)
    caps = machines[seed // 2 % len(machines)]
    op = made.program.ops[0]
    assert isinstance(op, RowReduce)
    if VARIANTS[0].admits(op, BuildContext(caps=caps, program=made.program)) is not None:
        return
    check_program(made.program, made.inputs, [], caps, 3e-5, variants=VARIANTS, seed=seed)


def test_what_is_left_to_others() -> None:
    p = ProgramBuilder()
    x = p.input(4, 16)
    program = rows((4,), (16,), [x], [Stage(kind=ReduceKind.SUM, body=here(x, 0))], [(acc(), True)], p)
    op = program.ops[0]
    assert isinstance(op, RowReduce)
    reasons = [VARIANTS[0].admits(op, BuildContext(caps=caps, program=program)) for caps in (AVX512, SCALAR)]
    assert reasons == [None, "the machine has no vectors"]
    assert "xy_rows" in plan_for(program, AVX512).kernels[0].symbol
    pooled = pool(ReduceKind.MAX, (1, 64, 8, 8), 3, 2, 1, channels_last=True)
    assert "xy_columns" in plan_for(pooled, AVX512).kernels[0].symbol


def test_rows_that_leave_the_caches_before_a_line_is_used_again() -> None:
    """Each row of channels-last sound meets one element of a line, and has lost it when the next row comes."""
    p = ProgramBuilder()
    turned, *parameters = permuted(p.input(3199, 512), (1, 0)), p.input(512), p.input(512)
    centred = call("sub", here(turned, 0), call("mul", acc(0), const(1 / 3199)))
    scale, shift = (load(k, axis(0), dtype=DType.F32) for k in (1, 2))
    result = call("add", call("mul", call("div", centred, call("sqrt", acc(1))), scale), shift)
    stages = [Stage(kind=ReduceKind.SUM, body=body) for body in (here(turned, 0), call("mul", centred, centred))]
    program = rows((512,), (3199,), [turned, *parameters], stages, [(result, False)], p)
    assert "xy_columns" in plan_for(program, AVX512).kernels[0].symbol
