"""gemm.matrix against the interpreter by simulation, for each GPU whose matrix units are in the table: types, layouts, ragged
sizes, tiles. And what Clang makes of it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from tests.support.gpu.run import check_simulated, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.gpu.matrix_cores._tiles import Fetch
from xyntra_ep.tracea.kernels.gpu.matrix_cores.gemm_matrix import VARIANTS, all_tiles
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.runtime.hip import code_object, compilers
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import GFX90A, GFX942, GFX1100, Gpu

[MATRIX] = VARIANTS
GPUS = [pytest.param(gpu, id=gpu.name) for gpu in (GFX90A, GFX942, GFX1100)]
HALF = (DType.F16, DType.F16, DType.F32)
SHORT = (DType.BF16, DType.BF16, DType.F32)
MAX_ERR = 3e-6  # products of 16-bit floats, and of tf32, are exact in f32: what is left is the order of the sums
LARGE = GemmCase(m=4096, k=4096, n=4096, dtypes=SHORT, transpose="b", symbolic="")


def with_tile(rows: int, columns: int, side: int, parts: int = 1) -> Variant[Gemm]:
    config = {"rows": rows, "columns": columns, "side": side, "parts": parts}
    return replace(MATRIX, default=lambda op, context: config)


def check(case: GemmCase, gpu: Gpu, variant: Variant[Gemm] = MATRIX, max_err: float = MAX_ERR) -> int:
    program, inputs, constants = build(case)
    return check_simulated(program, inputs, constants, max_err, variants=[variant], gpu=gpu).bank_conflicts


@pytest.mark.parametrize("gpu", GPUS)
@pytest.mark.parametrize("dtypes", [HALF, SHORT], ids=["f16", "bf16"])
@pytest.mark.parametrize("transpose", ["b", "a"])
def test_layouts(transpose: str, dtypes: tuple[DType, DType, DType], gpu: Gpu) -> None:
    found = check(GemmCase(m=72, k=40, n=136, transpose=transpose, dtypes=dtypes, epilogue="bias", symbolic=""), gpu)
    assert not found or transpose == "a"  # of operands that are turned round some are stored with conflicts


@pytest.mark.parametrize("transpose", ["b", "a"])
def test_f32_and_tf32(transpose: str) -> None:
    """In all of f32, and rounded to the nearest tf32, where the units have these."""
    for gpu, product in ((GFX90A, Product.F32), (GFX942, Product.TF32)):
        check(GemmCase(m=40, k=24, n=72, transpose=transpose, product=product, epilogue="gelu", symbolic="m"), gpu, max_err=1e-5)


def test_what_is_f32_is_rounded_on_the_way() -> None:
    check(GemmCase(m=33, k=20, n=68, product=Product.BF16, symbolic="", epilogue="bias"), GFX942)


@pytest.mark.parametrize("gpu", [GFX942, GFX1100], ids=lambda gpu: gpu.name)
def test_ragged_sizes_batches_and_parts(gpu: Gpu) -> None:
    side = max(unit.shape.m for unit in gpu.matrix_units)
    check(GemmCase(m=1, k=7, n=3, dtypes=HALF, constant_b=False, symbolic="mkn"), gpu)
    check(GemmCase(m=5, k=16, n=8, batch=(2, 3), b_batch=(2, 3), constant_b=False, dtypes=HALF, epilogue="residual"), gpu)
    check(GemmCase(m=5, k=0, n=8, dtypes=HALF, epilogue="bias", symbolic="m"), gpu)
    check(GemmCase(m=9, k=264, n=72, dtypes=HALF, epilogue="gelu", symbolic=""), gpu, with_tile(64, 64, side, 4), 1e-5)


@pytest.mark.parametrize("gpu", GPUS)
def test_every_shape_and_tile(gpu: Gpu) -> None:
    for tile in all_tiles(gpu.matrix_units):
        dtype = tile.shape.dtype
        product = Product.TF32 if tile.shape.rounded else Product.F32
        case = GemmCase(m=tile.rows, k=2 * tile.depth, n=tile.columns, transpose="b", symbolic="", product=product)
        if dtype is not DType.F32:
            case = replace(case, dtypes=(dtype, dtype, DType.F32))
        assert check(case, gpu, with_tile(tile.rows, tile.columns, tile.shape.m)) == 0, tile
        assert tile.threads <= gpu.max_threads and tile.shared_bytes <= gpu.shared_bytes


def test_every_fetch_reaches_each_element_once() -> None:
    for tile in all_tiles([unit for gpu in (GFX942, GFX1100) for unit in gpu.matrix_units]):
        for extent, along_k, packet in ((e, k, p) for e in (tile.rows, tile.columns) for k in (True, False) for p in (1, 4)):
            fetch = Fetch(tile, extent, along_k, packet, is_a=True)
            lanes = fetch.lanes()
            assert lanes.threads == tile.threads, fetch
            found = sorted(
                (place["o"] + more_o + (0 if along_k else i), place["k"] + more_k + (i if along_k else 0))
                for place in map(lanes.at, range(tile.threads))
                for more_o, more_k in fetch.rounds()
                for i in range(packet)
            )
            assert found == [(o, k) for o in range(extent) for k in range(tile.depth)], fetch


@pytest.mark.compiler("hip")
@pytest.mark.parametrize("gpu", GPUS)
def test_compiled(gpu: Gpu) -> None:
    """The largest tile: the sums stay in registers, and estimates of these are above what the compiler needs."""
    side = max(unit.shape.m for unit in gpu.matrix_units)
    program, _, _ = build(LARGE)
    [source] = [s for s in plan_for(program, gpu, [with_tile(128, 128, side)]).kernels if "matrix" in s.symbol]
    code = compilers.code_of(source.symbol, source.text, gpu.name, compilers.find().clang)
    [report] = code_object.reports(code).values()
    assert report.spilled_bytes == 0 and report.spilled_registers == 0
    tile = next(t for t in all_tiles(gpu.matrix_units) if (t.rows, t.columns, t.shape.m) == (128, 128, side))
    assert report.registers <= 1.3 * tile.registers
    assert (report.accumulators >= 64) == (gpu.subgroup == 64)  # CDNA has registers of their own for sums


@pytest.mark.parametrize("gpu", GPUS)
def test_the_inner_loop(gpu: Gpu) -> None:
    """As Clang's assembler text has it: products and reads of shared memory, nothing kept in memory."""
    compiler = compilers.find_clang()
    if compiler is None:
        pytest.skip("no clang >= 17 that makes code for AMD's GPUs")
    side = max(unit.shape.m for unit in gpu.matrix_units)
    program, _, _ = build(LARGE)
    [source] = [s for s in plan_for(program, gpu, [with_tile(128, 128, side)]).kernels if "matrix" in s.symbol]
    argv = [*compiler.clang, *compilers.clang_options(gpu.name), "-S", "-o", "-", "-"]
    text = subprocess.run(argv, input=source.text, capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(scratch|buffer)_(load|store)", text)
    products, reads = (len(re.findall(pattern, text)) for pattern in (r"\bv_(?:mfma|wmma)_", r"\bds_(?:read|load)"))
    tile = next(t for t in all_tiles(gpu.matrix_units) if (t.rows, t.columns, t.shape.m) == (128, 128, side))
    down, across, deep = tile.warp_rows // side, tile.warp_columns // side, tile.depth // tile.shape.k
    assert products == down * across * deep  # of one step, in one loop
    assert 0 < reads <= (down + across) * tile.depth // tile.reach * (tile.read // tile.packet)
