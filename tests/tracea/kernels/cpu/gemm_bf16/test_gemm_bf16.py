"""Matrix products in bfloat16 against the interpreter, which rounds both operands as the kernels do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import BF16_PAIRS, BF16_TILES
from tests.support.printed import c_text
from tests.support.run_program import check_program, plan_for, run_program
from tests.tracea.kernels.gemm_programs import GemmCase, build, gemm_of, swap_output
from xyntra_ep.tracea.core_ir.dtypes import DType, from_float64, to_float64
from xyntra_ep.tracea.core_ir.interpreter import interpret
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm_bf16 import pairs_bf16, tiles_bf16
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX512, Capabilities

pytestmark = pytest.mark.compiler("cc")

TILES = tiles_bf16.VARIANTS
PAIRS = pairs_bf16.VARIANTS
FORMS = [pytest.param(BF16_TILES, TILES, id="tiles"), pytest.param(BF16_PAIRS, PAIRS, id="pairs")]
Form = tuple[Capabilities, list[Variant[Gemm]]]
ERR = 1e-5  # both sides round the operands equally; sums of k <= 300 products in f32
STORED_ERR = {DType.F32: ERR, DType.F16: 6e-4, DType.BF16: 5e-3}
NARROW_A = (DType.BF16, DType.F32, DType.F32)


def case(m: int, k: int, n: int, **more: object) -> GemmCase:
    return GemmCase(m=m, k=k, n=n, product=Product.BF16, **more)  # type: ignore[arg-type]  # fields of GemmCase


def check(gemm: GemmCase, caps: Capabilities, variants: list[Variant[Gemm]], max_err: float = ERR) -> None:
    program, inputs, constants = build(gemm)
    check_program(program, inputs, constants, caps, max_err, variants=variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("dtypes", [NARROW_A, (DType.F32,) * 3], ids=["narrow", "wide"])
def test_every_number_of_rows(caps: Capabilities, variants: list[Variant[Gemm]], dtypes: tuple[DType, DType, DType]) -> None:
    for m in (*range(0, 36), 48, 63, 64, 65, 70, 97, 129):
        check(case(m, 64, 48, epilogue="residual", dtypes=dtypes), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("m", [1, 16, 17, 33])
def test_a_known_number_of_rows(caps: Capabilities, variants: list[Variant[Gemm]], m: int) -> None:
    check(case(m, 96, 40, epilogue="bias", symbolic="", dtypes=NARROW_A), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_any_depth_and_width(caps: Capabilities, variants: list[Variant[Gemm]], transpose: str) -> None:
    for k in (0, 1, 2, 15, 16, 31, 32, 33, 77, 256):
        for n in (1, 17, 32, 65) if k in (33, 32) else (33,):
            for dtypes in (NARROW_A, (DType.F32,) * 3):
                check(case(19, k, n, transpose=transpose, dtypes=dtypes), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("stored", [DType.F32, DType.F16, DType.BF16])
def test_storage(caps: Capabilities, variants: list[Variant[Gemm]], stored: DType) -> None:
    for n in (64, 53):
        check(case(21, 64, n, dtypes=(stored,) * 3, epilogue="residual"), caps, variants, STORED_ERR[stored])
    check(case(9, 30, 48, dtypes=(stored,) * 3, transpose="b"), caps, variants, STORED_ERR[stored])


EPILOGUES = ("bias", "gelu", "row", "swapped", "mask", "gather", "lookup", "window", "ahead", "wrapped", "sizes")


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_epilogues(caps: Capabilities, variants: list[Variant[Gemm]], epilogue: str) -> None:
    for n in (64, 53):
        check(case(37, 32, n, epilogue=epilogue, dtypes=NARROW_A), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("epilogue", ["gelu", "gelu_tanh"])
def test_an_activation_is_as_exact_as_its_rounding(caps: Capabilities, variants: list[Variant[Gemm]], epilogue: str) -> None:
    program, inputs, constants = build(case(37, 32, 64, epilogue=epilogue, dtypes=(DType.BF16, DType.F32, DType.BF16)))
    inputs[0] = from_float64(to_float64(inputs[0], DType.BF16) * 3, DType.BF16)
    [got] = run_program(program, inputs, constants, caps, variants=variants)
    [wanted] = interpret(program, inputs, constants)
    error = np.abs(to_float64(got, DType.BF16) - wanted)
    assert wanted.max() > 5 and wanted.min() < -0.1
    assert (error <= 2.0**-8 * np.abs(wanted) + 3e-4).all()


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_batches(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    for dtypes in (NARROW_A, (DType.F32,) * 3):
        check(case(7, 32, 48, batch=(2, 3), symbolic="0m", epilogue="residual", dtypes=dtypes), caps, variants)
        check(case(7, 40, 48, batch=(3, 2), a_batch=(3, 1), epilogue="residual", dtypes=dtypes), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_result_with_strided_columns(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    program, inputs, constants = build(case(35, 32, 50, batch=(2,), epilogue="bias"))
    swap_output(program)
    check_program(program, inputs, constants, caps, ERR, variants=variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_special_values_stay_in_their_row(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    for k in (32, 45):
        program, inputs, constants = build(case(35, k, 50, epilogue="bias"))
        inputs[0][2, 3], inputs[0][4, 0], inputs[0][34, k - 1] = np.nan, np.inf, -np.inf
        inputs[1][7] = np.nan
        check_program(program, inputs, constants, caps, ERR, variants=variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_many_rows_are_divided_into_units(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    small = replace(caps, l2_bytes=64 << 10)
    for m in (700, 1025):
        check(case(m, 64, 96, epilogue="bias", dtypes=NARROW_A), small, variants)
        check(case(m, 64, 1056, epilogue="bias", dtypes=NARROW_A), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_rows_do_not_depend_on_their_number(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    program, inputs, constants = build(case(70, 77, 96, epilogue="gelu"))
    whole = run_program(program, inputs, constants, caps, variants=variants)[0]
    for m in (3, 9, 33, 69):
        part = run_program(program, [inputs[0][:m], *inputs[1:]], constants, caps, variants=variants)[0]
        assert part.tobytes() == whole[:m].tobytes()


@pytest.mark.parametrize("part", [1, 8])
def test_every_chunk_is_legal(part: int) -> None:
    [variant] = TILES
    program, inputs, constants = build(case(300, 96, 70, epilogue="bias"))
    caps = replace(BF16_TILES, l2_bytes=96 << 10)
    forced = replace(variant, default=lambda op, context: {"l2_part": part})
    check_program(program, inputs, constants, caps, ERR, variants=[forced])


@pytest.mark.parametrize("columns", [16, 32, 48, 64])
def test_every_width_of_pairs_is_legal(columns: int) -> None:
    [variant] = PAIRS
    program, inputs, constants = build(case(13, 21, 70, epilogue="bias"))
    forced = replace(variant, default=lambda op, context: {"rows": 6, "columns": columns})
    check_program(program, inputs, constants, BF16_PAIRS, ERR, variants=[forced])


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_text(caps: Capabilities, variants: list[Variant[Gemm]], golden: Callable[[str, str], None]) -> None:
    program, _, _ = build(case(2, 5, 12, epilogue="bias", symbolic=""))
    context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
    [variant], op = variants, gemm_of(program)
    calls = variant.build(op, variant.default(op, context), context)
    golden("\n".join(c_text(call.kernel, caps) for call in calls), ".c")


def test_the_choice_between_variants() -> None:
    def chosen(gemm: GemmCase, caps: Capabilities) -> str:
        program, _, _ = build(gemm)
        [(_, decision)] = plan_for(program, caps).decisions
        return decision.chosen.name

    for m in (1, 128):
        assert chosen(case(m, 768, 768, symbolic=""), BF16_TILES) == "gemm.tiles_bf16"
        assert chosen(case(m, 768, 768, symbolic=""), BF16_PAIRS) == "gemm.pairs_bf16"
        assert chosen(case(m, 768, 768, symbolic=""), AVX512) == "gemm.packed_b"
        assert chosen(GemmCase(m=m, k=768, n=768, symbolic=""), BF16_TILES) == "gemm.packed_b"
    assert chosen(case(128, 64, 128, constant_b=False), BF16_TILES) == "gemm.batched"


def test_reasons_for_refusing() -> None:
    program, _, _ = build(case(2, 2, 2))
    op = gemm_of(program)
    [variant], [of_pairs] = TILES, PAIRS
    assert variant.admits(op, BuildContext(caps=AVX512, program=program)) == "the machine has no matrix tiles"
    assert of_pairs.admits(op, BuildContext(caps=BF16_TILES, program=program)) == "the machine has no fast products of pairs"
    assert variant.admits(op, BuildContext(caps=BF16_TILES, program=program)) == "b is not a constant"
    plain, _, _ = build(GemmCase(m=2, k=2, n=2))
    context = BuildContext(caps=BF16_TILES, program=plain, constants=frozenset({1}))
    for refusing in (variant, of_pairs):
        assert refusing.admits(gemm_of(plain), context) == "a product in f32 is asked for"
