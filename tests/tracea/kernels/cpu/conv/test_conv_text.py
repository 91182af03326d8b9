"""The text of convolution kernels, and how rows are cut into tiles. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.run_program import plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dims import evaluate, symbol
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.cpu.conv import generic, nhwc_depthwise, nhwc_direct
from xyntra_ep.tracea.kernels.cpu.conv._blocking import choose_blocking
from xyntra_ep.tracea.kernels.cpu.conv._row import TapRun, needs_halo, split_row
from xyntra_ep.tracea.kernels.cpu.conv._shape import Line, conv_shape
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

CASE = ConvCase(x=(1, 16, 4, 4), w=(16, 16, 3, 3), pads=(1, 1, 1, 1), tail=("bias", "relu"))


@pytest.mark.parametrize(
    ("case", "variants"),
    [
        (CASE, nhwc_direct.VARIANTS),
        (replace(CASE, w=(16, 1, 3, 3), group=16), nhwc_depthwise.VARIANTS),
        (CASE, generic.VARIANTS),
    ],
    ids=["direct", "depthwise", "generic"],
)
def test_text(case: ConvCase, variants: list[Variant[Conv]], golden: Callable[[str, str], None]) -> None:
    program, _, _ = conv_program(case)
    kernels = [k.readable for k in plan_for(program, AVX512, variants).kernels if "xy_conv" in k.symbol]
    golden("\n".join(kernels), ".c")


def line(out: int, kernel: int = 3, stride: int = 1, pad: int = 1) -> Line:
    inside = (out - 1) * stride + kernel - 2 * pad
    return Line(out=out, inside=inside, kernel=kernel, stride=stride, dilation=1, pad=pad)


def test_tiles_of_a_row_are_nearly_equal() -> None:
    def sizes(out: int) -> list[int]:
        segments = split_row(line(out, kernel=1, pad=0), 12)
        return [s.tile.size for s in segments for _ in range(evaluate(s.count, {}))]

    assert sizes(49) == [10, 10, 10, 10, 9]
    assert sizes(12) == [12]
    assert sizes(13) == [7, 6]
    assert sizes(0) == []


def test_only_tiles_at_the_edges_leave_pixels_out() -> None:
    first, middle, last = split_row(line(36), 12)
    assert first.tile.runs == (TapRun(0, 1, 1, 12), TapRun(1, 2, 0, 12))
    assert middle.tile.runs == (TapRun(0, 3, 0, 12),)
    assert last.tile.runs == (TapRun(0, 2, 0, 12), TapRun(2, 1, 0, 11))


@pytest.mark.parametrize("largest", [1, 2, 6, 12, 14])
def test_an_unknown_row_is_covered_once(largest: int) -> None:
    w = symbol("w")
    segments = split_row(Line(out=w, inside=w, kernel=1, stride=1, dilation=1, pad=0), largest)
    for out in range(40):
        covered: list[int] = []
        ordinal = 0
        for s in segments:
            count, pixel = evaluate(s.count, {"w": out}), evaluate(s.pixel, {"w": out})
            assert evaluate(s.ordinal, {"w": out}) == ordinal
            ordinal += count
            covered += range(pixel, pixel + count * s.tile.size)
        assert covered == list(range(out))


def test_a_halo_only_where_the_edges_are_not_known() -> None:
    w = symbol("w")
    assert not needs_halo(line(36))
    assert not needs_halo(Line(out=w, inside=w, kernel=1, stride=1, dilation=1, pad=0))
    assert needs_halo(Line(out=w, inside=w, kernel=3, stride=1, dilation=1, pad=1))
    assert needs_halo(line(36, kernel=11, pad=5))


@pytest.mark.parametrize("caps", [AVX512, AVX2, NEON, SCALAR], ids=lambda caps: caps.isa)
@pytest.mark.parametrize("out_channels", [16, 24, 64, 96, 1000])
def test_tiles_fit_in_the_registers(caps: Capabilities, out_channels: int) -> None:
    program, _, _ = conv_program(replace(CASE, x=(1, 16, 56, 56), w=(out_channels, 16, 3, 3)))
    [op] = program.ops
    assert isinstance(op, Conv)
    block = choose_blocking(conv_shape(op), caps)
    assert block.pixels * block.vectors + block.vectors + 1 <= caps.vector_registers


@pytest.mark.parametrize(
    ("caps", "channels", "size", "block"),
    [
        (AVX2, 144, 56, (5, 1)),  # as its lines have place in L1
        (AVX2, 512, 14, (1, 1)),  # 2 KB from pixel to pixel: two sets of 64
        (AVX2, 960, 7, (7, 1)),  # all of it
        (AVX512, 512, 14, (7, 1)),  # whole lines
    ],
)
def test_blocks_stay_in_l1_where_panels_share_lines(caps: Capabilities, channels: int, size: int, block: tuple[int, int]) -> None:
    case = ConvCase(x=(1, channels, size, size), w=(channels, 1, 3, 3), group=channels, pads=(1, 1, 1, 1))
    [op] = conv_program(case)[0].ops
    assert isinstance(op, Conv)
    chosen = choose_blocking(conv_shape(op), caps)
    assert (chosen.rows, chosen.tiles) == block


def test_a_depthwise_row_of_nothing_has_a_block() -> None:
    w = symbol("w")
    for inside in (w, 0):
        shape = conv_shape(depthwise_row())
        row = replace(shape, x=replace(shape.x, out=inside, inside=inside))
        assert choose_blocking(row, AVX2).tiles >= 1


def depthwise_row() -> Conv:
    [op] = conv_program(ConvCase(x=(1, 16, 4, 8), w=(16, 1, 3, 3), group=16, pads=(1, 1, 1, 1)))[0].ops
    assert isinstance(op, Conv)
    return op


def test_work_is_shared_out_by_shape_alone() -> None:
    """Enough units for many threads in every layer that is worth sharing."""
    for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7)):
        case = ConvCase(x=(1, channels, size, size), w=(channels, channels, 3, 3), pads=(1, 1, 1, 1))
        for symbolic in ("", "n"):
            program, _, _ = conv_program(replace(case, symbolic=symbolic))
            [step] = plan_for(program, AVX512, nhwc_direct.VARIANTS).run
            assert evaluate(step.units, {"n": 1}) >= 28
