"""Kernels as they are made for CUDA, carried out by the simulation: right, inside of their buffers, free of races and of bank
conflicts. And that the simulation sees each of the mistakes it looks for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gpu import kernels as gpu_kernels
from tests.support.gpu.run import check_simulated
from tests.support.gpu.simulated import SimulatedGpu
from tests.support.programs.elementwise import elementwise
from tests.support.programs.random import RandomProgram
from tests.tracea.kernels import gemm_programs
from tests.tracea.kernels.conv_programs import ConvCase, conv_program
from tests.tracea.kernels.cpu.rows.test_row_reduce import layer_norm, reduction, softmax
from tests.tracea.kernels.cpu.rows.test_scan import scan
from tests.tracea.kernels.gemm_programs import GemmCase
from tests.tracea.kernels.gpu.gemm.test_gemm import with_tile
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import call
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind
from xyntra_ep.tracea.kernels.gpu.rows.row_reduce_block import VARIANTS as BLOCK
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.nodes import lt


@pytest.mark.parametrize("make", [layer_norm, softmax])
def test_normalisations(make: Callable[[int | str, int | str], Program]) -> None:
    for n in (1, 33, 768):
        data = [random_like((3, n), DType.F32, n), *[random_like((n,), DType.F32, 1)] * (make is layer_norm)]
        for program in (make(3, n), make("m", "n")):
            assert check_simulated(program, data, [], 1e-5, variants=BLOCK).bank_conflicts == 0


@pytest.mark.parametrize("kind", list(ReduceKind))
def test_every_kind(kind: ReduceKind) -> None:
    x = random_like((3, 300), DType.F32, 0)
    x[1, 7] = np.nan
    check_simulated(reduction(kind, (3, 300), 1, DType.F32), [x], [], 1e-5)
    check_simulated(reduction(kind, (3, 70), 1, DType.I64), [random_like((3, 70), DType.I64, 0)], [], 0)
    if kind in (ReduceKind.MAX, ReduceKind.MIN, ReduceKind.SUM):
        check_simulated(reduction(kind, (3, 70), 1, DType.BOOL), [random_like((3, 70), DType.BOOL, 0)], [], 0)


@pytest.mark.parametrize("transpose", ["", "a", "b", "ab"])
def test_products(transpose: str) -> None:
    for m, k, n, symbolic in ((33, 17, 65, "mkn"), (36, 20, 68, ""), (64, 32, 64, "")):
        case = GemmCase(m=m, k=k, n=n, transpose=transpose, symbolic=symbolic, constant_b=False, epilogue="residual")
        program, inputs, constants = gemm_programs.build(case)
        gpu = check_simulated(program, inputs, constants, 3e-6, variants=[with_tile(32, 64)])
        assert gpu.bank_conflicts == 0


@pytest.mark.parametrize("rows", [32, 64, 128])
@pytest.mark.parametrize("columns", [32, 64, 128])
def test_every_tile(rows: int, columns: int) -> None:
    program, inputs, constants = gemm_programs.build(GemmCase(m=rows, k=16, n=columns, transpose="b", symbolic=""))
    assert check_simulated(program, inputs, constants, 2e-6, variants=[with_tile(rows, columns)]).bank_conflicts == 0


def test_products_of_nothing() -> None:
    for case in (GemmCase(m=5, k=0, n=6, epilogue="bias"), GemmCase(m=5, k=0, n=32, symbolic="k", constant_b=False)):
        program, inputs, constants = gemm_programs.build(case)
        check_simulated(program, inputs, constants, 2e-6)


def test_others() -> None:
    check_simulated(*conv_program(ConvCase(x=(1, 6, 7, 5), w=(8, 3, 3, 3), pads=(1,) * 4, strides=(2, 1), group=2)), 3e-6)
    check_simulated(scan(ReduceKind.SUM, DType.F32, True, True), [random_like((2, 3, 7), DType.F32, 0)], [], 1e-5)
    for dtype in (DType.F16, DType.BF16):
        program, inputs = elementwise((40,), lambda x: call("tanh", x), dtype, result=dtype)
        check_simulated(program, inputs, [], 8e-3)


@pytest.mark.parametrize("seed", range(24))
def test_random_expressions(seed: int) -> None:
    made = RandomProgram(seed, rank=(0, 1, 2, 3)[seed % 4], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.pointwise(depth=1 + seed % 3)
    check_simulated(made.program, made.inputs, [], 8e-3)
    made = RandomProgram(seed, rank=(2, 1, 3)[seed % 3], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.row_reduce(inner=1 + (seed % 3 == 2), depth=seed % 3)
    check_simulated(made.program, made.inputs, [], 3e-5)


def test_a_pipeline_and_a_transposition() -> None:
    x = random_like((5, 64, 4), DType.F32, 0)
    y = np.zeros((5, 64), np.float32)
    SimulatedGpu().launch(gpu_kernels.pipeline(3), 1, [_bytes(x), _bytes(y)], [5])
    np.testing.assert_allclose(y, np.roll(x, -1, axis=1).sum(axis=2), rtol=1e-5, atol=1e-6)
    x, y, gpu = random_like((32, 64), DType.F32, 1), np.zeros((64, 32), np.float32), SimulatedGpu()
    gpu.launch(gpu_kernels.transpose(), 2, [_bytes(x), _bytes(y)], [32, 64])
    assert (y == x.T).all() and gpu.bank_conflicts == 0
    sums = np.zeros(2, np.float32)
    SimulatedGpu().launch(gpu_kernels.subgroup_sum(), 2, [_bytes(x[0]), _bytes(sums)], [])
    np.testing.assert_allclose(sums, x[0].reshape(2, 32).sum(axis=1), rtol=1e-5)


def _bytes(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1).view(np.uint8)


def _kernel(b: GpuBuilder, mistake: str) -> None:
    x, y, tile = b.buffer("x", DType.F32), b.buffer("y", DType.F32, writable=True), b.shared("tile", DType.F32, 64)
    t = b.thread
    match mistake:
        case "has 64 elements, 64 is used":
            b.store(y, t, b.load(x, t + 1))
        case "read before a barrier":
            b.store(tile, t, b.load(x, t))
            b.store(y, t, b.load(tile, 63 - t))
        case "written before a barrier":
            b.store(tile, t, b.load(x, t))
            b.barrier()
            b.store(y, t, b.load(tile, 63 - t))
            b.store(tile, t, b.load(x, t))
        case "read where nobody has written":
            b.store(y, t, b.load(tile, t))
        case "two threads write":
            b.store(y, t // 2, b.load(x, t))
        case "not aligned":
            b.store(y, t, b.load_packet("v", x, t, 4)[0])
        case "beyond 32 bits":
            b.store(y, t, b.load(x, t * 2147483647 - t * 2147483647 + t))
        case "not all threads come by":
            with b.when(lt(t, 7)):
                b.barrier()


@pytest.mark.parametrize(
    "mistake",
    ["has 64 elements, 64 is used", "read before a barrier", "written before a barrier", "read where nobody has written",
     "two threads write", "not aligned", "beyond 32 bits", "not all threads come by"],
)  # fmt: skip
def test_mistakes_are_seen(mistake: str) -> None:
    b = GpuBuilder("k", 64)
    _kernel(b, mistake)
    data = np.zeros(64, np.float32)
    with pytest.raises(AssertionError, match=mistake):
        SimulatedGpu().launch(b.finish()[0], 1, [_bytes(data), _bytes(data.copy())], [])


def test_conflicts_are_counted() -> None:
    b = GpuBuilder("k", 64)
    x, tile = b.buffer("x", DType.F32), b.shared("tile", DType.F32, 64 * 8)
    b.store(tile, b.thread * 8, b.load(x, b.thread))
    gpu = SimulatedGpu()
    gpu.launch(b.finish()[0], 1, [_bytes(np.zeros(64, np.float32))], [])
    assert gpu.bank_conflicts == 2 * 7
