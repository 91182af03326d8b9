"""Convolutions in bfloat16 against the interpreter, which rounds both operands as the kernels do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import BF16_PAIRS, BF16_TILES
from tests.support.run_program import check_program, plan_for, run_program
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Product
from xyntra_ep.tracea.kernels.cpu.conv import nhwc_depthwise, nhwc_direct, nhwc_grouped
from xyntra_ep.tracea.kernels.cpu.conv_bf16 import pairs_bf16, tiles_bf16
from xyntra_ep.tracea.kernels.cpu.winograd import nhwc_winograd
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

TILES, PAIRS = tiles_bf16.VARIANTS, pairs_bf16.VARIANTS
ERR = 1e-5  # both sides round the operands equally; sums of at most 1600 products in f32
NARROW_ERR = 5e-3  # half a unit in the last place of a bfloat16
SAME, SAME5, SAME7 = (1,) * 4, (2,) * 4, (3,) * 4


def case_id(case: object) -> str | None:
    return case.name() if isinstance(case, ConvCase) else None


def check(case: ConvCase, caps: Capabilities, variants: list[Variant[Conv]], max_err: float) -> None:
    program, inputs, constants = conv_program(case)
    check_program(program, inputs, constants, caps, max_err, variants=variants)


CASES = [
    ConvCase(x=(1, 64, 7, 9), w=(32, 64, 1, 1), tail=("bias", "residual", "relu")),  # read where it lies
    ConvCase(x=(3, 64, 13, 17), w=(64, 64, 1, 1), strides=(2, 2)),
    ConvCase(x=(2, 32, 13, 33), w=(70, 32, 3, 3), strides=(2, 1)),
    ConvCase(x=(1, 32, 13, 17), w=(64, 32, 3, 3), pads=SAME, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 64, 14, 14), w=(16, 64, 3, 3), pads=(1, 0, 1, 2), tail=("bias", "silu")),
    ConvCase(x=(3, 16, 17, 13), w=(48, 16, 3, 3), pads=SAME, strides=(2, 2)),
    ConvCase(x=(1, 3, 17, 13), w=(17, 3, 3, 3), pads=(1, 0, 2, 1), dilations=(2, 2)),
    ConvCase(x=(2, 15, 13, 7), w=(15, 15, 5, 5), pads=SAME5),
    ConvCase(x=(2, 3, 33, 40), w=(64, 3, 7, 7), pads=SAME7, strides=(2, 2), tail=("bias", "relu")),
    ConvCase(x=(1, 5, 14, 31), w=(16, 5, 2, 4), pads=(0, 1, 1, 2), strides=(1, 3)),
    ConvCase(x=(2, 17, 33), w=(16, 17, 3), pads=(1, 1), tail=("relu",)),
    ConvCase(x=(1, 1, 200), w=(1, 1, 5), strides=(3,), dilations=(4,), pads=(9, 2), tail=()),
    ConvCase(x=(1, 4, 6, 40), w=(20, 4, 1, 11), pads=(0, 5, 0, 5)),
    ConvCase(x=(1, 4, 3, 3), w=(20, 4, 3, 3), pads=(4, 4, 4, 4)),  # some outputs see no pixel at all
    ConvCase(x=(2, 32, 5, 5), w=(33, 32, 3, 3), dilations=(2, 2), slice_of=50),
    ConvCase(x=(1, 64, 6, 6), w=(32, 64, 1, 1), slice_of=96),
]


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_tiles(case: ConvCase, dtype: DType) -> None:
    check(replace(case, dtype=dtype, out_dtype=DType.F32, product=Product.BF16), BF16_TILES, TILES, ERR)


@pytest.mark.parametrize("case", CASES[:4], ids=case_id)
def test_tiles_with_narrow_outputs_and_residuals(case: ConvCase) -> None:
    check(replace(case, dtype=DType.BF16, product=Product.BF16), BF16_TILES, TILES, NARROW_ERR)


EVEN = [case for case in CASES if case.x[1] % 2 == 0]


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
@pytest.mark.parametrize("case", EVEN, ids=case_id)
def test_pairs(case: ConvCase, dtype: DType) -> None:
    check(replace(case, dtype=dtype, out_dtype=DType.F32, product=Product.BF16), BF16_PAIRS, PAIRS, ERR)


@pytest.mark.parametrize("case", EVEN[:3], ids=case_id)
def test_pairs_with_narrow_outputs_and_residuals(case: ConvCase) -> None:
    check(replace(case, dtype=DType.BF16, product=Product.BF16), BF16_PAIRS, PAIRS, NARROW_ERR)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.F32])
@pytest.mark.parametrize("symbolic", ["n", "w", "nhw"])
def test_pairs_with_symbolic_sizes(symbolic: str, dtype: DType) -> None:
    for case in EVEN[:4]:
        wide = replace(case, symbolic=symbolic, dtype=dtype, out_dtype=DType.F32, product=Product.BF16)
        check(wide, BF16_PAIRS, PAIRS, ERR)


def test_pairs_with_large_weights() -> None:
    case = ConvCase(x=(1, 128, 7, 7), w=(300, 128, 3, 3), pads=SAME, dtype=DType.BF16, product=Product.BF16)
    program, _, _ = conv_program(case)
    assert any("__builtin_prefetch" in k.text for k in plan_for(program, BF16_PAIRS, PAIRS).kernels)
    check(replace(case, out_dtype=DType.F32), BF16_PAIRS, PAIRS, ERR)


def test_what_pairs_do_not_admit() -> None:
    def why(caps: Capabilities = BF16_PAIRS, **change: object) -> str | None:
        program, _, _ = conv_program(replace(CASES[0], **{"product": Product.BF16, **change}))  # type: ignore[arg-type]
        [op] = program.ops
        assert isinstance(op, Conv)
        return PAIRS[0].admits(op, BuildContext(caps=caps, program=program, constants=frozenset({op.inputs[1].value})))

    assert why() is None
    assert why(product=Product.F32) == "a product in f32 is asked for"
    assert why(caps=BF16_TILES) == "the machine has no fast products of pairs"
    assert why(w=(32, 32, 1, 1), group=2) == "2 groups"
    assert why(channels_last=False) == "the channels of x are not adjacent"
    assert why(x=(1, 3, 7, 9), w=(32, 3, 1, 1)) == "3 channels do not make pairs"


@pytest.mark.parametrize("width", [*range(1, 36), 48, 56, 112])
def test_tiles_of_every_width_of_a_row(width: int) -> None:
    case = ConvCase(x=(1, 32, 3, width), w=(32, 32, 3, 3), pads=SAME, dtype=DType.BF16, product=Product.BF16)
    check(replace(case, out_dtype=DType.F32), BF16_TILES, TILES, ERR)


@pytest.mark.parametrize("symbolic", ["n", "h", "w", "nhw"])
@pytest.mark.parametrize("case", [CASES[i] for i in (0, 1, 2, 3, 5, 6, 8)], ids=case_id)
def test_tiles_with_symbolic_sizes(case: ConvCase, symbolic: str) -> None:
    check(replace(case, symbolic=symbolic, product=Product.BF16), BF16_TILES, TILES, ERR)


def test_tiles_without_elements() -> None:
    case = ConvCase(x=(0, 32, 6, 6), w=(32, 32, 3, 3), pads=SAME, symbolic="nhw", product=Product.BF16)
    check(case, BF16_TILES, TILES, ERR)


def test_tiles_with_large_weights() -> None:
    """Units go through all pixels of an image before the next panel, and fetch that meanwhile."""
    case = ConvCase(x=(2, 96, 15, 14), w=(100, 96, 3, 3), pads=SAME, product=Product.BF16)
    caps = replace(BF16_TILES, l2_bytes=1 << 14)
    program, _, _ = conv_program(case)
    assert any("__builtin_prefetch" in k.text for k in plan_for(program, caps, TILES).kernels)
    check(case, caps, TILES, ERR)


def test_nan_stays_in_its_windows_where_runs_are_whole() -> None:
    case = ConvCase(x=(1, 32, 9, 9), w=(32, 32, 3, 3), pads=SAME, tail=(), product=Product.BF16)
    program, inputs, constants = conv_program(case)
    inputs[0][0, 4, 4, 3] = np.nan
    [y] = run_program(program, inputs, constants, BF16_TILES, variants=TILES)
    spoilt = np.isnan(y[0]).any(axis=-1)
    assert spoilt[3:6, 3:6].all() and spoilt.sum() == 9


def test_what_tiles_do_not_admit() -> None:
    def why(caps: Capabilities = BF16_TILES, strict: bool = False, **change: object) -> str | None:
        program, _, _ = conv_program(replace(CASES[0], **{"product": Product.BF16, **change}))  # type: ignore[arg-type]
        [op] = program.ops
        assert isinstance(op, Conv)
        known = frozenset({op.inputs[1].value})
        return TILES[0].admits(op, BuildContext(caps=caps, program=program, constants=known, strict=strict))

    assert why() is None
    assert why(strict=True) is None
    assert why(product=Product.F32) == "a product in f32 is asked for"
    assert why(caps=AVX512) == "the machine has no matrix tiles"
    assert why(w=(32, 32, 1, 1), group=2) == "2 groups"
    assert why(channels_last=False) == "the channels of x are not adjacent"
    zeros = "its weights are filled up with zeros, and zero times NaN or Inf is NaN (fp32_strict)"
    assert why(strict=True, x=(1, 20, 7, 9), w=(32, 20, 1, 1)) == zeros


@pytest.mark.parametrize(("caps", "chosen"), [(BF16_TILES, "conv.tiles_bf16"), (BF16_PAIRS, "conv.pairs_bf16")])
def test_they_are_chosen_where_they_are_asked_for(caps: Capabilities, chosen: str) -> None:
    # Without a stride, 3x3 on a machine of pairs is faster, and as exact, by f32 Winograd over the narrow image.
    case = ConvCase(x=(1, 64, 28, 28), w=(64, 64, 3, 3), pads=SAME, strides=(2, 2), dtype=DType.BF16, product=Product.BF16)
    program, _, _ = conv_program(case)
    assert [d.chosen.name for _, d in plan_for(program, caps).decisions] == [chosen]


@pytest.mark.parametrize("caps", [AVX512, AVX2, SCALAR], ids=lambda c: c.isa)
@pytest.mark.parametrize(
    ("case", "variants"),
    [
        (ConvCase(x=(1, 20, 9, 10), w=(33, 20, 3, 3), pads=SAME, strides=(2, 2)), nhwc_direct.VARIANTS),
        (ConvCase(x=(1, 20, 9, 10), w=(33, 20, 3, 3), pads=SAME), nhwc_winograd.VARIANTS),
        (ConvCase(x=(1, 20, 9, 10), w=(20, 1, 3, 3), pads=SAME, group=20), nhwc_depthwise.VARIANTS),
        (ConvCase(x=(1, 20, 9, 10), w=(20, 5, 3, 3), pads=SAME, group=4), nhwc_grouped.VARIANTS),
        (ConvCase(x=(1, 20, 4, 40), w=(20, 20, 1, 11), pads=(0, 5, 0, 5)), nhwc_direct.VARIANTS),
    ],
    ids=["direct", "winograd", "depthwise", "grouped", "halo"],
)
def test_narrow_images_in_f32_kernels(case: ConvCase, variants: list[Variant[Conv]], caps: Capabilities) -> None:
    check(replace(case, dtype=DType.BF16, out_dtype=DType.F32), caps, variants, 3e-6)
    check(replace(case, dtype=DType.BF16), caps, variants, NARROW_ERR)
