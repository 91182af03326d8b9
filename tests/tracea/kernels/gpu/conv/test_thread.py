"""conv.thread against the interpreter by OpenCL, and through NVRTC."""

from __future__ import annotations

import pytest

from tests.support.gpu.run import check_on_opencl, compile_for_cuda
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.kernels.gpu.conv.thread import VARIANTS

CASES = (
    ConvCase(x=(1, 5, 9), w=(7, 5, 3), symbolic="n"),
    ConvCase(x=(2, 6, 13, 11), w=(8, 6, 3, 3), pads=(1,) * 4, tail=("bias", "residual", "relu")),
    ConvCase(x=(1, 3, 15, 14), w=(6, 3, 7, 7), strides=(2, 2), pads=(3,) * 4, channels_last=False),
    ConvCase(x=(1, 8, 9, 9), w=(8, 1, 3, 3), pads=(2,) * 4, dilations=(2, 2), group=8, symbolic="hw"),
    ConvCase(x=(1, 8, 9, 9), w=(6, 4, 2, 3), group=2, dtype=DType.F16),
    ConvCase(x=(1, 2, 5, 6, 4), w=(3, 2, 3, 3, 3), pads=(1,) * 6, channels_last=False),
)


@pytest.mark.device("opencl")
@pytest.mark.parametrize("case", CASES, ids=ConvCase.name)
def test_convolutions(case: ConvCase) -> None:
    program, inputs, constants = conv_program(case)
    check_on_opencl(program, inputs, constants, 1e-3 if case.dtype is DType.F16 else 3e-6, variants=VARIANTS)


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(conv_program(CASES[1])[0], VARIANTS)
