"""gemm.fragments against the interpreter by simulation, and through NVRTC: types, layouts, ragged sizes, every tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.run_gpu import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from tests.tracea.kernels.test_gpu_gemm import warp_conflicts
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.kernels.gpu import conv_fragments
from xyntra_ep.tracea.kernels.gpu._fragment_tiles import FragmentTile, copies_of
from xyntra_ep.tracea.kernels.gpu.gemm_fragments import VARIANTS, all_tiles, tile_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu_capabilities import OPENCL, SM_80, SM_90
from xyntra_ep.tracea.semantic_ir.swizzle import TileAccess, TileLayout

[FRAGMENTS] = VARIANTS
TILES = all_tiles(SM_80)
HALF = (DType.F16, DType.F16, DType.F32)
SHORT = (DType.BF16, DType.BF16, DType.F32)
MAX_ERR = 3e-6  # products of 16-bit floats are exact in f32: what is left is the order of the sums


def with_tile(rows: int, columns: int, slots: int, parts: int = 1) -> Variant[Gemm]:
    """The variant with another default."""
    config = {"rows": rows, "columns": columns, "slots": slots, "parts": parts}
    return replace(FRAGMENTS, default=lambda op, context: config)


def check(case: GemmCase, variant: Variant[Gemm] = FRAGMENTS, max_err: float = MAX_ERR) -> None:
    program, inputs, constants = build(case)
    assert check_simulated(program, inputs, constants, max_err, variants=[variant]).bank_conflicts == 0


@pytest.mark.parametrize("dtypes", [HALF, SHORT], ids=["f16", "bf16"])
@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_layouts(transpose: str, dtypes: tuple[DType, DType, DType]) -> None:
    # Where an operand is contiguous along m or n, its rows are as long as that, and must be aligned.
    for m, k, n in ((72, 40, 136), (8, 8, 8)):
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, dtypes=dtypes, epilogue="bias", symbolic=""))


def test_ragged_rows_and_sums() -> None:
    for m, n in ((1, 8), (65, 72)):
        check(GemmCase(m=m, k=24, n=n, dtypes=HALF, symbolic="m"))
    check(GemmCase(m=70, k=56, n=67, transpose="b", dtypes=HALF, symbolic="m", epilogue="gelu"), max_err=1e-5)
    check(GemmCase(m=5, k=16, n=8, batch=(2, 3), b_batch=(2, 3), constant_b=False, dtypes=HALF, epilogue="residual"))
    check(GemmCase(m=5, k=0, n=8, dtypes=HALF, epilogue="bias", symbolic="m"))


def test_parts_of_k() -> None:
    check(GemmCase(m=70, k=392, n=67, transpose="b", dtypes=HALF, symbolic="", epilogue="gelu"), with_tile(64, 64, 3, 4), 1e-5)
    check(GemmCase(m=9, k=264, n=72, batch=(2,), b_batch=(2,), constant_b=False, dtypes=HALF), with_tile(64, 64, 2, 2))


@pytest.mark.parametrize("tile", [t for t in TILES if t.slots in (2, 3)], ids=lambda t: f"{t.rows}x{t.columns}x{t.slots}")
def test_every_tile(tile: FragmentTile) -> None:
    case = GemmCase(m=tile.rows, k=96, n=tile.columns, transpose="b", dtypes=HALF, symbolic="")
    check(case, with_tile(tile.rows, tile.columns, tile.slots))
    assert tile.shared_bytes <= SM_80.shared_bytes and tile.threads <= SM_80.max_threads


def test_no_tile_of_the_search_space_has_bank_conflicts() -> None:
    for copy in (copy for tile in (*TILES, *conv_fragments.all_tiles()) for copy in copies_of(tile)):
        store, read = copy.accesses()
        layout = copy.layout()
        assert sum(_of_halves(store, layout, more, 0) for more in copy.rounds()) == 0, copy
        for row in range(0, layout.rows - 15, 16):
            assert sum(_of_halves(read, layout, row, column) for column in range(0, layout.columns - 15, 16)) == 0, copy


def _of_halves(access: TileAccess, layout: TileLayout, row: int, column: int) -> int:
    """As words of 4 bytes, which is what ``warp_conflicts`` counts in: two elements are one."""
    pairs = replace(layout, columns=layout.columns // 2, masks=tuple(m // 2 for m in layout.masks))
    digits = tuple(replace(d, step=d.step // 2) if d.axis == access.column else d for d in access.lanes.digits)
    words = replace(access, lanes=replace(access.lanes, digits=digits), packet=access.packet // 2)
    return warp_conflicts(words, pairs, row, column // 2)


def test_what_is_not_for_fragments() -> None:
    def reason(case: GemmCase, gpu: object = SM_80) -> str | None:
        program, _, _ = build(case)
        context = BuildContext(caps=SCALAR, program=program, gpu=gpu)  # type: ignore[arg-type]  # a Gpu
        return FRAGMENTS.admits(gemm_of(program), context)

    good = GemmCase(m=64, k=64, n=64, dtypes=HALF, symbolic="")
    assert reason(good) is None and plan_for(build(good)[0], SM_80).decisions[0][1].chosen.name == "gemm.fragments"
    assert reason(good, OPENCL) == "the GPU has no matrix units that are known"
    assert reason(replace(good, dtypes=(DType.F32,) * 3)) == "no fragments of f32 and f32"


@pytest.mark.parametrize("constant", [True, False])
def test_operands_are_copied_where_fragments_cannot_read_them(constant: bool) -> None:
    """f32 that may be multiplied in bf16, and rows that are not aligned."""
    mixed = (DType.BF16, DType.F32, DType.F32)
    for dtypes in ((DType.F32,) * 3, mixed, HALF):
        case = GemmCase(
            m=37, k=43, n=67, dtypes=dtypes, product=Product.BF16, constant_b=constant, symbolic="m", epilogue="residual"
        )
        check(case, max_err=8e-3)
        check(replace(case, transpose="ab", batch=(2,), b_batch=(2,)), max_err=8e-3)
    for dtypes in ((DType.F32,) * 3, (DType.F32, DType.F16, DType.F32)):
        check(replace(case, dtypes=dtypes, product=Product.F16), max_err=1e-3)


def test_constants_are_copied_once_and_aligned_operands_not_at_all() -> None:
    def copied(case: GemmCase) -> tuple[int, int]:
        planned = plan_for(build(case)[0], SM_80, [FRAGMENTS])
        assert planned.decisions[0][1].chosen.name == "gemm.fragments"
        copies = [["narrow" in planned.kernels[step.kernel].symbol for step in steps] for steps in (planned.init, planned.run)]
        return sum(copies[0]), sum(copies[1])

    case = GemmCase(m=64, k=64, n=64, dtypes=(DType.BF16, DType.F32, DType.F32), product=Product.BF16)
    assert copied(case) == (1, 0)
    assert copied(replace(case, constant_b=False)) == (0, 1)
    assert copied(replace(case, dtypes=SHORT)) == (0, 0)


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    program, _, _ = build(GemmCase(m=72, k=776, n=136, dtypes=SHORT, epilogue="bias", symbolic=""))
    for rows, columns, slots, parts, blocks in ((64, 64, 3, 1, 6), (128, 256, 3, 2, 1)):
        planned = compile_for_cuda(program, [with_tile(rows, columns, slots, parts)], SM_90)
        [source] = [s for s in planned.kernels if "fragments" in s.symbol]
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        tile = tile_of({"rows": rows, "columns": columns, "slots": slots})
        # What the choice of a tile counts on is what the compiler reports.
        work, report = tile.work(768), (cubin.registers, tile.shared_bytes)
        for registers, shared_bytes in ((work.registers, work.shared_bytes), report):
            assert occupancy("sm_80", threads=tile.threads, registers=registers, shared_bytes=shared_bytes).blocks == blocks


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, transpose="b", dtypes=HALF, symbolic=""))
    [source] = [s for s in plan_for(program, SM_80, [with_tile(64, 64, 3)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")
