"""conv.implicit_gemm against the interpreter, by simulation and by OpenCL, and through NVRTC; no access to shared memory has a
bank conflict, and coordinates are in shared memory where they fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.conv import implicit_gemm
from xyntra_ep.tracea.kernels.gpu.conv._places import hoisting
from xyntra_ep.tracea.kernels.gpu.conv._product import ConvProduct, product_of
from xyntra_ep.tracea.kernels.gpu.gemm import _tiles
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.banks import WARP, conflicts
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, SM_90, Gpu

[IMPLICIT] = implicit_gemm.VARIANTS
ONES = (1,) * 4
F32_ERR = 3e-6
TAIL = ("bias", "residual", "relu")
# How x is read: packets of channels, single channels, single pixels, packets of pixels; and the coordinates of depth: one for a
# step, one for a few channels, one for each element, none in shared memory.
CASES = (
    ConvCase(x=(2, 16, 9, 7), w=(20, 16, 3, 3), pads=ONES, strides=(2, 2), tail=TAIL, symbolic="nhw"),
    ConvCase(x=(2, 12, 9, 7), w=(36, 12, 2, 3), pads=(0, 1, 1, 0), tail=TAIL),
    ConvCase(x=(1, 24, 6, 5), w=(8, 24, 3, 1), tail=("bias",), symbolic="n"),
    ConvCase(x=(2, 6, 13, 11), w=(9, 6, 3, 3), pads=ONES, tail=TAIL),
    ConvCase(x=(1, 3, 15, 14), w=(6, 3, 7, 7), strides=(2, 2), pads=(3,) * 4, channels_last=False),
    ConvCase(x=(2, 16, 9, 7), w=(20, 16, 3, 3), pads=ONES, strides=(2, 1), tail=TAIL, symbolic="nhw", channels_last=False),
    ConvCase(x=(2, 24, 6, 6), w=(12, 24, 2, 2), dilations=(2, 3), channels_last=False),
    ConvCase(x=(2, 20, 8, 8), w=(36, 20, 1, 1), tail=TAIL, channels_last=False, symbolic="n"),
    ConvCase(x=(2, 16, 6, 6), w=(40, 8, 3, 3), group=2, pads=(0, 1, 2, 0), dilations=(1, 2)),
    ConvCase(x=(1, 5, 9), w=(7, 5, 3), symbolic="n"),
    ConvCase(x=(1, 2, 5, 6, 4), w=(5, 2, 3, 3, 3), pads=(1,) * 6, channels_last=False),
    ConvCase(x=(1, 33, 4, 5), w=(8, 33, 5, 5), pads=(2,) * 4, channels_last=False),
    ConvCase(x=(1, 8, 9, 9), w=(8, 4, 2, 3), group=2, dtype=DType.F16),
    ConvCase(x=(1, 8, 9, 9), w=(16, 8, 2, 3), dtype=DType.BF16, slice_of=12, constant_w=False),
)


# Sums of 18 steps and more, in parts: in NHWC, where images are one product, in NCHW, where each is one of its own, of a single
# pixel, of groups, of as many images as a run has.
CUT = (
    ConvCase(x=(2, 32, 5, 4), w=(20, 32, 3, 3), pads=ONES, tail=TAIL),
    ConvCase(x=(2, 32, 5, 4), w=(20, 32, 3, 3), pads=ONES, tail=TAIL, channels_last=False),
    ConvCase(x=(3, 32, 3, 3), w=(5, 32, 3, 3), tail=TAIL, channels_last=False),
    ConvCase(x=(2, 66, 5, 4), w=(22, 33, 3, 3), group=2, strides=(2, 1), tail=TAIL),
    ConvCase(x=(1, 32, 5, 4), w=(20, 32, 3, 3), tail=TAIL, symbolic="n", channels_last=False),
    ConvCase(x=(9, 32, 5, 4), w=(20, 32, 3, 3), tail=TAIL, symbolic="n"),
)


def with_tile(pixels: int, channels: int, parts: int = 1) -> Variant[Conv]:
    """The variant with another default."""
    config = {"pixels": pixels, "channels": channels, "parts": parts}
    return replace(IMPLICIT, default=lambda op, context: config)


def max_err(case: ConvCase) -> float:
    return {DType.F16: 1e-3, DType.BF16: 8e-3}.get(case.dtype, F32_ERR)


def shape_of(case: ConvCase) -> ConvProduct:
    op = conv_program(case)[0].ops[0]
    assert isinstance(op, Conv)
    return product_of(op)


@pytest.mark.parametrize("case", CASES, ids=ConvCase.name)
def test_convolutions(case: ConvCase) -> None:
    gpu = check_simulated(*conv_program(case), max_err(case), variants=[with_tile(32, 32)])
    assert gpu.bank_conflicts == 0


@pytest.mark.parametrize("case", CUT, ids=ConvCase.name)
def test_parts_of_the_sum(case: ConvCase) -> None:
    """A run of one image has them on one unit too, a run of nine has not."""
    gpu, variants = replace(SM_80, units=1) if case.symbolic else SM_80, [with_tile(32, 32, 4)]
    assert any("parts" in kernel.symbol for kernel in plan_for(conv_program(case)[0], gpu, variants).kernels)
    assert check_simulated(*conv_program(case), F32_ERR, variants=variants, gpu=gpu).bank_conflicts == 0


@pytest.mark.device("opencl")
@pytest.mark.parametrize("case", (CASES[0], CASES[4], CASES[8], *CUT[1:4]), ids=ConvCase.name)
def test_opencl(case: ConvCase) -> None:
    check_on_opencl(*conv_program(case), max_err(case), variants=[with_tile(32, 32, 4 if case in CUT else 1)])


@pytest.mark.parametrize("channels_last", [True, False])
def test_tiles_that_are_not_square(channels_last: bool) -> None:
    case = ConvCase(x=(3, 16, 5, 8), w=(72, 16, 1, 2), tail=TAIL, channels_last=channels_last)
    for pixels, channels in ((128, 32), (32, 128)):
        assert check_simulated(*conv_program(case), F32_ERR, variants=[with_tile(pixels, channels)]).bank_conflicts == 0


def test_no_tile_of_the_search_space_has_bank_conflicts() -> None:
    """Tiles are those of products, whose tests have them; coordinates are read as this counts."""
    known = [fetch for fetches in _tiles.all_fetches().values() for fetch in fetches]
    pixels, channels, _ = (axis.values for axis in implicit_gemm.SPACE)
    for shape in map(shape_of, CASES):
        for config in ({"pixels": p, "channels": c} for p in pixels for c in channels):
            fetch = shape.fetch(shape.tile(config))
            assert fetch in known
            grain = hoisting(shape, fetch, SM_90.common_shared_bytes).grain
            places = [fetch.lanes().at(thread) for thread in range(fetch.tile.threads)]
            for read in ([p["o"] for p in places], [p["k"] // grain for p in places]):
                if read[0:1] == read[1:2] or fetch.along_k:  # threads along pixels read the coordinates of one depth
                    warps = [read[i : i + WARP] for i in range(0, len(read), WARP)]
                    assert sum(conflicts([4 * at for at in warp], 4) for warp in warps) == 0, (config, shape)


def test_coordinates_are_in_shared_memory_where_they_fit() -> None:
    def kept(case: ConvCase, limit_bytes: int = SM_80.common_shared_bytes) -> tuple[int, int]:
        shape = shape_of(case)
        found = hoisting(shape, shape.fetch(shape.tile({"pixels": 32, "channels": 32})), limit_bytes)
        return found.pixels, found.steps

    steps, few, single, pixels = CASES[0], CASES[1], CASES[3], CASES[5]
    assert kept(steps) == (32, 9)  # a tap for each step of 16 channels
    assert kept(few) == (32, 5 * 4)  # one for 4 channels
    assert kept(single) == (32, 4 * 8)  # one for 2
    assert kept(pixels) == (0, 9)  # a thread's own pixel is in its registers
    assert kept(replace(single, x=(1, 71, 9, 9), w=(8, 71, 3, 3))) == (32, 0)
    assert kept(steps, (16 << 9) + 400) == (32, 0)
    assert kept(steps, 16 << 9) == (0, 0)


def test_what_is_worked_out_where_it_is_needed_is_the_same() -> None:
    tight = replace(SM_80, shared_bytes=16 << 9)  # the tiles alone
    for case in (CASES[1], CASES[6]):
        check_simulated(*conv_program(case), F32_ERR, variants=[with_tile(32, 32)], gpu=tight)


def test_the_configuration_follows_the_shape() -> None:
    def chosen(case: ConvCase, gpu: Gpu = SM_80) -> tuple[str, tuple[int, ...]]:
        decision = plan_for(conv_program(case)[0], gpu).decisions[0][1]
        return decision.chosen.name, tuple(decision.config.values())

    early = ConvCase(x=(32, 64, 56, 56), w=(64, 64, 3, 3), pads=ONES)
    assert chosen(early) == ("conv.implicit_gemm", (64, 64, 1))
    late = replace(early, x=(1, 512, 7, 7), w=(512, 512, 3, 3))
    assert chosen(late) == ("conv.implicit_gemm", (32, 64, 16))
    assert chosen(replace(late, symbolic="n"))[1][2] > 1
    assert chosen(replace(early, w=(3, 64, 3, 3)))[0] == "conv.thread"


def test_what_it_does_not_take() -> None:
    def reason(case: ConvCase, gpu: Gpu = SM_80) -> str | None:
        program = conv_program(case)[0]
        op = program.ops[0]
        assert isinstance(op, Conv)
        return IMPLICIT.admits(op, BuildContext(caps=SCALAR, program=program, gpu=gpu))

    assert reason(CASES[0]) is None
    assert reason(CASES[0], replace(ANY_GPU, is_cpu=True)) == "a CPU gains nothing from tiles in shared memory"
    assert reason(replace(CASES[8], w=(16, 1, 3, 3), group=16)) == "a depthwise convolution has no sum over channels"
    assert reason(replace(CASES[0], w=(3, 16, 3, 3))) == "less than 4 channels of a group"


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(conv_program(CASES[12])[0], [with_tile(64, 64)], SM_90)
    compile_for_cuda(conv_program(CASES[5])[0], [with_tile(128, 128)], SM_90)


def test_text(golden: Callable[[str, str], None]) -> None:
    case = ConvCase(x=(8, 64, 28, 28), w=(64, 64, 3, 3), pads=ONES, tail=TAIL, symbolic="n")
    planned = plan_for(conv_program(case)[0], SM_80, [with_tile(32, 32)])
    [source] = [s for s in planned.kernels if "conv2d" in s.symbol]
    golden(source.text, ".cu")
