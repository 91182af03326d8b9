"""transpose.tiled against the interpreter: ragged squares, half precision, more operands; and that it is chosen."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, pointwise
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, call, const, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Pointwise, Program
from xyntra_ep.tracea.kernels.cpu.pointwise.transpose_tiled import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

VECTORS = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2)]
ERR = {DType.F32: 1e-7, DType.F16: 1e-3, DType.BF16: 8e-3}


def check(program: Program, inputs: list[np.ndarray], caps: Capabilities, max_err: float = 1e-7) -> None:
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


def matrix(m: int | str, n: int | str, dtype: DType = DType.F32, result: DType = DType.F32) -> Program:
    p = ProgramBuilder()
    x = permuted(p.input(m, n, dtype=dtype), (1, 0))
    return pointwise(x.shape, [x], here(x, 0), p, result)


@pytest.mark.parametrize("caps", VECTORS)
def test_ragged_squares(caps: Capabilities) -> None:
    n = caps.lanes
    for rows in (2, n - 1, n, n + 1, 4 * n + 5):
        for columns in (3, n, 4 * n + 1, 70):
            check(matrix("m", "n"), [random_like((rows, columns), DType.F32, 0)], caps)
    check(matrix("m", "n"), [random_like((0, 5), DType.F32, 0)], caps)
    for shape in ((n, n), (2 * n + 3, 70)):
        check(matrix(*shape), [random_like(shape, DType.F32, 0)], caps)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_half_precision(dtype: DType, caps: Capabilities) -> None:
    check(matrix(37, 50, dtype, dtype), [random_like((37, 50), dtype, 0)], caps, ERR[dtype])


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("dtype", [DType.U8, DType.I8, DType.U16, DType.I16, DType.I32])
def test_integers(dtype: DType, caps: Capabilities) -> None:
    for shape in ((37, 50), (16, 16), (3, 70)):
        check(matrix(*shape, dtype, dtype), [random_like(shape, dtype, 0)], caps, 0.0)


@pytest.mark.parametrize("caps", VECTORS)
def test_bytes_that_become_floats(caps: Capabilities) -> None:
    p = ProgramBuilder()
    x = permuted(p.input("n", 20, 3, 7, dtype=DType.U8), (0, 2, 3, 1))
    body = call("mul", call("to_f", here(x, 0)), const(0.25))
    check(pointwise(x.shape, [x], body, p), [random_like((2, 20, 3, 7), DType.U8, 0)], caps, 0.0)


@pytest.mark.parametrize("caps", VECTORS)
def test_layouts_of_images_with_more_operands(caps: Capabilities) -> None:
    p = ProgramBuilder()
    x, bias, residual = p.input("n", 20, 3, 7), p.input(20), p.input("n", 3, 7, 20)
    last = permuted(x, (0, 2, 3, 1))
    body = call("add", here(last, 0), load(1, axis(3), dtype=DType.F32))
    body = call("relu", call("add", call("mul", body, const(0.5)), here(residual, 2)))
    program = pointwise(last.shape, [last, bias, residual], body, p)
    data = [random_like(s, DType.F32, i) for i, s in enumerate(((2, 20, 3, 7), (20,), (2, 3, 7, 20)))]
    check(program, data, caps, 1e-6)


def test_it_is_chosen_where_it_pays() -> None:
    assert "xy_transpose" in plan_for(matrix(512, 768), AVX512).kernels[0].symbol
    assert "xy_pointwise" in plan_for(matrix(512, 2), AVX512).kernels[0].symbol
    assert "xy_pointwise" in plan_for(matrix(512, 768), SCALAR).kernels[0].symbol


def test_reasons_against_it() -> None:
    p = ProgramBuilder()
    x, y = p.input(40, 50), p.input(40, 50)
    views = [permuted(x, (1, 0)), permuted(y, (1, 0))]
    both = pointwise((50, 40), views, call("add", here(views[0], 0), here(views[1], 1)), p)
    p = ProgramBuilder()
    dense = p.input(8, 8)
    copy = pointwise((8, 8), [dense], here(dense, 0), p)
    for program, reason in ((both, "2 operands are transposed"), (copy, "the result is contiguous along no axis of two")):
        op = program.ops[0]
        assert isinstance(op, Pointwise)
        assert VARIANTS[0].admits(op, BuildContext(caps=AVX512, program=program)) == reason
