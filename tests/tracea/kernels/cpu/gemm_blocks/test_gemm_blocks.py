"""gemm.block_weights and its fallback against the interpreter: few rows, many, every instruction set, all forms of weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.support.machine import AVX_VNNI, BF16_PAIRS, BF16_TILES, VNNI, WIDEST
from tests.support.printed import c_text
from tests.support.run_program import check_program, plan_for, run_program
from tests.tracea.kernels.block_programs import BlockCase, build, op_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.cpu.gemm_blocks import block_weights, generic
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._multiply import part_of_depth
from xyntra_ep.tracea.kernels.cpu.gemm_blocks._weights import PackedWeights
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

VARIANTS = block_weights.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
FORMS = [(bits, zeros) for bits in (4, 8) for zeros in (None, DType.U8, DType.F32)]
IN_BYTES = [
    pytest.param(VNNI, id="vnni"),
    pytest.param(AVX_VNNI, id="avx-vnni"),
    pytest.param(AVX512, id="clamped-avx512"),
    pytest.param(AVX2, id="clamped-avx2"),
]
F32_ERR = 3e-6  # the rounding of the sums
BF16_ERR = 6e-3  # also that of operands, which a kernel need not do


def check(case: BlockCase, caps: Capabilities, max_err: float = F32_ERR, variants: Any = VARIANTS) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, max_err, variants=variants)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize(("bits", "zeros"), FORMS)
def test_every_form(caps: Capabilities, bits: int, zeros: DType | None) -> None:
    """K ends within a block and within a byte; n within a panel."""
    tile = best_tile(96, caps)
    case = BlockCase(m=1, k=77, n=tile["columns"] + 3, bits=bits, zeros=zeros, epilogue="bias")
    for m in (1, 2, tile["rows"] + 1, 3 * tile["rows"] + 1):
        check(replace(case, m=m), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("block", [16, 32, 64, 128, 256])
def test_blocks(caps: Capabilities, block: int) -> None:
    for m in (1, 3, 37):
        check(BlockCase(m=m, k=3 * block, n=40, block=block), caps)
        check(BlockCase(m=m, k=2 * block + 9, n=40, bits=8, block=block, zeros=DType.U8), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_edges_of_the_tile(caps: Capabilities) -> None:
    tile = best_tile(96, caps)
    rows, columns = tile["rows"], tile["columns"]
    for n in (1, columns - 1, columns, 3 * columns):
        for m in (1, rows + 1, 3 * rows + 1):
            check(BlockCase(m=m, k=40, n=n, zeros=DType.U8), caps)
    for m in (0, 1, 2, rows - 1, rows, rows + 1, 2 * rows, 2 * rows + 1, 5 * rows + 3, 40 * rows):
        check(BlockCase(m=m, k=32, n=columns + 2), caps)
    for k in (1, 2, 7, 8, 31):
        for m in (1, 3 * rows):
            check(BlockCase(m=m, k=k, n=columns, zeros=DType.U8), caps)


def test_every_number_of_rows() -> None:
    for m in range(1, 27):
        check(BlockCase(m=m, k=72, n=70, epilogue="bias"), WIDEST)
    for m in (1, 9, 17, 25):
        check(BlockCase(m=m, k=72, n=70, epilogue="bias", symbolic=False), WIDEST)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_panel_longer_than_the_scratch(caps: Capabilities, parts: int) -> None:
    """Sums of the parts before wait in memory; the last part may be shorter, and end within a block."""
    tile = best_tile(96, caps)
    shape = Tile(rows=tile["rows"], vectors=tile["columns"] // caps.lanes, lanes=caps.lanes)
    long, _, _ = build(BlockCase(m=1, k=1 << 20, n=1))
    most = part_of_depth(PackedWeights(op=op_of(long), tile=shape))
    if parts * most > 20_000:
        pytest.skip(f"{most} rows fit the scratch of {caps.isa}: the interpreter would take long")
    for depth in (parts * most, (parts + 1) * most - 19):
        case = BlockCase(m=3 * tile["rows"] + 1, k=depth, n=tile["columns"] + 3, zeros=DType.U8, epilogue="bias")
        check(case, caps, 1e-5)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("epilogue", ["gelu", "residual"])
def test_epilogues(caps: Capabilities, epilogue: str) -> None:
    for m in (1, 3, 29):
        for zeros in (None, DType.U8):  # what the epilogue reads has other numbers
            check(BlockCase(m=m, k=48, n=53, epilogue=epilogue, zeros=zeros), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_batches_and_layouts(caps: Capabilities) -> None:
    check(BlockCase(m=1, k=48, n=50, batch=(3, 2), epilogue="residual"), caps)
    check(BlockCase(m=19, k=48, n=50, batch=(3,), epilogue="residual"), caps)
    for m in (1, 5, 31):
        check(BlockCase(m=m, k=48, n=50, transposed=True, epilogue="residual"), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_half_precision(caps: Capabilities) -> None:
    for m in (1, 3, 29):
        check(BlockCase(m=m, k=48, n=53, dtype=DType.F16, scale_dtype=DType.F16, zeros=DType.F16), caps, 6e-4)
        check(BlockCase(m=m, k=48, n=53, scale_dtype=DType.F16), caps)


@pytest.mark.parametrize(("bits", "zeros"), FORMS)
def test_in_bfloat16(bits: int, zeros: DType | None) -> None:
    """K ends within a block, and within a pair; a few rows keep more digits than are asked for."""
    case = BlockCase(m=1, k=77, n=67, bits=bits, zeros=zeros, epilogue="bias", product=Product.BF16)
    for m in (1, 19, 61):
        check(replace(case, m=m), BF16_PAIRS, BF16_ERR)


@pytest.mark.parametrize("caps", [pytest.param(AVX512, id="avx512"), pytest.param(BF16_TILES, id="tiles")])
def test_where_pairs_are_not_fast_more_digits_are_kept(caps: Capabilities) -> None:
    check(BlockCase(m=31, k=64, n=67, product=Product.BF16), caps, BF16_ERR)


def test_left_operands_of_pairs() -> None:
    case = BlockCase(m=37, k=80, n=67, epilogue="residual", product=Product.BF16)
    for dtype, scales in ((DType.F16, DType.F16), (DType.BF16, DType.F32)):
        check(replace(case, dtype=dtype, scale_dtype=scales), BF16_PAIRS, 8e-3)
    check(replace(case, m=20, batch=(3,), symbolic=False), BF16_PAIRS, BF16_ERR)
    check(replace(case, m=31, transposed=True), BF16_PAIRS, BF16_ERR)


def test_pairs_are_multiplied_exactly_as_defined() -> None:
    """Numbers of few bits: nothing is rounded, so many rows are equal to the interpreter's whatever the order of sums."""
    program, inputs, constants = build(BlockCase(m=37, k=96, n=64, product=Product.BF16))
    inputs[0] = np.random.default_rng(0).integers(-8, 9, inputs[0].shape).astype(np.float32)
    constants[1] = np.exp2(np.random.default_rng(1).integers(-2, 3, constants[1].shape)).astype(np.float32)
    check_program(program, inputs, constants, BF16_PAIRS, 0, variants=VARIANTS)
    [kernel] = [k for k in plan_for(program, BF16_PAIRS, variants=VARIANTS).kernels if "_pairs_" in k.symbol]
    assert "xy_pair_dot" in kernel.text


