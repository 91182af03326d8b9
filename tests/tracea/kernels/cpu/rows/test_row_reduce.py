"""row_reduce.rows against the interpreter: every kind and dtype, normalisations, empty rows, ties, special values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.machine import WIDEST, runnable
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, rows, special_floats
from tests.support.programs.random import RandomProgram
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dims import Size
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, acc, acc_bool, acc_int, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind, Stage
from xyntra_ep.tracea.kernels.cpu.rows.row_reduce import VARIANTS
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
SUM_ERR = 2e-6  # 64 partial sums of rows below 1000 elements
ACC = {DType.F32: acc, DType.I64: acc_int, DType.BOOL: acc_bool}


def check(program: Program, inputs: list[np.ndarray], caps: Capabilities = WIDEST, max_err: float = SUM_ERR) -> None:
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


def layer_norm(m: int | str, n: int | str) -> Program:
    p = ProgramBuilder()
    x, scale = p.input(m, n), p.input(n)
    length = call("to_f", size(x.shape[1]))
    centred = call("sub", here(x, 0), call("div", acc(0), length))
    variance = call("add", call("div", acc(1), length), const(1e-5))
    body = call("mul", call("div", centred, call("sqrt", variance)), load(1, axis(1), dtype=DType.F32))
    stages = [
        Stage(kind=ReduceKind.SUM, body=here(x, 0)),
        Stage(kind=ReduceKind.SUM, body=call("mul", centred, centred)),
    ]
    return rows(x.shape[:1], x.shape[1:], [x, scale], stages, [(body, False)], p)


def softmax(m: int | str, n: int | str, log: bool = False) -> Program:
    p = ProgramBuilder()
    x = p.input(m, n)
    shifted = call("sub", here(x, 0), acc(0))
    weight = call("exp", shifted)
    body = call("sub", shifted, call("log", acc(1))) if log else call("div", weight, acc(1))
    stages = [Stage(kind=ReduceKind.MAX, body=here(x, 0)), Stage(kind=ReduceKind.SUM, body=weight)]
    return rows(x.shape[:1], x.shape[1:], [x], stages, [(body, False)], p)


def reduction(kind: ReduceKind, shape: tuple[int, ...], inner: int, dtype: DType) -> Program:
    p = ProgramBuilder()
    x = p.input(*shape, dtype=dtype)
    result = DType.I64 if "arg" in kind or (dtype is DType.BOOL and kind is ReduceKind.SUM) else dtype.compute
    outer: tuple[Size, ...] = x.shape[: len(shape) - inner]
    stage = Stage(kind=kind, body=here(x, 0), dtype=result)
    return rows(outer, x.shape[len(shape) - inner :], [x], [stage], [(ACC[result](0), True)], p, result)


def edges(caps: Capabilities) -> list[int]:
    n = caps.lanes
    return sorted({1, n - 1, n, n + 1, 4 * n, 5 * n + 3} - {0})


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("make", [layer_norm, softmax])
def test_normalisations(make: Callable[[int | str, int | str], Program], caps: Capabilities) -> None:
    for n in [*edges(caps), 768]:
        check(make(5, n), [random_like((5, n), DType.F32, n), *[random_like((n,), DType.F32, 1)] * (make is layer_norm)], caps)
    for shape in ((3, 50), (0, 4), (2, 5000)):
        data = [random_like(shape, DType.F32, 0), *[random_like(shape[1:], DType.F32, 1)] * (make is layer_norm)]
        check(make("m", "n"), data, caps, 1e-5)


def test_large_offset_costs_layer_norm_no_accuracy() -> None:
    max_err = 1e-4 if WIDEST.lanes > 1 else 3e-4  # without vectors the mean is one chain of 768 sums
    check(layer_norm(4, 768), [random_like((4, 768), DType.F32, 0) + 1000, np.ones(768, np.float32)], max_err=max_err)


def test_softmax_of_special_values() -> None:
    x = random_like((6, 37), DType.F32, 0)
    x[0], x[1, 3], x[2, :30], x[3, 4], x[4] = -np.inf, np.nan, -np.inf, np.inf, -1000.0
    check(softmax(6, 37), [x])
    check(softmax("m", "n"), [x])
    check(softmax(6, 37, log=True), [random_like((6, 37), DType.F32, 1)])


def test_a_sum_of_exponentials_without_a_maximum() -> None:
    """Divided by as it is: its reciprocal overflows where the quotient does not."""
    p = ProgramBuilder()
    x = p.input(4, 40)
    weight = call("exp", here(x, 0))
    stages = [Stage(kind=ReduceKind.SUM, body=weight)]
    program = rows(x.shape[:1], x.shape[1:], [x], stages, [(call("div", weight, acc(0)), False)], p)
    for top in (0.0, -80.0, -89.0, -92.0):
        check(program, [top - random_like((4, 40), DType.F32, 0) ** 2], max_err=2e-2)  # of denormals few digits are left


def test_exponentials_of_a_softmax_are_computed_once() -> None:
    for program, calls in ((softmax(4, 64), 4), (softmax("m", "n"), 4 + 1 + 1)):  # unrolled, single, masked
        text = plan_for(program, AVX512, VARIANTS).kernels[0].text
        assert text[text.index("void xy_rows") :].count("xm_exp_nonpositive_16(") == calls


def test_a_softmax_looks_for_nan_in_its_sum_only() -> None:
    """A NaN among the elements is one among the exponentials; a maximum alone has nothing else to show it."""

    def text(program: Program) -> str:
        return plan_for(program, AVX512, VARIANTS).kernels[0].text.partition('visibility("default")')[2]  # behind log's

    assert "nanf" not in text(softmax(4, 64)) and "nanf" not in text(softmax(4, 64, log=True))
    assert "nanf" in text(reduction(ReduceKind.MAX, (4, 64), 1, DType.F32))


def test_a_normalisation_divides_once_a_row() -> None:
    text = plan_for(layer_norm(4, 64), AVX512, VARIANTS).kernels[0].text
    assert "/ (f32x16)" not in text and "/ 0x" in text


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("kind", list(ReduceKind))
def test_every_kind(kind: ReduceKind, caps: Capabilities) -> None:
    for dtype in (DType.F32, DType.I64, DType.U8, DType.BOOL):
        if dtype is DType.BOOL and kind in (ReduceKind.PROD, ReduceKind.ANY_NAN_MAX):
            continue
        for n in (1, caps.lanes, 5 * caps.lanes + 3):
            check(reduction(kind, (4, n), 1, dtype), [random_like((4, n), dtype, n)], caps, 1e-5)


@pytest.mark.parametrize("kind", list(ReduceKind))
def test_special_values_and_ties(kind: ReduceKind) -> None:
    x = np.round(special_floats((8, 41)))
    x[1], x[2], x[3], x[4, 7], x[5] = np.nan, -np.inf, np.inf, np.nan, 1.0
    if kind in (ReduceKind.SUM, ReduceKind.PROD):
        x = np.where(np.abs(x) > 10, 1, x).astype(np.float32)
    for caps in runnable(AVX512, AVX2):
        check(reduction(kind, x.shape, 1, DType.F32), [x], caps, 1e-5)
    if "arg" in kind:
        check(reduction(kind, (3, 2, 21), 2, DType.F32), [np.round(random_like((3, 2, 21), DType.F32, 0))])
        check(reduction(kind, (2, 40), 1, DType.I64), [np.full((2, 40), -(2**63))])


@pytest.mark.parametrize("kind", [k for k in ReduceKind if "arg" not in k])
def test_empty_rows_give_the_identity(kind: ReduceKind) -> None:
    for dtype in (DType.F32, DType.I64):
        check(reduction(kind, (3, 0), 1, dtype), [np.zeros((3, 0), dtype.numpy)])
        check(reduction(kind, (3, 2, 0), 2, dtype), [np.zeros((3, 2, 0), dtype.numpy)])
    check(reduction(kind, (0, 5), 1, DType.F32), [np.zeros((0, 5), np.float32)])


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_half_precision_is_reduced_in_single(dtype: DType) -> None:
    p = ProgramBuilder()
    x = p.input(3, 100, dtype=dtype)
    program = rows((3,), (100,), [x], [Stage(kind=ReduceKind.SUM, body=here(x, 0))], [(acc(), True)], p)
    check(program, [random_like((3, 100), dtype, 0)])


def test_results_per_row_and_per_element_together() -> None:
    p = ProgramBuilder()
    x = p.input("m", 3, 20)
    body: Expr = call("sub", here(x, 0), call("div", acc(0), const(60.0)))
    stages = [Stage(kind=ReduceKind.SUM, body=here(x, 0)), Stage(kind=ReduceKind.MAX, body=body)]
    program = rows(x.shape[:1], x.shape[1:], [x], stages, [(acc(1), True), (body, False), (acc(0), True)], p)
    for m in (0, 1, 700):
        check(program, [random_like((m, 3, 20), DType.F32, m)])


@pytest.mark.parametrize("seed", range(20))
def test_random_expressions(seed: int) -> None:
    rank = (2, 1, 3, 4)[seed % 4]
    made = RandomProgram(seed, rank=rank, symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.row_reduce(inner=1 + (rank > 2 and seed % 3 == 0), depth=seed % 3)
    machines = runnable(AVX512, AVX2, SCALAR)
    caps = machines[seed % len(machines)]
    check_program(made.program, made.inputs, [], caps, 3e-5, variants=VARIANTS, seed=seed)


@pytest.mark.parametrize("name", ["layer_norm", "softmax"])
def test_text(name: str, golden: Callable[[str, str], None]) -> None:
    program = {"layer_norm": layer_norm, "softmax": softmax}[name](128, 768)
    golden(plan_for(program, AVX512, VARIANTS).kernels[0].readable, ".c")
