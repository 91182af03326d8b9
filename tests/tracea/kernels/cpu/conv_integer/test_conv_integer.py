"""Convolutions of bytes against the interpreter, bit by bit: random data, extremes, ragged shapes, every sign."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import AVX_VNNI, INT8_TILES, VNNI
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.cpu.conv import generic, nhwc_depthwise, nhwc_direct
from xyntra_ep.tracea.kernels.cpu.conv_integer import clamped, quads, shorts, tiles_int8
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

SAME, SAME7 = (1,) * 4, (3,) * 4
CLAMPED = [*clamped.VARIANTS, *shorts.VARIANTS]  # the second for what the first does not admit
FORMS = [
    pytest.param(INT8_TILES, tiles_int8.VARIANTS, id="tiles"),
    pytest.param(VNNI, quads.VARIANTS, id="quads"),
    pytest.param(AVX_VNNI, quads.VARIANTS, id="quads-avx2"),
    pytest.param(AVX512, CLAMPED, id="clamped-avx512"),
    pytest.param(AVX2, CLAMPED, id="clamped-avx2"),
    pytest.param(AVX512, shorts.VARIANTS, id="shorts-avx512"),
    pytest.param(AVX2, shorts.VARIANTS, id="shorts-avx2"),
    pytest.param(SCALAR, shorts.VARIANTS, id="shorts-scalar"),
    pytest.param(SCALAR, generic.VARIANTS, id="generic"),
]
DEPTHWISE = [pytest.param(caps, nhwc_depthwise.VARIANTS, id=str(caps.isa)) for caps in (VNNI, AVX2, SCALAR)]


def case(x: tuple[int, ...], w: tuple[int, ...], **more: object) -> ConvCase:
    rest = {"dtype": DType.U8, "w_dtype": DType.I8, "out_dtype": DType.U8, "tail": ("requantised",), **more}
    return ConvCase(x=x, w=w, product=Product.I32, **rest)  # type: ignore[arg-type]  # fields of ConvCase


def check(conv: ConvCase, caps: Capabilities, variants: list[Variant[Conv]]) -> None:
    program, inputs, constants = conv_program(conv)
    check_program(program, inputs, constants, caps, 0.0, variants=variants)


CASES = [
    case((1, 64, 7, 9), (32, 64, 1, 1)),  # read where it lies
    case((3, 64, 13, 17), (64, 64, 1, 1), strides=(2, 2), out_dtype=DType.I32, tail=("wrapped",)),
    case((1, 32, 13, 17), (70, 32, 3, 3), pads=SAME),
    case((3, 16, 17, 13), (48, 16, 3, 3), pads=(1, 0, 1, 2), strides=(2, 1)),
    case((1, 3, 17, 13), (17, 3, 3, 3), pads=(1, 0, 2, 1), dilations=(2, 2)),
    case((2, 3, 33, 40), (64, 3, 7, 7), pads=SAME7, strides=(2, 2)),
    case((2, 17, 33), (16, 17, 3), pads=(1, 1)),
    case((1, 6, 5, 5), (20, 6, 3, 3), pads=(4, 4, 4, 4)),  # some outputs see no pixel at all
    case((1, 66, 6, 6), (32, 66, 1, 1), slice_of=96, out_dtype=DType.I32, tail=("wrapped",)),
    case((2, 8, 12, 11), (24, 8, 3, 3), pads=SAME, symbolic="nhw"),
    case((2, 5, 12, 11), (24, 5, 3, 3), pads=SAME, symbolic="nhw", out_dtype=DType.I32, tail=("wrapped",)),
]


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("conv", CASES, ids=ConvCase.name)
def test_shapes(conv: ConvCase, caps: Capabilities, variants: list[Variant[Conv]]) -> None:
    check(conv, caps, variants)


@pytest.mark.parametrize(("caps", "variants"), FORMS)
@pytest.mark.parametrize("x", [0, 255])
@pytest.mark.parametrize("w", [-128, 127])
def test_extremes(caps: Capabilities, variants: list[Variant[Conv]], x: int, w: int) -> None:
    conv = case((1, 64, 6, 5), (20, 64, 3, 3), pads=SAME, out_dtype=DType.I32, tail=("wrapped",))
    arrays = {"x": np.full((1, 6, 5, 64), x, np.uint8), "w": np.full(conv.w, w, np.int8)}
    check(replace(conv, arrays=arrays), caps, variants)


@pytest.mark.parametrize(
    ("caps", "variants"), [form for form in FORMS if form.id in ("tiles", "quads", "quads-avx2", "shorts-scalar")]
)
@pytest.mark.parametrize(("out", "zero"), [(DType.U8, 0.0), (DType.U8, 113.0), (DType.I8, -5.0), (DType.I8, 7.0)])
@pytest.mark.parametrize("tail", [("quantised",), ("level", "added_level")], ids="-".join)
def test_what_is_quantised(
    caps: Capabilities, variants: list[Variant[Conv]], out: DType, zero: float, tail: tuple[str, ...]
) -> None:
    check(case((1, 16, 5, 7), (53, 16, 1, 1), out_dtype=out, zero=zero, tail=tail), caps, variants)


@pytest.mark.parametrize("vectors", [2, 3, 4])
@pytest.mark.parametrize("out", [DType.U8, DType.I8])
def test_vectors_of_bytes_side_by_side(vectors: int, out: DType) -> None:
    config = {"pixels": 5, "vectors": vectors, "rows": 1, "tiles": 3, "panels": 1}
    forced = [replace(quads.VARIANTS[0], default=lambda op, context: config)]
    check(case((1, 16, 5, 7), (16 * vectors, 16, 1, 1), out_dtype=out, zero=7.0, tail=("quantised",)), VNNI, forced)


@pytest.mark.parametrize(("caps", "variants"), FORMS[3:])
@pytest.mark.parametrize("x", [DType.U8, DType.I8])
@pytest.mark.parametrize("w", [DType.U8, DType.I8])
def test_every_sign(caps: Capabilities, variants: list[Variant[Conv]], x: DType, w: DType) -> None:
    check(case((1, 10, 6, 5), (20, 10, 3, 3), pads=SAME, dtype=x, w_dtype=w), caps, variants)


@pytest.mark.parametrize(("caps", "variants"), DEPTHWISE)
@pytest.mark.parametrize("x", [DType.U8, DType.I8])
def test_depthwise(caps: Capabilities, variants: list[Variant[Conv]], x: DType) -> None:
    for conv in (
        case((1, 40, 9, 14), (40, 1, 3, 3), pads=SAME, group=40, dtype=x),
        case((2, 33, 9, 11), (33, 1, 5, 5), pads=(2,) * 4, strides=(2, 2), group=33, dtype=x, w_dtype=DType.U8),
        case((2, 16, 20, 20), (16, 1, 3, 3), pads=SAME, group=16, symbolic="hw", dtype=x),
        case((1, 16, 30, 30), (16, 1, 12, 12), group=16, dtype=x, out_dtype=DType.I32, tail=("wrapped",)),
    ):
        check(conv, caps, variants)


def test_groups_have_a_kernel() -> None:
    check(case((1, 8, 6, 5), (12, 4, 3, 3), pads=SAME, group=2), SCALAR, generic.VARIANTS)


def refusal(variant: Variant[Conv], conv: ConvCase, caps: Capabilities) -> str | None:
    program, _, _ = conv_program(conv)
    [op] = program.ops
    assert isinstance(op, Conv)
    return variant.admits(op, BuildContext(caps=caps, program=program, constants=frozenset({1})))


def test_what_is_refused() -> None:
    plain = case((1, 8, 6, 5), (12, 8, 3, 3))
    assert refusal(quads.VARIANTS[0], plain, VNNI) is None
    assert refusal(quads.VARIANTS[0], plain, AVX2) == "the machine has no products of quads"
    assert refusal(quads.VARIANTS[0], replace(plain, dtype=DType.I8), VNNI) == "i8 times i8, not u8 times i8"
    assert refusal(tiles_int8.VARIANTS[0], plain, INT8_TILES) is None
    assert refusal(tiles_int8.VARIANTS[0], plain, VNNI) == "the machine has no matrix tiles of bytes"
    assert refusal(tiles_int8.VARIANTS[0], replace(plain, w_dtype=DType.U8), INT8_TILES) == "u8 times u8, not u8 times i8"
    assert refusal(shorts.VARIANTS[0], case((1, 8, 6, 5), (12, 4, 3, 3), group=2), VNNI) == "2 groups"
    assert refusal(nhwc_direct.VARIANTS[0], plain, VNNI) == "the product is in i32"
    wide = case((1, 16, 40, 40), (16, 1, 24, 24), group=16)
    assert "products of bytes in a sum of floats" in (refusal(nhwc_depthwise.VARIANTS[0], wide, VNNI) or "")


def test_the_doctor_takes_quads_where_they_are() -> None:
    for caps, name in (
        (INT8_TILES, "conv.tiles_int8"), (VNNI, "conv.quads"), (AVX_VNNI, "conv.quads"), (AVX2, "conv.clamped"),
        (AVX512, "conv.clamped"), (SCALAR, "conv.shorts"),
    ):  # fmt: skip
        program, _, _ = conv_program(case((1, 64, 56, 56), (64, 64, 3, 3), pads=SAME))
        [(_, decision)] = plan_for(program, caps).decisions
        assert decision.chosen.name == name