@pytest.mark.parametrize("caps", IN_BYTES)
@pytest.mark.parametrize(
    ("block", "zeros"), [(16, DType.F32), (32, None), (32, DType.U8), (64, DType.U8), (128, None), (256, DType.U8)]
)
def test_in_bytes(caps: Capabilities, block: int, zeros: DType | None) -> None:
    """K ends within a block, and n within a panel; each tile."""
    for n in (48, 53, 64) if block == 32 else (53,):
        check(BlockCase(m=31, k=block + 45, n=n, block=block, zeros=zeros, epilogue="bias", product=Product.INT8), caps, 1e-5)


@pytest.mark.parametrize("caps", IN_BYTES)
def test_the_largest_bytes(caps: Capabilities) -> None:
    """All products of a sum are as large as they can be, of one sign."""
    program, inputs, constants = build(BlockCase(m=20, k=256, n=48, block=256, product=Product.INT8))
    [a], q = inputs, constants[0]
    a[:] = 1.0
    a[::2] = -1.0
    q[:24], q[24:] = 0xFF, 0
    check_program(program, inputs, constants, caps, 1e-6, variants=VARIANTS)


def test_a_few_rows_are_not_rounded_to_bytes() -> None:
    for m, product in ((1, Product.F32), (8, Product.F32), (9, Product.INT8)):
        program, inputs, constants = build(BlockCase(m=m, k=96, n=48, product=Product.INT8))
        defined, _, _ = build(BlockCase(m=m, k=96, n=48, product=product))
        [got] = run_program(program, inputs, constants, VNNI, variants=VARIANTS)
        [wanted] = interpret(defined, inputs, constants)
        assert np.abs(got - wanted).max() < 1e-5 * np.abs(wanted).max()


