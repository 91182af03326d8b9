"""gemm.dots against the interpreter: few rows, few columns, ragged depths, every way b may lie; and where it is chosen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.machine import widest_vectors
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm
from xyntra_ep.tracea.kernels.cpu.gemm._dots import dot_tiles
from xyntra_ep.tracea.kernels.cpu.gemm.dots import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

[DOTS] = VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON)]


def check(case: GemmCase, caps: Capabilities, max_err: float = 3e-6, variant: Variant[Gemm] = DOTS) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, max_err, variants=[variant])


def forced(columns: int) -> Variant[Gemm]:
    """The variant with groups of so many columns."""
    return Variant(
        name=DOTS.name,
        op=DOTS.op,
        admits=DOTS.admits,
        space=DOTS.space,
        default=lambda op, context: {"columns": columns},
        cost_ns=DOTS.cost_ns,
        build=DOTS.build,
    )


@pytest.mark.parametrize("caps", MACHINES)
def test_every_tile_at_ragged_sizes(caps: Capabilities) -> None:
    for tile in dot_tiles(caps):
        for k, n in ((5, 1), (3 * caps.lanes, 2 * caps.lanes), (2 * caps.lanes + 3, caps.lanes + 5)):
            case = GemmCase(m=2 * tile.rows + 1, k=k, n=n, transpose="b", constant_b=False, symbolic="", epilogue="residual")
            check(case, caps, variant=forced(tile.columns))


@pytest.mark.parametrize("symbolic", ["", "k", "n", "mkn"])
def test_sizes_known_at_run_time(symbolic: str) -> None:
    check(GemmCase(m=5, k=37, n=21, transpose="b", constant_b=False, symbolic=symbolic, epilogue="gelu"), widest_vectors())


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("constant", [False, True], ids=["run-time", "constant"])
def test_rows_of_b_are_copied_along_k(caps: Capabilities, constant: bool) -> None:
    for n, l2_bytes in ((3, 1 << 8), (21, 1 << 20)):  # rows that come from far are fetched ahead
        case = GemmCase(m=13, k=37, n=n, constant_b=constant, symbolic="", epilogue="bias")
        check(case, replace(caps, l2_bytes=l2_bytes))
    check(GemmCase(m=3, k=0, n=21, constant_b=constant, symbolic=""), caps)
    check(GemmCase(m=3, k=37, n=21, constant_b=constant, symbolic="k"), caps)


@pytest.mark.parametrize("transpose", ["", "b"])
def test_batches_that_share_b_and_that_do_not(transpose: str) -> None:
    for a_batch, b_batch in (((2, 3), (2, 3)), ((2, 1), (1, 3)), ((2, 3), (3,))):
        case = GemmCase(
            m=3, k=20, n=18, batch=(2, 3), a_batch=a_batch, b_batch=b_batch, transpose=transpose,
            constant_b=False, symbolic="", epilogue="residual",
        )  # fmt: skip
        check(case, widest_vectors())


def test_a_long_depth_is_taken_in_parts() -> None:
    """6 rows in parts of 848 steps, 5 of 1024; the last one ends within a vector."""
    check(GemmCase(m=11, k=2523, n=21, transpose="b", constant_b=False, symbolic="", epilogue="residual"), widest_vectors())


@pytest.mark.parametrize("stored", [DType.F16, DType.BF16])
def test_narrow_storage(stored: DType) -> None:
    err = {DType.F16: 6e-4, DType.BF16: 5e-3}[stored]
    for transpose in ("", "b"):
        case = GemmCase(m=3, k=30, n=11, dtypes=(stored,) * 3, transpose=transpose, constant_b=False, symbolic="")
        check(case, widest_vectors(), err)


def test_result_with_strided_columns() -> None:
    case = GemmCase(m=11, k=16, n=21, batch=(2,), epilogue="bias", transpose="b", constant_b=False)
    program, inputs, constants = build(case)
    swap_output(program)
    check_program(program, inputs, constants, widest_vectors(), 3e-6, variants=VARIANTS)


def test_where_it_is_chosen() -> None:
    def chosen(case: GemmCase, caps: Capabilities = AVX512) -> str:
        program, _, _ = build(case)
        [(_, decision)] = plan_for(program, caps).decisions
        return decision.chosen.name

    def along_k(m: int, k: int, n: int) -> GemmCase:
        return GemmCase(m=m, k=k, n=n, transpose="b", constant_b=False, symbolic="")

    assert chosen(along_k(2, 2957, 1770)) == "gemm.dots"
    assert chosen(along_k(15, 800, 202)) == "gemm.dots"
    assert chosen(along_k(2, 768, 768), AVX2) == "gemm.dots"
    assert chosen(GemmCase(m=261, k=718, n=12, constant_b=False, symbolic="")) == "gemm.dots"
    assert chosen(along_k(256, 1024, 1024)) == "gemm.batched"
    assert chosen(GemmCase(m=24, k=768, n=768, constant_b=False, symbolic="")) == "gemm.batched"


def test_reasons_for_refusing() -> None:
    def why(case: GemmCase, caps: Capabilities = AVX512) -> str | None:
        program, _, _ = build(case)
        return DOTS.admits(gemm_of(program), BuildContext(caps=caps, program=program))

    assert why(GemmCase(m=2, k=2, n=2, transpose="a", constant_b=False)) == "a does not lie along k"
    assert why(GemmCase(m=2, k=2, n=2, dtypes=(DType.I64,) * 3)) == "a is i64 and b i64, not floats"
    assert why(GemmCase(m=2, k=2, n=2), SCALAR) == "a machine without vectors"
    assert why(GemmCase(m=2, k=2, n=2), NEON) is None


@pytest.mark.parametrize("caps", [AVX512, AVX2, NEON], ids=lambda caps: caps.isa)
def test_tiles_fit_the_registers(caps: Capabilities) -> None:
    """Sums, an operand of each row and one of a column."""
    for tile in dot_tiles(caps):
        assert tile.rows * tile.columns + tile.rows + 1 <= caps.vector_registers
        assert caps.lanes % tile.columns == 0
