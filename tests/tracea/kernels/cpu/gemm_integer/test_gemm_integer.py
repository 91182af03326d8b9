"""Products of bytes against the interpreter, bit by bit: random data, all extremes, ragged shapes, every sign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import AVX_VNNI, INT8_TILES, VNNI
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.gemm_programs import Array, GemmCase, build, gemm_of
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Gemm, Product
from xyntra_ep.tracea.kernels.cpu.gemm import generic
from xyntra_ep.tracea.kernels.cpu.gemm_integer import clamped, quads, shorts, tiles_int8
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

Form = tuple[Capabilities, list[Variant[Gemm]]]
CLAMPED = [*clamped.VARIANTS, *shorts.VARIANTS]  # the second for what the first does not admit
[_TILES] = tiles_int8.VARIANTS
TILES = [replace(_TILES, cost_ns=lambda op, config, context: 0.0), *quads.VARIANTS]  # also where few rows make quads cheaper
FORMS = [
    pytest.param(INT8_TILES, TILES, id="tiles"),
    pytest.param(VNNI, quads.VARIANTS, id="quads"),
    pytest.param(AVX_VNNI, quads.VARIANTS, id="quads-avx2"),
    pytest.param(AVX512, CLAMPED, id="clamped-avx512"),
    pytest.param(AVX2, CLAMPED, id="clamped-avx2"),
    pytest.param(VNNI, shorts.VARIANTS, id="shorts-vnni"),
    pytest.param(AVX_VNNI, shorts.VARIANTS, id="shorts-avx-vnni"),
    pytest.param(AVX512, shorts.VARIANTS, id="shorts-avx512"),
    pytest.param(AVX2, shorts.VARIANTS, id="shorts-avx2"),
    pytest.param(SCALAR, shorts.VARIANTS, id="shorts-scalar"),
    pytest.param(SCALAR, generic.VARIANTS, id="generic"),
]
BYTES = (DType.U8, DType.I8)


def case(m: int, k: int, n: int, a: DType = DType.U8, b: DType = DType.I8, out: DType = DType.I32, **more: object) -> GemmCase:
    return GemmCase(m=m, k=k, n=n, product=Product.I32, dtypes=(a, b, out), **more)  # type: ignore[arg-type]  # fields of GemmCase


def whole_range(array: Array, seed: int) -> Array:
    """Bytes of any value in place of the small ones that a case has."""
    if array.dtype.itemsize != 1:
        return array
    limits = np.iinfo(array.dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, array.shape).astype(array.dtype)


def check(gemm: GemmCase, caps: Capabilities, variants: list[Variant[Gemm]], fill: int | None = None) -> None:
    """``fill``: every byte is the lowest (0) or the largest (1) of its type."""
    program, inputs, constants = build(gemm)
    if fill is None:
        inputs, constants = ([whole_range(x, i) for i, x in enumerate(some)] for some in (inputs, constants))
    else:
        inputs, constants = (
            [np.full_like(x, (np.iinfo(x.dtype).min, np.iinfo(x.dtype).max)[fill]) for x in some] for some in (inputs, constants)
        )
    check_program(program, inputs, constants, caps, 0.0, variants=variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_every_number_of_rows(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    for m in (*range(0, 15), 31, 33, 97):
        check(case(m, 64, 48), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_any_depth_and_width(caps: Capabilities, variants: list[Variant[Gemm]], transpose: str) -> None:
    for k in (0, 1, 2, 3, 4, 5, 7, 8, 31, 77):
        for n in (1, 17, 48, 65) if k in (5, 8) else (33,):
            check(case(11, k, n, transpose=transpose), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS[3:])
@pytest.mark.parametrize("a", BYTES)
@pytest.mark.parametrize("b", BYTES)
def test_every_sign(caps: Capabilities, variants: list[Variant[Gemm]], a: DType, b: DType) -> None:
    for fill in (None, 0, 1):
        check(case(9, 130, 40, a, b), caps, variants, fill)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("fill", [0, 1])
def test_extremes(caps: Capabilities, variants: list[Variant[Gemm]], fill: int) -> None:
    check(case(9, 3072, 40), caps, variants, fill)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("symbolic", ["mk", "mn", "mkn", ""])
def test_sizes_known_and_not(caps: Capabilities, variants: list[Variant[Gemm]], symbolic: str) -> None:
    for constant in (True, False) if "k" not in symbolic and "n" not in symbolic else (False,):
        check(case(10, 30, 50, symbolic=symbolic, constant_b=constant), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
def test_batches(caps: Capabilities, variants: list[Variant[Gemm]]) -> None:
    for b_batch, constant in (((2, 3), False), ((3,), False), ((), True), ((2, 1), False)):
        check(case(7, 18, 20, batch=(2, 3), b_batch=b_batch, constant_b=constant, symbolic="m0"), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("out", [DType.I32, DType.I64, DType.I8, DType.U8])
def test_stored_types(caps: Capabilities, variants: list[Variant[Gemm]], out: DType) -> None:
    for n in (48, 53):
        check(case(9, 20, n, out=out, epilogue="wrapped_sum"), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("epilogue", ["zero_points", "requantised", "gelu_of_int"])
def test_epilogues(caps: Capabilities, variants: list[Variant[Gemm]], epilogue: str) -> None:
    for n in (48, 53):
        gemm = case(21, 40, n, out=DType.U8 if epilogue == "requantised" else DType.F32, epilogue=epilogue)
        program, inputs, constants = build(gemm)
        inputs = [whole_range(x, i) for i, x in enumerate(inputs)]
        constants = [whole_range(x, i) for i, x in enumerate(constants)]
        check_program(program, inputs, constants, caps, 2e-6, variants=variants)


def test_quads_want_an_instruction_and_its_types() -> None:
    def refusal(gemm: GemmCase, caps: Capabilities) -> str | None:
        program, _, _ = build(gemm)
        context = BuildContext(caps=caps, program=program, constants=frozenset({1}))
        return quads.VARIANTS[0].admits(gemm_of(program), context)

    assert refusal(case(4, 4, 4), VNNI) is None
    assert refusal(case(4, 4, 4), AVX512) == "the machine has no products of quads"
    assert refusal(case(4, 4, 4, DType.I8, DType.I8), VNNI) == "i8 times i8, not u8 times i8"
    assert "f32" in (refusal(replace(case(4, 4, 4), dtypes=(DType.F32,) * 3, product=Product.F32), VNNI) or "")


@pytest.mark.parametrize("m", [*range(15, 20), 31, 32, 34, 63, 64, 65, 129])
def test_rows_that_fill_tiles_and_do_not(m: int) -> None:
    for k, n in ((64, 32), (128, 33), (130, 90)):
        check(case(m, k, n, symbolic="m" if m % 2 else ""), INT8_TILES, TILES)


@pytest.mark.parametrize("part", [1, 8])
def test_every_chunk_of_rows_is_legal(part: int) -> None:
    forced = replace(TILES[0], default=lambda op, context: {"l2_part": part})
    for n in (70, 1056):  # the weights stay in L2, or are fetched
        check(case(300, 96, n), replace(INT8_TILES, l2_bytes=64 << 10), [forced])


def test_tiles_want_an_instruction_and_constant_weights() -> None:
    def refusal(gemm: GemmCase, caps: Capabilities = INT8_TILES, constant: bool = True) -> str | None:
        program, _, _ = build(gemm)
        context = BuildContext(caps=caps, program=program, constants=frozenset({1} if constant else ()))
        return _TILES.admits(gemm_of(program), context)

    assert refusal(case(4, 4, 4)) is None
    assert refusal(case(4, 4, 4), VNNI) == "the machine has no matrix tiles of bytes"
    assert refusal(case(4, 4, 4, DType.U8, DType.U8)) == "u8 times u8, not u8 times i8"
    assert refusal(case(4, 4, 4), constant=False) == "b is not a constant"


def test_the_doctor_takes_the_widest_words() -> None:
    for caps, name in (
        (INT8_TILES, "gemm.tiles_int8"), (VNNI, "gemm.quads"), (AVX_VNNI, "gemm.quads"), (AVX2, "gemm.clamped"),
        (AVX512, "gemm.clamped"), (SCALAR, "gemm.shorts"),
    ):  # fmt: skip
        program, _, _ = build(case(128, 768, 768))
        [(_, decision)] = plan_for(program, caps).decisions
        assert decision.chosen.name == name
