"""conv.depthwise against the interpreter, by simulation and by OpenCL, and through NVRTC."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv
from xyntra_ep.tracea.kernels.gpu.conv.depthwise import SPACE, VARIANTS
from xyntra_ep.tracea.kernels.variant import Variant
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import SM_80

[DEPTHWISE] = VARIANTS
ONES = (1,) * 4
TAIL = ("bias", "residual", "relu")
CASES = (
    ConvCase(x=(2, 8, 7, 9), w=(8, 1, 3, 3), group=8, pads=ONES, tail=TAIL, symbolic="nhw"),
    ConvCase(x=(1, 12, 9, 8), w=(12, 1, 5, 2), group=12, pads=(2, 0, 1, 1), strides=(2, 3), dilations=(1, 2), tail=TAIL),
    ConvCase(x=(2, 7, 6, 10), w=(7, 1, 2, 3), group=7, tail=TAIL),
    ConvCase(x=(2, 8, 11), w=(8, 1, 3), group=8, pads=(0, 2), constant_w=False),
    ConvCase(x=(1, 4, 3, 5, 4), w=(4, 1, 2, 3, 3), group=4, pads=(0, 1, 1, 1, 1, 1)),
    ConvCase(x=(2, 16, 6, 6), w=(16, 1, 3, 3), group=16, pads=ONES, dtype=DType.F16),
)


def with_pixels(pixels: int) -> Variant[Conv]:
    """The variant with another default."""
    return replace(DEPTHWISE, default=lambda op, context: {"pixels": pixels})


def max_err(case: ConvCase) -> float:
    return 1e-3 if case.dtype is DType.F16 else 3e-6


@pytest.mark.parametrize("case", CASES, ids=ConvCase.name)
def test_convolutions(case: ConvCase) -> None:
    for pixels in SPACE[0].values:
        check_simulated(*conv_program(case), max_err(case), variants=[with_pixels(pixels)])


@pytest.mark.device("opencl")
def test_opencl() -> None:
    check_on_opencl(*conv_program(CASES[0]), max_err(CASES[0]), variants=[DEPTHWISE])


def test_what_is_depthwise() -> None:
    def chosen(case: ConvCase) -> str:
        return plan_for(conv_program(case)[0], SM_80).decisions[0][1].chosen.name

    assert chosen(CASES[0]) == "conv.depthwise"
    assert chosen(replace(CASES[0], channels_last=False)) == "conv.thread"
    assert chosen(replace(CASES[0], w=(16, 1, 3, 3))) == "conv.thread"  # two results of each channel


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(conv_program(CASES[0])[0], [with_pixels(4)])