def test_left_operands_of_bytes() -> None:
    case = BlockCase(m=37, k=80, n=67, epilogue="residual", product=Product.INT8)
    for dtype, scales in ((DType.F16, DType.F16), (DType.BF16, DType.F32)):
        check(replace(case, dtype=dtype, scale_dtype=scales), VNNI, 8e-3)
    check(replace(case, m=20, batch=(3,), symbolic=False), VNNI, 1e-5)
    check(replace(case, m=31, transposed=True), VNNI, 1e-5)
    check(replace(case, m=0), VNNI, 1e-5)


def test_a_panel_of_bytes_that_is_longer_than_the_scratch() -> None:
    for zeros in (None, DType.U8):
        check(BlockCase(m=13, k=2 * 3072 + 77, n=50, zeros=zeros, epilogue="bias", product=Product.INT8), VNNI, 1e-5)


def test_bytes_of_strange_rows() -> None:
    """Zeros, tiny and huge numbers; an infinity or a NaN is in all results of its row, and in no others."""
    program, inputs, constants = build(BlockCase(m=20, k=96, n=50, product=Product.INT8))
    [a] = inputs
    a[0] = 0
    a[1] *= np.float32(1e-38)
    a[2] *= np.float32(1e36)
    a[3, :32] *= np.float32(1e30)
    a[4, 5], a[5, 70], a[6, 95] = np.inf, -np.inf, np.nan
    [got] = run_program(program, inputs, constants, VNNI, variants=VARIANTS)
    [wanted] = interpret(program, inputs, constants)
    strange = np.isnan(wanted).all(axis=-1)
    assert list(np.flatnonzero(strange)) == [4, 5, 6] and np.isfinite(wanted[~strange]).all()
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    largest = np.abs(wanted[~strange]).max(axis=-1, keepdims=True)
    assert (np.abs(got - wanted)[~strange] <= 1e-5 * largest + 1e-44).all()


@pytest.mark.parametrize("caps", [pytest.param(caps, id=caps.isa) for caps in (NEON, SCALAR)])
def test_where_bytes_are_not_fast_more_digits_are_kept(caps: Capabilities) -> None:
    program, inputs, constants = build(BlockCase(m=31, k=64, n=67, product=Product.INT8))
    defined, _, _ = build(BlockCase(m=31, k=64, n=67))
    [got] = run_program(program, inputs, constants, caps, variants=VARIANTS)
    [wanted] = interpret(defined, inputs, constants)
    assert np.abs(got - wanted).max() < F32_ERR * np.abs(wanted).max()


def test_tiles_of_bytes_have_two_sums_for_each_vector() -> None:
    program, _, _ = build(BlockCase(m=64, k=64, n=48, product=Product.INT8))
    op, [variant] = op_of(program), VARIANTS
    context = BuildContext(caps=VNNI, program=program, constants=frozenset())
    of_rows, of_columns = variant.space(op, context)
    tiles = [{"rows": rows, "columns": columns} for rows in of_rows.values for columns in of_columns.values]
    fitting = [(t["rows"], t["columns"]) for t in tiles if not variant.refuses(op, t, context)]
    assert (
        len(fitting) < len(tiles) and (4, 48) in fitting and (6, 32) in fitting and (3, 64) in fitting and (6, 48) not in fitting
    )
    assert variant.default(op, context) in tiles


