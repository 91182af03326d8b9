"""scan.thread against the interpreter by OpenCL, and through NVRTC."""

from __future__ import annotations

import itertools

import pytest

from tests.support.gpu.run import check_on_opencl, compile_for_cuda
from tests.tracea.kernels.cpu.rows.test_scan import scan
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import ReduceKind


@pytest.mark.device("opencl")
@pytest.mark.parametrize("dtype", [DType.F32, DType.I64, DType.BOOL])
def test_scans(dtype: DType) -> None:
    for exclusive, reverse in itertools.product((False, True), repeat=2):
        for kind in (ReduceKind.SUM, ReduceKind.PROD):
            program = scan(kind, dtype, exclusive, reverse)
            for shape in ((2, 3, 40), (2, 3, 0), (150, 2, 3)):
                check_on_opencl(program, [random_like(shape, dtype, 0)], [], 1e-5)


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(scan(ReduceKind.SUM, DType.F32, True, False))
