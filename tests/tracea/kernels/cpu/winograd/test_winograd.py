"""Winograd convolutions: exact matrices, and kernels against the interpreter in float64."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.run_program import check_program, plan_for, run_program
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dims import evaluate
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv._shape import conv_shape
from xyntra_ep.tracea.kernels.cpu.winograd import nhwc_winograd
from xyntra_ep.tracea.kernels.cpu.winograd._matrices import TAPS, Matrix, winograd
from xyntra_ep.tracea.kernels.cpu.winograd._shape import WinogradShape
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Prefetching

pytestmark = pytest.mark.compiler("cc")

[WINOGRAD] = nhwc_winograd.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
# Of the largest output; direct f32 sums of this depth: 1e-6 to 3e-6.
F2_ERR, F4_ERR = 1e-6, 4e-6
DEEP_ERR = {2: 8e-7, 4: 2.5e-6}  # of 400 channels; in one chain 1.5e-6 and 5e-6

SAME = (1,) * 4
CASES = [
    ConvCase(x=(1, 16, 8, 8), w=(32, 16, 3, 3), pads=SAME, tail=("bias", "residual", "relu")),
    ConvCase(x=(3, 17, 7, 13), w=(40, 17, 3, 3), pads=SAME, tail=("bias", "relu"), symbolic="n"),
    ConvCase(x=(1, 64, 14, 14), w=(16, 64, 3, 3), pads=(1, 0, 1, 2)),
    ConvCase(x=(1, 20, 29, 30), w=(17, 20, 3, 3), tail=()),
    ConvCase(x=(2, 16, 3, 3), w=(48, 16, 3, 3), pads=SAME, tail=("silu",)),
    ConvCase(x=(1, 16, 9, 11), w=(16, 16, 3, 3), pads=(3, 2, 1, 0), slice_of=21),
    ConvCase(x=(2, 51, 9, 10), w=(60, 17, 3, 3), pads=SAME, group=3, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 64, 13, 8), w=(80, 32, 3, 3), pads=(0, 1, 1, 2), group=2, slice_of=70),
]


def configured(**choice: int) -> Variant[Conv]:
    """The variant with some of its default configuration replaced."""

    def default(op: Conv, context: BuildContext) -> Config:
        return {**WINOGRAD.default(op, context), **choice}

    return replace(WINOGRAD, default=default)


@pytest.mark.parametrize("outputs", [2, 4])
def test_matrices_are_exact(outputs: int) -> None:
    w = winograd(outputs)
    d = [Fraction(k * k - 3) for k in range(w.inputs)]
    g = [Fraction(5), Fraction(-2), Fraction(7)]

    def times(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
        return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]

    products = [u * v for u, v in zip(times(w.g, g), times(w.bt, d), strict=True)]
    direct = [sum((d[i + k] * g[k] for k in range(TAPS)), Fraction(0)) for i in range(outputs)]
    assert times(w.at, products) == direct


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("outputs", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name())
def test_winograd(case: ConvCase, outputs: int, shared: int, caps: Capabilities) -> None:
    program, inputs, constants = conv_program(case)
    variant = configured(outputs=outputs, shared=shared)
    check_program(program, inputs, constants, caps, F2_ERR if outputs == 2 else F4_ERR, variants=[variant])


@pytest.mark.parametrize("symbolic", ["h", "w", "nhw"])
@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("outputs", [2, 4])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name())
def test_images_whose_size_only_a_run_knows(case: ConvCase, outputs: int, shared: int, symbolic: str) -> None:
    """With fewer tiles than a block has, and with more: from 1 to 8 x 8 of them."""
    for tiles in (5, 13, 25):
        program, inputs, constants = conv_program(replace(case, symbolic=symbolic))
        variant = configured(outputs=outputs, shared=shared, tiles=tiles)
        check_program(program, inputs, constants, WIDEST, F2_ERR if outputs == 2 else F4_ERR, variants=[variant])


def test_one_plan_has_any_number_of_tiles_in_its_last_block() -> None:
    """And products of any number of rows, from one to the most that registers hold, equal ones or not: panels enough for 8 units
    leave a block whole."""
    for width in range(2, 136, 4):
        case = ConvCase(x=(1, 16, 4, width), w=(256, 16, 3, 3), pads=SAME, tail=("bias", "residual"), symbolic="w")
        program, inputs, constants = conv_program(case)
        variant = configured(outputs=4, shared=1, tiles=28)
        check_program(program, inputs, constants, WIDEST, F4_ERR, variants=[variant])


@pytest.mark.parametrize("l2_bytes", [1 << 16, 1 << 30])
@pytest.mark.parametrize("outputs", [2, 4])
def test_deep_sums_are_split_and_panels_may_come_first(outputs: int, l2_bytes: int) -> None:
    """With a small L2 all blocks of a panel come before the next one."""
    case = ConvCase(x=(2, 400, 13, 14), w=(70, 400, 3, 3), pads=SAME)
    program, inputs, constants = conv_program(case)
    caps, variant = replace(AVX512, l2_bytes=l2_bytes), configured(outputs=outputs, tiles=5, shared=1)
    check_program(program, inputs, constants, caps, DEEP_ERR[outputs], variants=[variant])


@pytest.mark.parametrize("l2_bytes", [1 << 16, 1 << 30])
@pytest.mark.parametrize(("outputs", "shared"), [(2, 0), (4, 1)])
def test_groups_are_convolutions_of_their_own(outputs: int, shared: int, l2_bytes: int) -> None:
    """What is not a number in one stays there, with all panels of a group before the next group, and blocks before panels."""
    case = ConvCase(x=(2, 96, 13, 14), w=(210, 32, 3, 3), pads=SAME, group=3)
    program, inputs, constants = conv_program(case)
    caps, variant = replace(WIDEST, l2_bytes=l2_bytes), configured(outputs=outputs, tiles=5, shared=shared)
    check_program(program, inputs, constants, caps, F4_ERR, variants=[variant])
    inputs[0][1, 6, 6, 40] = np.nan  # x is NHWC: of the second group
    [y] = run_program(program, inputs, constants, caps, variants=[variant])
    spoilt = np.asarray(np.isnan(y).any(axis=(1, 2)))
    assert not spoilt[0].any() and spoilt[1, 70:140].all() and not spoilt[1, :70].any() and not spoilt[1, 140:].any()


@pytest.mark.parametrize("tiles", [1, 4, 5, 7, 16])
def test_blocks_that_do_not_divide_an_image(tiles: int) -> None:
    program, inputs, constants = conv_program(ConvCase(x=(2, 16, 17, 18), w=(32, 16, 3, 3), pads=SAME))
    check_program(program, inputs, constants, WIDEST, F4_ERR, variants=[configured(outputs=4, tiles=tiles)])


def test_large_weights_are_fetched_ahead() -> None:
    case = ConvCase(x=(1, 128, 7, 7), w=(64, 128, 3, 3), pads=SAME)
    program, inputs, constants = conv_program(case)
    assert any("__builtin_prefetch" in k.text for k in plan_for(program, AVX512, [WINOGRAD]).kernels)
    for prefetching in Prefetching:
        check_program(program, inputs, constants, replace(WIDEST, prefetching=prefetching), F4_ERR, variants=[WINOGRAD])


def test_nan_spreads_no_further_than_its_tile() -> None:
    case = ConvCase(x=(1, 16, 16, 16), w=(16, 16, 3, 3), pads=SAME, tail=())
    program, inputs, constants = conv_program(case)
    inputs[0][0, 5, 5, 3] = np.nan  # x is NHWC; seen by the tiles whose 6 x 6 inputs hold it
    [y] = run_program(program, inputs, constants, WIDEST, variants=[configured(outputs=4)])
    spoilt = np.isnan(y[0]).any(axis=-1)
    assert spoilt[4:7, 4:7].all()
    assert not spoilt[:4].any() and not spoilt[8:].any() and not spoilt[:, 8:].any()


def test_what_is_not_admitted() -> None:
    def why(strict: bool = False, **change: object) -> str | None:
        program, _, _ = conv_program(replace(CASES[0], **change))  # type: ignore[arg-type]  # fields of ConvCase
        [op] = program.ops
        assert isinstance(op, Conv)
        known = frozenset({op.inputs[1].value})
        return WINOGRAD.admits(op, BuildContext(caps=AVX512, program=program, constants=known, strict=strict))

    assert why() is None
    assert why(strict=True) == "its transforms would spread NaN and Inf (fp32_strict)"
    assert why(symbolic="n") is None
    assert why(symbolic="nhw") is None
    assert why(strides=(2, 2)) == "strides or dilations"
    assert why(w=(32, 16, 1, 1)) == "the kernel is not 3x3"
    assert why(w=(32, 8, 3, 3), group=2) == "8 channels in a group"
    assert why(w=(16, 1, 3, 3), group=16) == "1 channels in a group"
    assert why(x=(1, 32, 8, 8), group=2) is None
    assert why(x=(1, 3, 8, 8), w=(32, 3, 3, 3)) == "3 channels"
    assert why(channels_last=False) == "the channels of x are not adjacent"


def test_large_layers_take_it() -> None:
    caps = replace(AVX512, fma_gflops=150.0, dram_gbs=15.0)
    for channels, size in ((64, 56), (128, 28), (256, 14)):
        case = ConvCase(x=(1, channels, size, size), w=(channels, channels, 3, 3), pads=SAME)
        program, _, _ = conv_program(case)
        chosen = {d.chosen.name: d.config for _, d in plan_for(program, caps).decisions}
        # With 256 channels the weights of F(4x4) take longer to come from memory than its products save.
        assert chosen["conv.nhwc_winograd"]["outputs"] == (4 if size >= 28 else 2)


@pytest.mark.parametrize(("group", "channels"), [(4, 112), (10, 56), (10, 24)])
def test_so_do_groups_of_many_channels(group: int, channels: int) -> None:
    case = ConvCase(
        x=(1, group * channels, 28, 28), w=(group * channels, channels, 3, 3), pads=SAME, group=group
    )  # fmt: skip
    program, _, _ = conv_program(case)
    assert "conv.nhwc_winograd" in {d.chosen.name for _, d in plan_for(program, AVX512).decisions}


@pytest.mark.parametrize(
    ("channels", "size", "tiles"),
    [
        pytest.param(256, 14, 16, id="the U of a product is used for the whole image"),
        pytest.param(128, 28, 25, id="but there are 8 units"),
        pytest.param(16, 14, 6, id="and no tiles so small that they wait for U"),
    ],
)
def test_blocks_are_large_where_units_share_v(channels: int, size: int, tiles: int) -> None:
    case = ConvCase(x=(1, channels, size, size), w=(channels, channels, 3, 3), pads=SAME)
    program, _, _ = conv_program(case)
    [(_, decision)] = plan_for(program, AVX512, [WINOGRAD]).decisions
    assert (decision.config["shared"], decision.config["tiles"]) == (1, tiles)


@pytest.mark.parametrize("shared", [0, 1])
@pytest.mark.parametrize("channels", [16, 64, 256])
def test_a_run_cuts_an_image_into_blocks_as_for_a_size_that_is_known(channels: int, shared: int) -> None:
    """As many tiles as leave enough units, nearly the same number in each."""
    case = ConvCase(x=(1, channels, 8, 8), w=(channels, channels, 3, 3), pads=SAME, symbolic="hw")
    program, _, _ = conv_program(case)
    [op] = program.ops
    assert isinstance(op, Conv)
    config = {"outputs": 4, "tiles": 28, "vectors": 2, "shared": shared}
    plan = WinogradShape.of(conv_shape(op), config, AVX512)
    for size in (1, 4, 5, 20, 28, 40, 56, 57, 80, 200):
        sizes = {"h": size, "w": size}
        count, tiles, blocks = (evaluate(s, sizes) for s in (plan.image_tiles, plan.block_tiles, plan.blocks))
        assert 1 <= tiles <= 28
        assert (blocks - 1) * tiles < count <= blocks * tiles
        assert blocks * tiles - count < blocks  # no block could have fewer
        units = blocks * (plan.panels if shared else 1)
        assert units >= (8 if shared else 12) or tiles <= 6 or count <= 6


def test_the_tiles_of_a_block_share_in_fetching_what_comes_next() -> None:
    """Large weights over images of every size: with one product for the whole image, and with many."""
    for width in (4, 12, 28, 60):
        case = ConvCase(x=(1, 128, 8, width), w=(64, 128, 3, 3), pads=SAME, symbolic="hw")
        program, inputs, constants = conv_program(case)
        assert any("__builtin_prefetch" in k.text for k in plan_for(program, AVX512, [WINOGRAD]).kernels)
        for prefetching in Prefetching:
            check_program(program, inputs, constants, replace(WIDEST, prefetching=prefetching), F4_ERR, variants=[WINOGRAD])
