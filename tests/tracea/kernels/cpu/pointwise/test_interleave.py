"""interleave.few against the interpreter: two to four planes, ragged rows, more operands; and that it is chosen."""

from __future__ import annotations

import pytest

from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, pointwise
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import axis, call, const, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Pointwise, Program
from xyntra_ep.tracea.kernels.cpu.pointwise.interleave_few import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

VECTORS = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2)]
ERR = {DType.F32: 1e-7, DType.F16: 1e-3, DType.BF16: 8e-3}


INTEGERS = (DType.U8, DType.I8, DType.U16, DType.I16, DType.I32)


def image(planes: int, result: DType = DType.F32, dtype: DType = DType.F32) -> Program:
    """Planes of pixels become pixels of planes."""
    p = ProgramBuilder()
    x = permuted(p.input("n", planes, "h", 20, dtype=dtype), (0, 2, 3, 1))
    return pointwise(x.shape, [x], here(x, 0), p, result)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("planes", [2, 3, 4])
def test_planes(planes: int, caps: Capabilities) -> None:
    for images, rows in ((2, 1), (1, 0), (3, 7), (2, 160)):
        data = [random_like((images, planes, rows, 20), DType.F32, 0)]
        check_program(image(planes), data, [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("result", [DType.F16, DType.BF16])
def test_half_precision(result: DType, caps: Capabilities) -> None:
    data = [random_like((2, 3, 5, 20), DType.F32, 0)]
    check_program(image(3, result), data, [], caps, ERR[result], variants=VARIANTS)


@pytest.mark.parametrize("caps", VECTORS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers(dtype: DType, caps: Capabilities) -> None:
    for planes, rows in ((3, 5), (4, 1), (2, 160)):
        data = [random_like((2, planes, rows, 20), dtype, 0)]
        check_program(image(planes, dtype, dtype), data, [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", VECTORS)
def test_integers_that_are_computed(caps: Capabilities) -> None:
    p = ProgramBuilder()
    x = permuted(p.input("n", 3, 6, 27, dtype=DType.U8), (0, 2, 3, 1))
    body = call("wrap_i8", call("mul", here(x, 0), const(3)))
    data = [random_like((2, 3, 6, 27), DType.U8, 0)]
    check_program(pointwise(x.shape, [x], body, p, DType.I8), data, [], caps, 0.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", VECTORS)
def test_more_operands(caps: Capabilities) -> None:
    p = ProgramBuilder()
    x, y, scale = p.input("n", 3, 6, 7), p.input("n", 3, 6, 7), p.input(3)
    a, b = (permuted(v, (0, 2, 3, 1)) for v in (x, y))
    body = call("add", call("mul", here(a, 0), load(1, axis(3), dtype=DType.F32)), here(b, 2))
    data = [random_like(s, DType.F32, i) for i, s in enumerate(((2, 3, 6, 7), (2, 3, 6, 7), (3,)))]
    check_program(pointwise(a.shape, [a, scale, b], body, p), data, [], caps, 1e-6, variants=VARIANTS)


def test_it_is_chosen_where_it_pays() -> None:
    assert "xy_interleave" in plan_for(image(3), AVX512).kernels[0].symbol
    assert "xy_interleave" in plan_for(image(3, DType.BF16), AVX512).kernels[0].symbol
    assert "xy_interleave" in plan_for(image(3, DType.U8, DType.U8), AVX512).kernels[0].symbol
    assert "xy_interleave" not in plan_for(image(5), AVX512).kernels[0].symbol
    assert "xy_interleave" not in plan_for(image(3), SCALAR).kernels[0].symbol


def test_reasons_against_it() -> None:
    [variant] = VARIANTS

    def reason(program: Program) -> str | None:
        [op] = program.ops
        assert isinstance(op, Pointwise)
        return variant.admits(op, BuildContext(caps=AVX512, program=program, constants=frozenset()))

    p = ProgramBuilder()
    x = p.input("n", "h", 3)
    assert reason(image(3)) is None
    assert "at most 32 bits" in (reason(image(3, DType.I64, DType.I64)) or "")
    assert "5 elements" in (reason(image(5)) or "")
    assert "not contiguous" in (reason(pointwise(permuted(x, (1, 0, 2)).shape, [permuted(x, (1, 0, 2))], here(x, 0), p)) or "")
