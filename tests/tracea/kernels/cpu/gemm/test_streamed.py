"""gemm.streamed against the interpreter: one to four rows, ragged columns, in columns and in parts of k; where it is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.machine import WIDEST
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.cpu.gemm.streamed import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]


def check(case: GemmCase, caps: Capabilities, max_err: float = 3e-6) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("m", [1, 2, 4])
def test_ragged_sizes(caps: Capabilities, m: int) -> None:
    for k, n in ((0, 5), (3, 16), (37, 273)):
        check(GemmCase(m=m, k=k, n=n, constant_b=False, symbolic="", epilogue="residual"), caps)


@pytest.mark.parametrize("caps", MACHINES[:2])
def test_parts_of_k(caps: Capabilities) -> None:
    """1100 columns are more than four rows keep in L1 at once."""
    far = replace(caps, l2_bytes=1 << 18)
    check(GemmCase(m=4, k=200, n=1100, constant_b=False, symbolic="", epilogue="gelu"), far)
    check(GemmCase(m=1, k=403, n=401, batch=(2,), b_batch=(2,), constant_b=False, symbolic="", epilogue="residual"), far)


@pytest.mark.parametrize("symbolic", ["k", "n", "0kn"])
def test_sizes_known_at_run_time(symbolic: str) -> None:
    case = GemmCase(m=3, k=22, n=37, batch=(2,), b_batch=(2,), constant_b=False, symbolic=symbolic, epilogue="bias")
    check(case, WIDEST)


def test_a_along_its_columns_and_narrow_storage() -> None:
    check(GemmCase(m=3, k=22, n=37, transpose="a", constant_b=False, symbolic=""), WIDEST)
    check(GemmCase(m=2, k=22, n=37, dtypes=(DType.F16,) * 3, constant_b=False, symbolic=""), WIDEST, 6e-4)


def test_result_with_strided_columns() -> None:
    program, inputs, constants = build(GemmCase(m=3, k=16, n=50, batch=(2,), b_batch=(2,), constant_b=False, symbolic=""))
    swap_output(program)
    check_program(program, inputs, constants, WIDEST, 3e-6, variants=VARIANTS)


def test_where_it_is_chosen() -> None:
    def chosen(case: GemmCase) -> str:
        program, _, _ = build(case)
        [(_, decision)] = plan_for(program, AVX512).decisions
        return decision.chosen.name

    assert chosen(GemmCase(m=1, k=634, n=3821, constant_b=False, symbolic="")) == "gemm.streamed"
    assert chosen(GemmCase(m=4, k=512, n=512, constant_b=False, symbolic="")) == "gemm.streamed"
    assert chosen(GemmCase(m=16, k=634, n=3821, constant_b=False, symbolic="")) == "gemm.batched"
    assert chosen(GemmCase(m=1, k=768, n=768, symbolic="")) == "gemm.packed_b"


def test_reasons_for_refusing() -> None:
    def why(case: GemmCase) -> str | None:
        program, _, _ = build(case)
        return VARIANTS[0].admits(gemm_of(program), BuildContext(caps=AVX512, program=program))

    assert why(GemmCase(m=2, k=2, n=2, transpose="b", constant_b=False)) == "the rows of b are not contiguous"
    assert why(GemmCase(m=5, k=2, n=2, constant_b=False, symbolic="")) == "5 rows, not 1 to 4"
    assert why(GemmCase(m=2, k=2, n=2, dtypes=(DType.I64,) * 3)) == "a is i64 and b i64, not floats"
