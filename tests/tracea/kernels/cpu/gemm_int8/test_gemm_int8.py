"""gemm.int8_weights against the interpreter: few rows (widened in registers), many (in a scratch), every instruction set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.printed import c_text
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Product
from xyntra_ep.tracea.doctor.variants import AnyVariant
from xyntra_ep.tracea.kernels.cpu.gemm import packed_b
from xyntra_ep.tracea.kernels.cpu.gemm._choice import best_tile
from xyntra_ep.tracea.kernels.cpu.gemm._tile import Tile
from xyntra_ep.tracea.kernels.cpu.gemm_int8 import int8_weights
from xyntra_ep.tracea.kernels.cpu.gemm_int8._multiply import part_of_depth
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.planning.plan import BufferKind
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

VARIANTS = int8_weights.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
F32_ERR = 3e-6  # the interpreter quantises alike; what differs is the rounding of the sums


def case_of(m: int, k: int, n: int, **more: Any) -> GemmCase:
    return GemmCase(m=m, k=k, n=n, product=Product.INT8W, **more)


def check(case: GemmCase, caps: Capabilities, max_err: float = F32_ERR) -> None:
    program, inputs, constants = build(case)
    check_program(program, inputs, constants, caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_edges_of_the_tile(caps: Capabilities) -> None:
    tile = best_tile(96, caps)
    rows, columns = tile["rows"], tile["columns"]
    for n in (1, columns - 1, columns, columns + 1, 3 * columns):
        for m in (rows + 1, 3 * rows + 1):
            check(case_of(m, 13, n), caps)
    for m in (0, 1, 2, rows - 1, rows, rows + 1, 2 * rows, 2 * rows + 1, 5 * rows + 3, 40 * rows):
        check(case_of(m, 16, columns + 2), caps)
    for k in (0, 1, 3):
        for m in (3, 3 * rows):
            check(case_of(m, k, columns), caps)


def test_every_number_of_rows() -> None:
    for m in range(1, 28):
        check(case_of(m, 21, 96, epilogue="bias"), WIDEST)
    for m in (1, 9, 17, 25):
        check(case_of(m, 21, 96, epilogue="bias", symbolic=""), WIDEST)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("parts", [1, 2, 3])
def test_a_panel_longer_than_the_scratch(caps: Capabilities, parts: int) -> None:
    """Sums of the parts before wait in memory; the last part may be shorter, and end in the middle of an unrolled turn."""
    tile = best_tile(96, caps)
    shape = Tile(rows=tile["rows"], vectors=tile["columns"] // caps.lanes, lanes=caps.lanes)
    most = part_of_depth(1 << 20, shape)
    if parts * most > 20_000:
        pytest.skip(f"{most} rows fit the scratch of {caps.isa}: the interpreter would take long")
    for depth in (parts * most, (parts + 1) * most - 3):
        check(case_of(3 * tile["rows"] + 1, depth, tile["columns"] + 3, epilogue="bias"), caps, 1e-5)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("epilogue", ["residual", "mask"])
def test_epilogues(caps: Capabilities, epilogue: str) -> None:
    for m in (3, 29):
        check(case_of(m, 24, 53, epilogue=epilogue), caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_operands_of_any_layout(caps: Capabilities) -> None:
    for transpose in ("b", "ab"):
        for m in (5, 31):
            check(case_of(m, 300, 50, transpose=transpose, epilogue="residual"), caps)
    check(case_of(19, 12, 48, batch=(3, 2), a_batch=(3, 1), epilogue="residual"), caps)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("dtypes", [(DType.F16,) * 3, (DType.BF16, DType.F32, DType.F32)])
def test_narrow_storage(caps: Capabilities, dtypes: tuple[DType, DType, DType]) -> None:
    err = {DType.F32: F32_ERR, DType.F16: 6e-4}[dtypes[2]]
    for m in (3, 29):
        check(case_of(m, 30, 53, dtypes=dtypes, epilogue="residual"), caps, err)


@pytest.mark.parametrize("caps", MACHINES)
def test_odd_columns(caps: Capabilities) -> None:
    """Zeros give zeros; a NaN or an infinity spoils its own column only, as it does in the interpreter."""
    for m in (2, 33):
        program, inputs, constants = build(case_of(m, 40, 70, epilogue="bias"))
        constants[0][:, 3] = 0.0
        constants[0][7, 20], constants[0][39, 50], constants[0][0, 69] = np.nan, np.inf, -np.inf
        constants[0][:, 30] *= 1e-30
        check_program(program, inputs, constants, caps, F32_ERR, variants=VARIANTS)


def test_weights_take_a_quarter() -> None:
    program, _, _ = build(case_of(4, 768, 960, symbolic=""))

    def pooled(variants: Sequence[AnyVariant]) -> int:
        planned = plan_for(program, AVX512, variants)
        return sum(evaluate(b.size_bytes, {}) for b in planned.buffers if b.kind is BufferKind.POOL)

    assert pooled(packed_b.VARIANTS) == 4 * 768 * 960
    assert pooled(VARIANTS) == 768 * 960 + 4 * 960


def test_the_choice_between_variants() -> None:
    def chosen(case: GemmCase) -> str:
        program, _, _ = build(case)
        [(_, decision)] = plan_for(program, AVX512).decisions
        return decision.chosen.name

    for m in (1, 128, 4096):
        for n in (768, 50257):  # a last panel that is padded is no reason for f32
            assert chosen(case_of(m, 768, n, symbolic="")) == "gemm.int8_weights"
    assert chosen(case_of(128, 768, 768)) == "gemm.int8_weights"
    assert chosen(case_of(128, 768, 50257)) == "gemm.int8_weights"
    assert chosen(GemmCase(m=128, k=768, n=768)) == "gemm.packed_b"
    assert chosen(case_of(8, 64, 64, constant_b=False)) == "gemm.batched"


def test_reasons_for_refusing() -> None:
    [variant] = VARIANTS
    program, _, _ = build(GemmCase(m=2, k=2, n=2))
    context = BuildContext(caps=AVX512, program=program, constants=frozenset({1}))
    assert variant.admits(gemm_of(program), context) == "the product is asked for in f32"
    asked, _, _ = build(case_of(2, 2, 2))
    assert variant.admits(gemm_of(asked), context) is None
    assert variant.admits(gemm_of(asked), BuildContext(caps=AVX512, program=asked)) == "b is not a constant"


@pytest.mark.parametrize("caps", [pytest.param(caps, id=caps.isa) for caps in (AVX512, NEON)])
def test_text(caps: Capabilities, golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(case_of(2, 5, 12, epilogue="bias", symbolic=""))
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    [variant], op = VARIANTS, gemm_of(program)
    calls = variant.build(op, variant.default(op, context), context)
    golden("\n".join(c_text(call.kernel, caps) for call in calls), ".c")
