"""Every convolution variant against the interpreter, at the edges of tiles, panels and images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.machine import WIDEST
from tests.support.run_program import check_program, plan_for
from tests.tracea.kernels.conv_programs import Array, ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Range
from xyntra_ep.tracea.kernels.cpu.conv import generic as conv_generic
from xyntra_ep.tracea.kernels.cpu.conv import nhwc_depthwise, nhwc_direct, nhwc_dots, nhwc_grouped, nhwc_small_groups
from xyntra_ep.tracea.kernels.variant import BuildContext, Config, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities, Prefetching

pytestmark = pytest.mark.compiler("cc")

DIRECT, GROUPED = nhwc_direct.VARIANTS, nhwc_grouped.VARIANTS
DOTS = nhwc_dots.VARIANTS
SMALL = nhwc_small_groups.VARIANTS
DEPTHWISE, GENERIC = nhwc_depthwise.VARIANTS, conv_generic.VARIANTS
MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
F32_ERR = 3e-6  # up to 1600 products in one chain, each rounded once
STORED_ERR = {DType.F32: F32_ERR, DType.F16: 6e-4, DType.BF16: 5e-3}  # half a unit in the last place of the result

SAME, SAME5, SAME7 = (1,) * 4, (2,) * 4, (3,) * 4


def check(case: ConvCase, caps: Capabilities, variants: list[Variant[Conv]], max_err: float = F32_ERR) -> None:
    program, inputs, constants = conv_program(case)
    check_program(program, inputs, constants, caps, max_err, variants=variants)


def case_id(case: object) -> str | None:
    return case.name() if isinstance(case, ConvCase) else None


KERNELS = [
    ConvCase(x=(1, 16, 7, 9), w=(32, 16, 1, 1), tail=("bias", "residual", "relu")),
    ConvCase(x=(3, 64, 13, 17), w=(64, 64, 1, 1), strides=(2, 2)),
    ConvCase(x=(1, 64, 13, 17), w=(64, 64, 3, 3), pads=SAME, tail=("bias", "residual", "relu")),
    ConvCase(x=(3, 16, 17, 13), w=(48, 16, 3, 3), pads=SAME, strides=(2, 2), tail=("bias", "silu")),
    ConvCase(x=(1, 3, 17, 13), w=(17, 3, 3, 3), pads=(1, 0, 2, 1), dilations=(2, 2)),
    ConvCase(x=(2, 15, 13, 7), w=(15, 15, 5, 5), pads=SAME5),
    ConvCase(x=(2, 3, 33, 40), w=(64, 3, 7, 7), pads=SAME7, strides=(2, 2), tail=("bias", "relu")),
    ConvCase(x=(1, 5, 14, 31), w=(16, 5, 2, 4), pads=(0, 1, 1, 2), strides=(1, 3)),
    ConvCase(x=(2, 17, 33), w=(16, 17, 3), pads=(1, 1), tail=("relu",)),
    ConvCase(x=(1, 1, 200), w=(1, 1, 5), strides=(3,), dilations=(4,), pads=(9, 2), tail=()),
    ConvCase(x=(1, 4, 6, 40), w=(20, 4, 1, 11), pads=(0, 5, 0, 5)),  # a row long enough to want a halo
    ConvCase(x=(1, 4, 3, 3), w=(20, 4, 3, 3), pads=(4, 4, 4, 4)),  # some outputs see no pixel at all
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", KERNELS, ids=case_id)
def test_direct(case: ConvCase, caps: Capabilities) -> None:
    check(case, caps, DIRECT)


@pytest.mark.parametrize("channels", [1, 3, 15, 16, 17, 64])
def test_direct_channels(channels: int) -> None:
    for cin, cout in ((channels, 17), (17, channels)):
        case = ConvCase(x=(1, cin, 7, 7), w=(cout, cin, 3, 3), pads=SAME, tail=("bias", "residual", "relu"))
        check(case, WIDEST, DIRECT)
        check(replace(case, w=(cout, cin, 1, 1), pads=()), WIDEST, DIRECT)


@pytest.mark.parametrize("width", [1, 2, 11, 12, 13, 27, 56])
def test_direct_every_width_of_a_row(width: int) -> None:
    case = ConvCase(x=(1, 16, 3, width), w=(32, 16, 3, 3), pads=SAME)
    check(case, WIDEST, DIRECT)
    check(replace(case, strides=(2, 2)), WIDEST, DIRECT)


@pytest.mark.parametrize("symbolic", ["n", "h", "w", "nhw"])
@pytest.mark.parametrize("case", [KERNELS[i] for i in (0, 2, 3, 4, 6, 7, 8, 9)], ids=case_id)
def test_direct_with_symbolic_sizes(case: ConvCase, symbolic: str) -> None:
    if case.rank == 1:  # h and w are one axis
        symbolic = symbolic.replace("h", "") or "w"
    check(replace(case, symbolic=symbolic), WIDEST, DIRECT)


EDGES = [
    ConvCase(x=(2, 3, 5, 0), w=(20, 3, 3, 3), pads=SAME, strides=(2, 2), symbolic="w"),
    ConvCase(x=(1, 16, 4, 0), w=(32, 16, 3, 3), pads=SAME, symbolic="hw", tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 3, 9, 0), w=(64, 3, 7, 7), pads=SAME7, strides=(2, 2), symbolic="nhw"),
    ConvCase(x=(1, 5, 6, 0), w=(16, 5, 3, 3), pads=(2, 3, 1, 2), dilations=(2, 3), symbolic="nhw"),
    ConvCase(x=(1, 2, 0), w=(16, 2, 25), pads=(12, 12), strides=(3,), symbolic="w"),
]


def copies_x(case: ConvCase, sizes: Range) -> bool:
    """Whether the whole of x is copied with a halo, where images have these sizes."""
    program, _, _ = conv_program(case)
    program.bindings = [replace(b, plausible=sizes) for b in program.bindings]
    return any("halo" in kernel.symbol for kernel in plan_for(program, WIDEST, DIRECT).kernels)


@pytest.mark.parametrize("case", EDGES, ids=case_id)
def test_ends_of_rows_whose_length_only_a_run_knows(case: ConvCase) -> None:
    """Rows shorter than a tile, of one, and of many; all from one plan, without a copy of x."""
    for width in (1, 2, 3, 5, 8, 12, 13, 23, 24, 25, 26, 40, 61):
        here = replace(case, x=(*case.x[:-1], width))
        if width + sum(case.pads[case.rank - 1 :: case.rank]) > (case.w[-1] - 1) * (case.dilations or (1, 1))[-1]:
            check(here, WIDEST, DIRECT)
    if WIDEST.lanes > 1:  # without vectors copying all of x costs about as much
        assert not copies_x(replace(case, x=(*case.x[:-1], 40)), Range(160, 224, 640))


def test_deep_convolutions_of_short_rows_copy_x_once() -> None:
    """Copies at the ends of rows would be made anew for each panel."""
    case = ConvCase(x=(1, 128, 9, 13), w=(256, 128, 3, 3), pads=SAME, strides=(2, 2), symbolic="hw")
    assert copies_x(case, Range(10, 14, 40))
    check(case, WIDEST, DIRECT)


FAR = [
    ConvCase(x=(1, 16, 9, 0), w=(32, 16, 3, 3), pads=(18,) * 4, dilations=(18, 18), symbolic="nhw"),
    ConvCase(x=(2, 3, 7, 0), w=(16, 3, 3, 3), pads=(4, 30, 4, 30), dilations=(4, 30), strides=(1, 2), symbolic="w"),
    ConvCase(x=(1, 8, 0), w=(16, 8, 5), pads=(40, 40), dilations=(20,), symbolic="w", tail=("bias", "residual", "relu")),
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", FAR, ids=case_id)
def test_taps_that_lie_further_apart_than_rows_are_long(case: ConvCase, caps: Capabilities) -> None:
    """Tiles leave out those that meet nothing of x: with a copy of x, and with copies at the ends of rows."""
    for width in (1, 2, 17, 41, 75):
        check(replace(case, x=(*case.x[:-1], width)), caps, DIRECT)
    program, _, _ = conv_program(replace(case, x=(*case.x[:-1], 41)))
    assert "kx_first" in plan_for(program, caps, DIRECT).kernels[-1].text


def test_direct_without_elements() -> None:
    case = ConvCase(x=(0, 16, 7, 9), w=(32, 16, 3, 3), pads=SAME, symbolic="n")
    check(case, WIDEST, DIRECT)


FEW = [
    ConvCase(x=(2, 32, 9, 40), w=(3, 32, 9, 9), pads=(4,) * 4, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 64, 7, 33), w=(1, 64, 3, 3), pads=SAME, strides=(2, 2), tail=("bias", "sigmoid")),
    ConvCase(x=(1, 19, 9, 23), w=(7, 19, 3, 3), pads=(1, 2, 1, 2), dilations=(1, 2)),  # runs that end within a vector
    ConvCase(x=(2, 3, 9, 31), w=(3, 3, 5, 5), pads=SAME5, tail=("bias", "relu")),
    ConvCase(x=(1, 5, 6, 17), w=(2, 5, 1, 1)),  # a run of less than a wide vector
    ConvCase(x=(1, 40, 13, 17), w=(21, 40, 1, 1)),  # panels, the last of them not full
    ConvCase(x=(2, 24, 300), w=(2, 24, 7), pads=(3, 3)),
    ConvCase(x=(1, 160, 5, 9), w=(4, 160, 5, 5), pads=SAME5),  # chains so long that they are cut
    ConvCase(x=(1, 8, 3, 3), w=(2, 8, 3, 3), pads=(4,) * 4),  # some outputs see no pixel at all
]


@pytest.mark.parametrize("caps", [*MACHINES[:3], pytest.param(replace(AVX512, halves=True), id="halves")])
@pytest.mark.parametrize("symbolic", ["", "nhw"])
@pytest.mark.parametrize("case", FEW, ids=case_id)
def test_few_channels(case: ConvCase, symbolic: str, caps: Capabilities) -> None:
    check(replace(case, symbolic=symbolic.replace("h", "") if case.rank == 1 else symbolic), caps, DOTS)


@pytest.mark.parametrize("outputs", [1, 2, 3, 4, 5, 7, 8, 13, 19])
def test_few_channels_of_any_number(outputs: int) -> None:
    for width in (1, 7, 8, 9, 16, 17):
        check(ConvCase(x=(1, 16, 3, width), w=(outputs, 16, 3, 3), pads=SAME), AVX2, DOTS)


def test_tiles_go_through_all_panels_where_weights_are_small() -> None:
    for symbolic in ("", "w"):
        wave = ConvCase(x=(2, 1, 400), w=(72, 1, 10), strides=(5,), pads=(4, 5), symbolic=symbolic)
        image = ConvCase(x=(1, 4, 5, 29), w=(72, 4, 3, 3), pads=SAME, tail=("bias", "residual"), symbolic=symbolic)
        for case in (wave, image):
            check(case, WIDEST, DIRECT)
            check(case, replace(WIDEST, l1d_bytes=1 << 10), DIRECT)


GROUPS = [
    ConvCase(x=(2, 24, 9, 11), w=(36, 6, 3, 3), pads=SAME, group=4, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 24, 9, 11), w=(80, 12, 1, 1), group=2),
    ConvCase(x=(1, 32, 30), w=(32, 2, 9), pads=(4, 4), group=16),
    ConvCase(x=(1, 8, 9, 9), w=(64, 4, 3, 3), pads=SAME, strides=(2, 2), group=2, symbolic="nw"),
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", GROUPS, ids=case_id)
def test_grouped(case: ConvCase, caps: Capabilities) -> None:
    check(case, caps, GROUPED)


SMALL_GROUPS = [
    ConvCase(x=(2, 24, 9, 11), w=(24, 4, 3, 3), pads=SAME, group=6, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 40, 9, 30), w=(40, 2, 3, 3), pads=SAME, strides=(2, 2), group=20, symbolic="nw"),
    ConvCase(x=(1, 48, 7, 9), w=(48, 8, 2, 3), group=6, dilations=(1, 2), slice_of=50),
    ConvCase(x=(1, 16, 33), w=(16, 4, 5), pads=(2, 2), group=4),
]


@pytest.mark.parametrize("case", SMALL_GROUPS, ids=case_id)
@pytest.mark.parametrize("caps", MACHINES[:2])
def test_small_groups(case: ConvCase, caps: Capabilities) -> None:
    [variant] = SMALL
    reason = why(case, variant, caps)
    assert reason == (None if case.w[1] < caps.lanes else "a vector does not hold several groups of 8 channels")
    if reason is None:
        check(case, caps, SMALL)


DEPTH = [
    ConvCase(x=(2, 40, 13, 17), w=(40, 1, 3, 3), pads=SAME, group=40, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 32, 13, 17), w=(32, 1, 5, 5), pads=SAME5, strides=(2, 2), group=32, tail=("bias", "relu")),
    ConvCase(x=(1, 16, 15, 15), w=(16, 1, 7, 7), pads=SAME7, group=16),
    ConvCase(x=(1, 17, 9, 30), w=(17, 1, 1, 11), pads=(0, 5, 0, 5), dilations=(1, 2), group=17),
    ConvCase(x=(1, 9, 13, 30), w=(9, 1, 3, 3), pads=SAME, dilations=(2, 2), group=9),
    ConvCase(x=(3, 33, 40), w=(33, 1, 3), pads=(2, 0), group=33, tail=("silu",)),
    ConvCase(x=(1, 16, 4, 4), w=(16, 1, 1, 1), group=16),
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("symbolic", ["", "nhw"])
@pytest.mark.parametrize("case", DEPTH, ids=case_id)
def test_depthwise(case: ConvCase, symbolic: str, caps: Capabilities) -> None:
    check(replace(case, symbolic=symbolic.replace("h", "") if case.rank == 1 else symbolic), caps, DEPTHWISE)


ANY = [
    ConvCase(x=(1, 3, 7, 9), w=(5, 3, 3, 3), pads=(1, 0, 1, 2), tail=("bias", "residual", "relu")),
    ConvCase(x=(3, 6, 11), w=(8, 3, 3), pads=(2, 2), dilations=(2,), strides=(2,), group=2, channels_last=False),
    ConvCase(x=(2, 4, 5, 6, 7), w=(3, 4, 2, 3, 1), pads=(1, 0, 1, 0, 1, 1), constant_w=False),
    ConvCase(x=(1, 4, 5, 6), w=(8, 1, 2, 3), group=4, channels_last=False, symbolic="nhw"),
]


@pytest.mark.parametrize("dtype", STORED_ERR)
@pytest.mark.parametrize("case", ANY, ids=case_id)
def test_generic(case: ConvCase, dtype: DType) -> None:
    check(replace(case, dtype=dtype), SCALAR, GENERIC, STORED_ERR[dtype])


def with_specials(case: ConvCase) -> Array:
    """x with NaN and infinities in the corners and the middle of the first image."""
    x = conv_program(case)[1][0].copy()
    x[0, 0, 0, 0], x[0, -1, -1, -1], x[0, 3, 4, 1], x[0, 0, -1, 0] = np.nan, np.inf, -np.inf, np.inf
    return x


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("symbolic", ["", "nhw"])
def test_nan_and_infinity_stay_where_they_belong(caps: Capabilities, symbolic: str) -> None:
    full = ConvCase(x=(2, 17, 9, 13), w=(20, 17, 3, 3), pads=SAME, tail=("bias", "relu"), symbolic=symbolic)
    depth = replace(full, w=(17, 1, 3, 3), group=17)
    few = replace(full, w=(2, 17, 3, 3))
    for case, variants in ((full, DIRECT), (depth, DEPTHWISE), (full, GENERIC), *([(few, DOTS)] if caps.lanes > 1 else [])):
        check(replace(case, arrays={"x": with_specials(case)}), caps, variants)


@pytest.mark.parametrize("caps", MACHINES)
def test_channels_of_a_wider_tensor(caps: Capabilities) -> None:
    case = ConvCase(x=(2, 16, 9, 13), w=(24, 16, 3, 3), pads=SAME, slice_of=21)
    check(case, caps, DIRECT)
    check(replace(case, w=(24, 16, 1, 1), pads=()), caps, DIRECT)
    check(replace(case, w=(16, 1, 3, 3), group=16), caps, DEPTHWISE)


@pytest.mark.parametrize("dtype", [DType.F16, DType.BF16])
def test_direct_with_narrow_outputs_and_residuals(dtype: DType) -> None:
    case = ConvCase(x=(1, 16, 9, 13), w=(40, 16, 3, 3), pads=SAME, tail=("bias", "residual", "relu"))
    check(replace(case, out_dtype=dtype), WIDEST, DIRECT, STORED_ERR[dtype])


DEEP = [
    ConvCase(x=(1, 1300, 3, 5), w=(40, 1300, 1, 1), tail=("bias", "residual")),
    ConvCase(x=(1, 131, 7, 7), w=(17, 131, 3, 3), pads=SAME, strides=(2, 2)),
    ConvCase(x=(1, 140, 9, 8), w=(32, 140, 3, 3), pads=(2,) * 4, dilations=(2, 2)),
]


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("case", DEEP, ids=case_id)
def test_deep_sums_are_as_exact_as_short_ones(case: ConvCase, caps: Capabilities) -> None:
    check(case, caps, DIRECT, max_err=7e-7)  # in one chain of additions up to 3e-6


@pytest.mark.parametrize("case", DEEP, ids=case_id)
def test_units_go_through_all_pixels_before_the_next_panel_where_weights_are_large(case: ConvCase) -> None:
    check(case, replace(WIDEST, l2_bytes=1 << 10), DIRECT)


@pytest.mark.parametrize("case", DEEP, ids=case_id)
def test_bursts_change_no_sum(case: ConvCase) -> None:
    check(case, replace(WIDEST, prefetching=Prefetching.BURST), DIRECT, max_err=7e-7)


def test_large_weights_are_fetched_ahead() -> None:
    case = ConvCase(x=(1, 256, 7, 7), w=(128, 256, 3, 3), pads=SAME)
    program, _, _ = conv_program(case)
    assert "__builtin_prefetch" in plan_for(program, AVX512, DIRECT).kernels[-1].text
    check(case, WIDEST, DIRECT)


@pytest.mark.parametrize("caps", MACHINES[:3])
@pytest.mark.parametrize(
    ("case", "variants"),
    [
        (ConvCase(x=(2, 48, 13, 17), w=(12, 48, 1, 1), tail=("bias", "relu")), DIRECT),
        (ConvCase(x=(1, 30, 9, 23), w=(4, 30, 1, 1), strides=(2, 2), tail=("bias", "residual")), DIRECT),
        (ConvCase(x=(2, 40, 13, 29), w=(40, 1, 3, 3), group=40, pads=SAME), DEPTHWISE),
        (ConvCase(x=(1, 33, 12, 31), w=(33, 1, 5, 5), group=33, pads=SAME5, strides=(2, 2), dilations=(1, 2)), DEPTHWISE),
    ],
    ids=case_id,
)
def test_a_large_image_is_fetched_a_tile_ahead(case: ConvCase, variants: list[Variant[Conv]], caps: Capabilities) -> None:
    near, far = replace(caps, l2_bytes=64 << 20), replace(caps, l2_bytes=1 << 10)
    program, *_ = conv_program(case)
    counts = [plan_for(program, each, variants).kernels[-1].text.count("prefetch") for each in (near, far)]
    assert counts[0] < counts[1]
    check(case, far, variants)
    check(replace(case, symbolic="nhw"), far, variants)


def why(case: ConvCase, variant: Variant[Conv], caps: Capabilities = AVX512) -> str | None:
    program, _, _ = conv_program(case)
    [op] = program.ops
    assert isinstance(op, Conv)
    constants = frozenset({op.inputs[1].value}) if case.constant_w else frozenset()
    return variant.admits(op, BuildContext(caps=caps, program=program, constants=constants))


def test_what_is_not_admitted() -> None:
    plain = ConvCase(x=(1, 16, 7, 9), w=(32, 16, 1, 1))
    [direct], [grouped], [depthwise], [generic] = DIRECT, GROUPED, DEPTHWISE, GENERIC
    assert why(plain, direct) is None
    assert why(replace(plain, constant_w=False), direct) == "w is not a constant"
    assert why(replace(plain, channels_last=False), direct) == "the channels of x are not adjacent"
    assert why(ANY[2], direct) == "3 spatial axes"
    assert why(GROUPS[0], direct) == "4 groups"
    assert why(plain, grouped) == why(plain, depthwise) == "one group"
    assert why(DEPTH[0], grouped) == "a depthwise convolution"
    [small], [dots] = SMALL, DOTS
    assert why(FEW[0], dots) is None
    assert why(GROUPS[0], dots) == "4 groups"
    assert why(FEW[0], dots, SCALAR) == "no vectors"
    assert why(replace(FEW[0], w=(65, 32, 9, 9)), dots) == "65 output channels"
    assert why(replace(FEW[0], slice_of=40), dots) == "the pixels of x are not adjacent"
    assert why(replace(FEW[3], w=(3, 3, 1, 1)), dots) == "runs of 3 elements"
    assert why(replace(FEW[0], x=(1, 512, 9, 40), w=(3, 512, 9, 9)), dots) == "432 KiB of x at the end of a row"
    assert why(plain, small) == "one group"
    assert why(GROUPS[0], small) == why(DEPTH[0], small) == "a group has not as many outputs as inputs, and more than one"
    assert why(replace(SMALL_GROUPS[2], w=(48, 8, 2, 5)), small) == "kernel rows of 5 taps"
    assert why(GROUPS[0], depthwise) == "more than one channel in or out per group"
    assert all(why(case, generic) is None for case in (*KERNELS, *GROUPS, *DEPTH, *ANY))


@pytest.mark.parametrize(
    ("case", "chosen"),
    [(KERNELS[0], "conv.nhwc_direct"), (GROUPS[0], "conv.nhwc_grouped"), (DEPTH[0], "conv.nhwc_depthwise"),
     (SMALL_GROUPS[0], "conv.nhwc_small_groups"), (FEW[0], "conv.nhwc_dots"),
     (replace(KERNELS[0], channels_last=False), "conv.generic")],
    ids=lambda v: v if isinstance(v, str) else "",
)  # fmt: skip
def test_the_special_variant_is_chosen(case: ConvCase, chosen: str) -> None:
    program, _, _ = conv_program(case)
    names = [decision.chosen.name for _, decision in plan_for(program, AVX512).decisions]
    assert chosen in names


@pytest.mark.parametrize("variants", [DIRECT, DEPTHWISE, DOTS], ids=["direct", "depthwise", "dots"])
def test_every_configuration_is_right(variants: list[Variant[Conv]]) -> None:
    """One step in each direction from the default, as tuning takes them."""
    case = {"direct": KERNELS[2], "depthwise": DEPTH[0], "dots": FEW[2]}[variants[0].name.rpartition("_")[2]]
    program, inputs, constants = conv_program(case)
    [variant] = variants
    [op] = program.ops
    assert isinstance(op, Conv)
    context = BuildContext(caps=WIDEST, program=program, constants=frozenset({op.inputs[1].value}))
    if (reason := variant.admits(op, context)) is not None:
        pytest.skip(reason)
    default = variant.default(op, context)
    space = variant.space(op, context)
    assert {axis.name: default[axis.name] in axis.values for axis in space} == dict.fromkeys(default, True)
    for axis in space:
        for value in axis.values:
            config = {**default, axis.name: value}
            check_program(program, inputs, constants, WIDEST, F32_ERR, variants=[_fixed(variant, config)])


def _fixed(variant: Variant[Conv], config: Config) -> Variant[Conv]:
    return replace(variant, default=lambda op, context: config)


@pytest.mark.parametrize(
    ("channels", "size", "kernel", "stride"),
    [
        pytest.param((192, 64), 14, 1, 1, id="rows of pixels"),
        pytest.param((960, 160), 7, 1, 1, id="large weights"),
        pytest.param((384, 384), 14, 3, 1, id="depthwise"),
        pytest.param((576, 576), 14, 3, 2, id="depthwise with stride"),
    ],
)
def test_short_convolutions_have_units_for_several_threads(
    channels: tuple[int, int], size: int, kernel: int, stride: int
) -> None:
    cin, cout = channels
    case = ConvCase(
        x=(1, cin, size, size), w=(cout, 1 if kernel > 1 else cin, kernel, kernel), group=cin if kernel > 1 else 1,
        strides=(stride, stride), pads=(kernel // 2,) * 4,
    )  # fmt: skip
    program, _, _ = conv_program(case)
    plan = plan_for(program, replace(AVX512, l2_bytes=2 << 20))
    [step], [(_, decision)] = plan.run, plan.decisions
    assert isinstance(step.units, int)
    assert 8 <= step.units <= 16
    assert kernel == 1 or decision.config["rows"] > 2 * kernel  # rows of a block share what they read