def test_a_part_of_pairs_is_twice_as_long() -> None:
    tile = best_tile(96, BF16_PAIRS)
    shape = Tile(rows=tile["rows"], vectors=tile["columns"] // 16, lanes=16)
    long, _, _ = build(BlockCase(m=1, k=1 << 20, n=1))
    weights = PackedWeights(op=op_of(long), tile=shape)
    most = part_of_depth(weights, DType.BF16)
    assert most > 1.8 * part_of_depth(weights)
    for depth in (2 * most, 3 * most - 19):
        check(BlockCase(m=3 * tile["rows"] + 1, k=depth, n=70, zeros=DType.U8, product=Product.BF16), BF16_PAIRS, BF16_ERR)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize(("bits", "zeros"), FORMS)
def test_the_fallback(caps: Capabilities, bits: int, zeros: DType | None) -> None:
    case = BlockCase(m=3, k=77, n=19, bits=bits, zeros=zeros, epilogue="residual", constant=False)
    check(case, caps, variants=generic.VARIANTS)
    check(replace(case, constant=True, batch=(2,), dtype=DType.F16), caps, 6e-4, variants=generic.VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_odd_scales(caps: Capabilities) -> None:
    """A NaN or an infinity among the scales spoils its own column only."""
    for m in (1, 2, 33):
        program, inputs, constants = build(BlockCase(m=m, k=64, n=70))
        constants[1][3, 0], constants[1][50, 1] = np.nan, 0.0
        check_program(program, inputs, constants, caps, F32_ERR, variants=VARIANTS)


@pytest.mark.parametrize(("bits", "zeros"), FORMS)
@pytest.mark.parametrize("scale_dtype", [DType.F32, DType.F16])
def test_weights_take_no_more_than_in_the_file(bits: int, zeros: DType | None, scale_dtype: DType) -> None:
    zeros = scale_dtype if zeros is DType.F32 else zeros
    program, _, constants = build(BlockCase(m=4, k=768, n=960, bits=bits, zeros=zeros, scale_dtype=scale_dtype, symbolic=False))
    planned = plan_for(program, AVX512, VARIANTS)
    held = sum(evaluate(b.size_bytes, {}) for b in planned.buffers if b.kind is BufferKind.POOL)
    assert held <= 1.1 * sum(array.nbytes for array in constants)


def test_the_choice_between_variants() -> None:
    def chosen(case: BlockCase) -> str:
        program, _, _ = build(case)
        [(_, decision)] = plan_for(program, AVX512).decisions
        return decision.chosen.name

    for m in (1, 128):
        assert chosen(BlockCase(m=m, k=768, n=771, symbolic=False)) == "gemm.block_weights"
    assert chosen(BlockCase(m=8, k=64, n=64)) == "gemm.block_weights"
    assert chosen(BlockCase(m=8, k=64, n=64, constant=False)) == "gemm.block_generic"


def test_reasons_for_refusing() -> None:
    [variant] = VARIANTS
    program, _, _ = build(BlockCase(m=2, k=32, n=2))
    context = BuildContext(caps=AVX512, program=program, constants=frozenset({1, 2}))
    assert variant.admits(op_of(program), context) is None
    assert variant.admits(op_of(program), replace(context, constants=frozenset())) == "q is not a constant"
    assert variant.admits(op_of(program), replace(context, constants=frozenset({1}))) == "the scales are not constant"


@pytest.mark.parametrize("caps", [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON)])
def test_text(caps: Capabilities, golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(BlockCase(m=2, k=20, n=12, block=16, zeros=DType.U8, epilogue="bias", symbolic=False))
    context = BuildContext(caps=caps, program=program, constants=frozenset({1, 2, 3}))
    [variant], op = VARIANTS, op_of(program)
    calls = variant.build(op, variant.default(op, context), context)
    golden("\n".join(c_text(call.kernel, caps) for call in calls), ".c")
