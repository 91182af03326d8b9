"""Products whose sums a low-rank one goes on with, against the interpreter, at the edges of tiles, ranks and parts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.run_program import check_program, run_program
from tests.tracea.kernels.low_rank_programs import LowRankCase, build
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import LowRankGemm
from xyntra_ep.tracea.doctor.decision import decide
from xyntra_ep.tracea.kernels.cpu.gemm_low_rank import generic, low_rank
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

TILED, GENERIC = low_rank.VARIANTS, generic.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
MAX_ERR = 3e-6  # at most 850 products, each rounded once


def check(case: LowRankCase, caps: Capabilities, variants: list[Variant[LowRankGemm]] = TILED) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, MAX_ERR, variants=variants)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "given"])
def test_ragged_sizes(caps: Capabilities, constant: bool) -> None:
    """53 columns end within a vector; ranks of one, of no whole iteration and of several."""
    for m, k, n, rank in ((9, 21, 53, 1), (1, 16, 96, 5), (13, 5, 49, 8), (0, 7, 5, 3), (3, 1, 1, 17)):
        check(LowRankCase(m=m, k=k, n=n, rank=rank, constant=constant, epilogue="bias"), caps)


@pytest.mark.parametrize("caps", MACHINES[:2])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "given"])
def test_a_deep_product_goes_on_after_its_last_part(caps: Capabilities, constant: bool) -> None:
    """150 rows are more blocks than go through the parts together."""
    case = LowRankCase(m=150, k=790, n=65, rank=11, constant=constant, epilogue="residual")
    check(case, caps)
    check(replace(case, m=1, symbolic="", epilogue="gelu"), caps)


@pytest.mark.parametrize("m", [2, 5, 8, 12, 17])
def test_numbers_of_rows_that_are_known(m: int) -> None:
    check(LowRankCase(m=m, k=24, n=96, rank=8, symbolic=""), WIDEST)


@pytest.mark.parametrize("variants", [TILED, GENERIC], ids=["tiled", "generic"])
def test_batches(variants: list[Variant[LowRankGemm]]) -> None:
    check(LowRankCase(m=5, k=9, n=33, rank=4, batch=(3,), epilogue="row"), WIDEST, variants)


@pytest.mark.parametrize("caps", MACHINES)
def test_one_element_at_a_time(caps: Capabilities) -> None:
    check(LowRankCase(m=4, k=9, n=7, rank=3, constant=False, columns_apart=True, epilogue="residual"), caps, GENERIC)
    check(LowRankCase(m=4, k=0, n=7, rank=2, constant_b=False), caps, GENERIC)


def test_special_values_show_where_they_belong() -> None:
    program, inputs, constants = build(LowRankCase(m=6, k=20, n=40, rank=4, symbolic=""))
    inputs[0][1, 3], inputs[0][2, 0], inputs[1][4, 1] = np.nan, np.inf, -np.inf
    [want] = interpret(program, inputs, constants)
    [got] = run_program(program, inputs, constants, WIDEST, variants=TILED)
    assert np.isnan(want[1]).all() and not np.isfinite(want[[2, 4]]).any() and np.isfinite(want[[0, 3, 5]]).all()
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def why_not(case: LowRankCase) -> str | None:
    program, _, _ = build(case)
    [op] = program.ops
    assert isinstance(op, LowRankGemm)
    known = frozenset({op.inputs[1].value} if case.constant_b else ())
    context = BuildContext(caps=AVX512, program=program, constants=known)
    assert decide(op, context, [*TILED, *GENERIC]).chosen.name
    return low_rank.admits(op, context)


def test_what_it_does_not_admit() -> None:
    case = LowRankCase(m=4, k=9, n=7, rank=3, constant=False)
    assert why_not(case) is None
    assert why_not(replace(case, constant_b=False)) == "b is not a constant"
    assert why_not(replace(case, columns_apart=True)) == "columns of the second right side are not neighbours"
    assert why_not(replace(case, transpose="a")) == "the columns of the two left sides are not equally far apart"
