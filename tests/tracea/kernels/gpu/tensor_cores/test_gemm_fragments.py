"""gemm.fragments against the interpreter by simulation, and through NVRTC: types, layouts, ragged sizes, every tile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from tests.tracea.kernels.gpu.gemm.test_gemm import warp_conflicts
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.doctor.occupancy import occupancy
from xyntra_ep.tracea.kernels.gpu.conv import fragments
from xyntra_ep.tracea.kernels.gpu.tensor_cores._fragment_tiles import FragmentTile, copies_of
from xyntra_ep.tracea.kernels.gpu.tensor_cores.gemm_fragments import VARIANTS, all_tiles, tile_of
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.runtime import nvrtc
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90
from xyntra_ep.tracea.semantic_ir.gpu.swizzle import TileAccess, TileLayout

[FRAGMENTS] = VARIANTS
TILES = all_tiles(SM_80, DType.F16)
TF32_TILES = all_tiles(SM_80, DType.F32)
HALF = (DType.F16, DType.F16, DType.F32)
SHORT = (DType.BF16, DType.BF16, DType.F32)
TF32 = GemmCase(m=70, k=44, n=68, product=Product.TF32, symbolic="")
MAX_ERR = 3e-6  # products of 16-bit floats, and of tf32, are exact in f32: what is left is the order of the sums


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


@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_layouts_in_tf32(transpose: str) -> None:
    """Of f32 matrices that are not along k, whose elements are read one by one, too."""
    for m, k, n in ((72, 40, 136), (4, 4, 4), (65, 24, 72)):
        check(GemmCase(m=m, k=k, n=n, transpose=transpose, product=Product.TF32, epilogue="bias", symbolic="m"))


def test_tf32_is_rounded_to_nearest() -> None:
    """All elements lie just below a number that tf32 has: cut off, each product would be low by two units."""
    program, inputs, constants = build(replace(TF32, m=8, k=64, n=8, constant_b=False))
    for x in inputs:
        x[...] = 1 + 0.95 * 2.0**-10
    exact = 64 * (1 + 2.0**-10) ** 2
    check_simulated(program, inputs, constants, 1e-6, variants=[FRAGMENTS])
    assert abs(exact / 64 - (1 + 0.95 * 2.0**-10) ** 2) < 2.0**-13  # what check_simulated compares with has rounded, too


def test_special_values_stay_what_they_are_in_tf32() -> None:
    program, inputs, constants = build(replace(TF32, m=5, k=16, n=8, constant_b=False))
    a, b = inputs[:2]
    b[...] = np.abs(b) + 0.5
    a[0, 3], a[1, 3], a[2, 3], a[3, 3] = np.nan, np.inf, -np.inf, np.float32(3.4028235e38)
    a[4, 3] = np.uint32(0x7FFFFFFF).view(np.float32)  # a NaN whose bits have no room above them
    check_simulated(program, inputs, constants, MAX_ERR, variants=[FRAGMENTS])


def test_ragged_rows_and_sums() -> None:
    for m, n in ((1, 8), (65, 72)):
        check(GemmCase(m=m, k=24, n=n, dtypes=HALF, symbolic="m"))
    check(GemmCase(m=70, k=56, n=67, transpose="b", dtypes=HALF, symbolic="m", epilogue="gelu"), max_err=1e-5)
    check(GemmCase(m=5, k=16, n=8, batch=(2, 3), b_batch=(2, 3), constant_b=False, dtypes=HALF, epilogue="residual"))
    check(GemmCase(m=5, k=0, n=8, dtypes=HALF, epilogue="bias", symbolic="m"))
    check(replace(TF32, m=5, batch=(2, 3), b_batch=(2, 3), constant_b=False, epilogue="residual"))


def test_parts_of_k() -> None:
    check(GemmCase(m=70, k=392, n=67, transpose="b", dtypes=HALF, symbolic="", epilogue="gelu"), with_tile(64, 64, 3, 4), 1e-5)
    check(GemmCase(m=9, k=264, n=72, batch=(2,), b_batch=(2,), constant_b=False, dtypes=HALF), with_tile(64, 64, 2, 2))
    check(replace(TF32, m=9, k=264, epilogue="gelu"), with_tile(64, 64, 3, 4), 1e-5)


@pytest.mark.parametrize("tile", [t for t in TILES if t.slots in (2, 3)], ids=lambda t: f"{t.rows}x{t.columns}x{t.slots}")
def test_every_tile(tile: FragmentTile) -> None:
    case = GemmCase(m=tile.rows, k=96, n=tile.columns, transpose="b", dtypes=HALF, symbolic="")
    check(case, with_tile(tile.rows, tile.columns, tile.slots))
    assert tile.shared_bytes <= SM_80.shared_bytes and tile.threads <= SM_80.max_threads


@pytest.mark.parametrize("tile", [t for t in TF32_TILES if t.slots == 3], ids=lambda t: f"{t.rows}x{t.columns}")
def test_every_tile_in_tf32(tile: FragmentTile) -> None:
    case = replace(TF32, m=tile.rows, k=48, n=tile.columns, constant_b=False)
    check(case, with_tile(tile.rows, tile.columns, tile.slots))


def test_no_tile_of_the_search_space_has_bank_conflicts() -> None:
    kinds = (DType.F16, DType.F32)
    for copy in (c for d in kinds for t in (*all_tiles(SM_80, d), *fragments.all_tiles(d)) for c in copies_of(t)):
        store, read = copy.accesses()
        layout, deep = copy.layout(), copy.tile.fragment_depth
        more_row, more_column = (16, deep) if copy.along_k else (deep, 16)
        assert sum(_conflicts(store, layout, more, 0) for more in copy.rounds()) == 0, copy
        for row in range(0, layout.rows, more_row):
            assert sum(_conflicts(read, layout, row, column) for column in range(0, layout.columns, more_column)) == 0, copy


def _conflicts(access: TileAccess, layout: TileLayout, row: int, column: int) -> int:
    """As words of 4 bytes, which is what ``warp_conflicts`` counts in: two elements of 16 bits are one."""
    if layout.element_bytes == 4:
        return warp_conflicts(access, layout, row, column)
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
    assert reason(good, ANY_GPU) == "the GPU has no matrix units that are known"
    assert reason(replace(good, dtypes=(DType.F32,) * 3)) == "no fragments of f32 and f32"
    assert reason(replace(good, dtypes=(DType.F32,) * 3, product=Product.TF32)) is None


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
    assert copied(replace(TF32, k=64, n=64)) == (0, 0)
    assert copied(replace(TF32, k=64, n=63)) == (1, 0)


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    program, _, _ = build(GemmCase(m=72, k=776, n=136, dtypes=SHORT, epilogue="bias", symbolic=""))
    for rows, columns, slots, parts, blocks in ((64, 64, 3, 1, 6), (128, 256, 3, 2, 1)):
        planned = compile_for_cuda(program, [with_tile(rows, columns, slots, parts)], SM_90)
        [source] = [s for s in planned.kernels if "fragments" in s.symbol]
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        tile = tile_of({"rows": rows, "columns": columns, "slots": slots}, DType.BF16)
        # What the choice of a tile counts on is what the compiler reports.
        work, report = tile.work(768), (cubin.registers, tile.shared_bytes)
        for registers, shared_bytes in ((work.registers, work.shared_bytes), report):
            assert occupancy("sm_80", threads=tile.threads, registers=registers, shared_bytes=shared_bytes).blocks == blocks


@pytest.mark.compiler("nvrtc")
def test_cuda_in_tf32() -> None:
    program, _, _ = build(replace(TF32, m=72, k=776, n=136, epilogue="bias"))
    for rows, columns, slots in ((64, 64, 3), (128, 256, 3)):
        planned = compile_for_cuda(program, [with_tile(rows, columns, slots)], SM_90)
        [source] = [s for s in planned.kernels if "fragments" in s.symbol]
        cubin = nvrtc.load().compile(source.symbol, source.text, "sm_80")
        assert not cubin.spilled_bytes, "registers that went through memory"


def test_text(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, transpose="b", dtypes=HALF, symbolic=""))
    [source] = [s for s in plan_for(program, SM_80, [with_tile(64, 64, 3)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")


def test_text_in_tf32(golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(GemmCase(m=64, k=768, n=768, product=Product.TF32, symbolic=""))
    [source] = [s for s in plan_for(program, SM_80, [with_tile(64, 64, 3)]).kernels if "gemm" in s.symbol]
    golden(source.text, ".cu")
