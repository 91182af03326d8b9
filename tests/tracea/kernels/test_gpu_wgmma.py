"""gemm.wgmma against the interpreter by simulation, and through NVRTC: types, layouts, ragged sizes, batches, tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.run_gpu import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu._wgmma_tiles import all_tiles
from xyntra_ep.tracea.kernels.gpu.gemm_wgmma import VARIANTS
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import SM_80, SM_90, SM_90A, Gpu

[WGMMA] = VARIANTS
HALF = (DType.F16, DType.F16, DType.F32)
SHORT = (DType.BF16, DType.BF16, DType.F32)
MAX_ERR = 3e-6  # products of 16-bit floats are exact in f32: what is left is the order of the sums


def with_tile(rows: int, columns: int, slots: int) -> Variant[Gemm]:
    """The variant with another default."""
    return replace(WGMMA, default=lambda op, context: {"rows": rows, "columns": columns, "slots": slots})


def check(case: GemmCase, variant: Variant[Gemm] = WGMMA, max_err: float = MAX_ERR) -> None:
    program, inputs, constants = build(case)
    planned = plan_for(program, SM_90A, [variant])
    assert any("wgmma" in source.symbol for source in planned.kernels)
    check_simulated(program, inputs, constants, max_err, variants=[variant], gpu=SM_90A)


@pytest.mark.parametrize(("transpose", "dtypes"), [("", HALF), ("a", SHORT), ("b", HALF), ("ab", SHORT), ("b", SHORT)])
def test_layouts(transpose: str, dtypes: tuple[DType, DType, DType]) -> None:
    """Both operands along k and across it, more than one tile of each."""
    case = GemmCase(m=136, k=200, n=136, transpose=transpose, dtypes=dtypes, epilogue="bias", symbolic="")
    check(case, with_tile(128, 128, 3))
    check(replace(case, m=8, k=8, n=8), with_tile(64, 128, 3))


def test_ragged_sizes_and_epilogues() -> None:
    check(GemmCase(m=70, k=56, n=67, transpose="b", dtypes=HALF, symbolic="mk", epilogue="gelu"), max_err=1e-5)
    check(GemmCase(m=1, k=24, n=8, dtypes=HALF, symbolic="m"))
    check(GemmCase(m=5, k=0, n=8, dtypes=HALF, epilogue="bias", symbolic="m"))


def test_batches() -> None:
    """Along which both operands move, or one; the rest are rows."""
    case = GemmCase(m=5, k=72, n=8, batch=(2, 3), b_batch=(2, 3), constant_b=False, dtypes=HALF, epilogue="residual")
    check(case)
    check(replace(case, b_batch=(2, 1), transpose="ab", m=8))
    check(replace(case, b_batch=(3,), a_batch=(2, 1), m=72))


def test_blocks_go_down_bands_of_rows() -> None:
    """More rows of tiles than a band has, the last band not whole; an odd row length is stored one by one."""
    check(GemmCase(m=64 * 9 + 8, k=16, n=264, dtypes=HALF, symbolic="m", epilogue="residual"), with_tile(64, 128, 3))
    check(GemmCase(m=9, k=16, n=137, transpose="b", dtypes=HALF, symbolic="m"), with_tile(64, 128, 3))


def test_a_ring_goes_round() -> None:
    """Many more steps of k than slots, on both sides of the widest tile."""
    check(GemmCase(m=72, k=64 * 8 + 8, n=264, transpose="a", dtypes=SHORT, symbolic="k"), with_tile(128, 256, 3), max_err=6e-6)


@pytest.mark.parametrize("constant", [True, False])
def test_operands_are_copied_where_tensor_copies_cannot_take_them(constant: bool) -> None:
    """f32 that may be multiplied in bf16, and rows that are not aligned to 16 bytes."""
    for dtypes in ((DType.F32,) * 3, HALF):
        case = GemmCase(m=37, k=43, n=67, dtypes=dtypes, product=Product.BF16, constant_b=constant, symbolic="m")
        check(replace(case, transpose="ab", batch=(2,), b_batch=(2,)), max_err=8e-3)


def reason(case: GemmCase, gpu: Gpu = SM_90A) -> str | None:
    program, _, _ = build(case)
    return WGMMA.admits(gemm_of(program), BuildContext(caps=SCALAR, program=program, gpu=gpu))


def test_what_is_not_for_warpgroups() -> None:
    good = GemmCase(m=64, k=64, n=64, dtypes=HALF)
    assert reason(good) is None
    for gpu in (SM_80, SM_90):
        assert reason(good, gpu) == "no products by warpgroups, which are compute capability 9.0's"
    assert reason(replace(good, dtypes=(DType.F32,) * 3)) == "no products of f32 and f32"
    many = (2, 2, 2, 2)
    assert reason(replace(good, batch=many, b_batch=many, constant_b=False)) == "tensors of more than 3 batch axes"


@pytest.mark.parametrize("stride", [-64, 0])
def test_operands_that_are_no_tensors(stride: int) -> None:
    """Rows backwards, or one row again and again: the driver takes no such strides."""
    program, _, _ = build(GemmCase(m=64, k=64, n=64, dtypes=HALF, symbolic=""))
    op = gemm_of(program)
    a = replace(op.inputs[0], strides=(stride, 1))
    odd = replace(op, inputs=(a, *op.inputs[1:]))
    why = WGMMA.admits(odd, BuildContext(caps=SCALAR, program=program, gpu=SM_90A))
    assert why == "an operand that goes backwards, or whose rows are one: no tensor to the driver"


def test_large_products_are_for_warpgroups_and_others_for_fragments() -> None:
    def chosen(gpu: Gpu, m: int) -> str:
        planned = plan_for(build(GemmCase(m=m, k=1024, n=1024, dtypes=SHORT, symbolic=""))[0], gpu)
        return planned.decisions[0][1].chosen.name

    assert chosen(SM_90A, 512) == "gemm.wgmma" and chosen(SM_90, 512) == "gemm.fragments"
    assert chosen(SM_90A, 1) != "gemm.wgmma"


@pytest.mark.compiler("nvrtc")
@pytest.mark.parametrize(("rows", "columns", "slots"), [(64, 256, 3), (128, 128, 6), (128, 256, 4)])
def test_cuda(rows: int, columns: int, slots: int) -> None:
    """None spills: sums stay in registers, which is what `setmaxnreg` is for."""
    program, _, _ = build(GemmCase(m=72, k=40, n=136, dtypes=SHORT, epilogue="bias", symbolic="m"))
    planned = compile_for_cuda(program, [with_tile(rows, columns, slots)], SM_90A)
    assert planned.kernels[-1].shared_bytes <= SM_90A.shared_bytes


def test_tiles() -> None:
    for tile in all_tiles():
        copying, multiplying = tile.registers
        assert 128 * (copying + tile.consumers * multiplying) <= 65536 and tile.threads <= SM_90A.max_threads
    fitting = {(t.rows, t.columns): t.slots for t in all_tiles() if t.shared_bytes <= SM_90A.shared_bytes}
    assert fitting == {(64, 128): 6, (64, 256): 5, (128, 128): 6, (128, 256): 4}


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, dtypes=SHORT, symbolic="m"))
    [source] = [s for s in plan_for(program, SM_90A, [with_tile(64, 128, 3)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")
