"""pointwise.packets against the interpreter by OpenCL, and through NVRTC: widths of packets, dtypes, odd strides and indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import elementwise, here, permuted, pointwise, special_floats
from tests.support.programs.random import RandomProgram
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Operand, Program, ValueKind
from xyntra_ep.tracea.kernels.gpu.pointwise import transposed
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80, Gpu

TRANSPOSED = transposed.VARIANTS
opencl = pytest.mark.device("opencl")
F32_ERR = 2e-6
STORED_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3}


def gelu_of_sum(x: Expr, y: Expr) -> Expr:
    return call("gelu_erf", call("add", x, y))


def biased(n: int | str) -> Program:
    """relu(x [m, n] + bias [n])"""
    p = ProgramBuilder()
    x, bias = p.input("m", n), p.input(n)
    body = call("relu", call("add", here(x, 0), load(1, axis(1), dtype=DType.F32)))
    return pointwise(x.shape, [x, bias], body, p)


@opencl
def test_edges_of_blocks() -> None:
    for shape in ((), (1,), (1023,), (1024,), (1028,), (3, 5), (0,), (2, 0, 3)):
        program, inputs = elementwise(shape, gelu_of_sum, DType.F32, DType.F32)
        check_on_opencl(program, inputs, [], 1e-5)


@opencl
def test_broadcasts_and_run_time_sizes() -> None:
    for n in (768, 30):
        for m in (1, 7):
            check_on_opencl(biased(n), [random_like((m, n), DType.F32, 0), random_like((n,), DType.F32, 1)], [], F32_ERR)
    check_on_opencl(biased("n"), [random_like((5, 37), DType.F32, 0), random_like((37,), DType.F32, 1)], [], F32_ERR)


def test_packets_are_as_wide_as_is_proven() -> None:
    def width(program: Program) -> int:
        [source] = plan_for(program, ANY_GPU).kernels
        return next((n for n in (8, 4, 2) if f"float{n}" in source.text or f"ushort{n}" in source.text), 1)

    assert width(biased(768)) == 4
    assert width(biased(30)) == 2
    assert width(biased("n")) == 1
    for stride, offset, expected in ((32, 0, 4), (30, 0, 2), (32, 6, 2), (32, 1, 1)):  # part of a wider tensor
        p = ProgramBuilder()
        x = p.input(5, 40)
        part = Operand(value=x.value, dtype=x.dtype, shape=(5, 24), strides=(stride, 1), offset=offset)
        program = pointwise(part.shape, [part], call("neg", here(part, 0)), p)
        assert width(program) == expected, (stride, offset)
        check_simulated(program, [random_like((5, 40), DType.F32, 0)], [], F32_ERR)
    for dtype, expected in ((DType.BF16, 8), (DType.F32, 4)):
        assert width(elementwise((64,), lambda x: call("neg", x), dtype, result=dtype)[0]) == expected


@opencl
def test_several_narrow_packets_of_a_thread() -> None:
    """The last block has threads with none, some and all of theirs."""
    for rows, n, each in ((18733, 7, 4), (43707, 6, 2)):
        p = ProgramBuilder()
        x, bias = p.input(rows, n), p.input(n)
        program = pointwise(x.shape, [x, bias], call("add", here(x, 0), load(1, axis(1), dtype=DType.F32)), p)
        [step] = plan_for(program, ANY_GPU).run
        assert step.units == -(-rows * n // (4 // each) // (256 * each))
        check_on_opencl(program, [random_like((rows, n), DType.F32, 0), random_like((n,), DType.F32, 1)], [], F32_ERR)


@opencl
@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype_goes_in_and_out(dtype: DType) -> None:
    def body(x: Expr) -> Expr:
        return call("not", x) if dtype is DType.BOOL else call("mul", x, call("abs", x))

    program, inputs = elementwise((4, 24), body, dtype, result=dtype)
    check_on_opencl(program, inputs, [], STORED_ERR.get(dtype, F32_ERR))


@opencl
@pytest.mark.parametrize("op", ["min", "max", "relu", "tanh", "exp", "sigmoid", "sqrt", "sign"])
def test_special_values(op: str) -> None:
    operands = 2 if op in ("min", "max") else 1
    program, _ = elementwise((50,), lambda *x: call(op, *x), *[DType.F32] * operands)
    x = special_floats((50,))
    x[np.abs(x) == np.float32(3e38)] = 2.0 if op == "exp" else 3e38
    check_on_opencl(program, [x, special_floats((50,), 1)[::-1].copy()][:operands], [], F32_ERR)


@opencl
def test_transposed_and_gathered() -> None:
    p = ProgramBuilder()
    x = permuted(p.input(9, 13), (1, 0))
    check_on_opencl(pointwise(x.shape, [x], call("neg", here(x, 0)), p), [random_like((9, 13), DType.F32, 0)], [], F32_ERR)
    p = ProgramBuilder()
    table, ids = p.input(7, 12), p.input(5, dtype=DType.I64)
    row = load(1, axis(0), dtype=DType.I64)
    body = load(0, row, axis(1), dtype=DType.F32)
    picked = np.array([6, 0, 3, 3, 1], dtype=np.int64)
    check_on_opencl(pointwise((5, 12), [table, ids], body, p), [random_like((7, 12), DType.F32, 0), picked], [], F32_ERR)
    p = ProgramBuilder()
    x = p.input(10)
    at = call("sub", axis(0), const(3))
    inside = call("and", call("le", const(0), at), call("lt", at, const(10)))
    body = call("where", inside, load(0, at, dtype=DType.F32), const(0.5))
    check_on_opencl(pointwise((16,), [x], body, p), [random_like((10,), DType.F32, 0)], [], F32_ERR)


def turned(shape: tuple[int | str, ...], order: tuple[int, ...], dtype: DType, others: int = 0) -> Program:
    """x [shape] with its axes in another order, and others that lie as the result does: one dense, one of its last axis."""
    p = ProgramBuilder()
    x = permuted(p.input(*shape, dtype=dtype), order)
    result = [shape[i] for i in order]
    operands = [x, *(p.input(*of) for of in (result, result[-1:])[:others])]
    body = here(x, 0)
    for i in range(1, len(operands)):
        axes = range(len(shape)) if i == 1 else [len(shape) - 1]
        body = call("add", body, load(i, *map(axis, axes), dtype=DType.F32))
    return pointwise(x.shape, operands, body, p, dtype)


def of_square(program: Program, shape: tuple[int, ...], order: tuple[int, ...], dtype: DType, others: int = 0) -> None:
    result = tuple(shape[i] for i in order)
    inputs = [random_like(shape, dtype, 0), random_like(result, DType.F32, 1), random_like(result[-1:], DType.F32, 2)]
    gpu = check_simulated(program, inputs[: 1 + others], [], F32_ERR, variants=TRANSPOSED)
    assert gpu.bank_conflicts == 0


def test_squares() -> None:
    """Whole ones, and their edges; in packets, and element by element."""
    for shape, order in (((64, 32), (1, 0)), ((33, 36), (1, 0)), ((2, 31, 34), (0, 2, 1)), ((31, 3, 40), (2, 1, 0))):
        program = turned(shape, order, DType.F32, 2)
        assert plan_for(program, SM_80, TRANSPOSED).decisions[0][1].chosen.name == "pointwise.transposed"
        of_square(program, shape, order, DType.F32, 2)
    of_square(turned(("m", "n"), (1, 0), DType.F32), (33, 30), (1, 0), DType.F32)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.I64, DType.I8])
def test_squares_of_every_size(dtype: DType) -> None:
    for shape in ((40, 36), (32, 33)):
        of_square(turned(shape, (1, 0), dtype), shape, (1, 0), dtype)


def test_who_takes_transpositions() -> None:
    def chosen(program: Program, gpu: Gpu = SM_80) -> str:
        return plan_for(program, gpu).decisions[0][1].chosen.name

    assert chosen(turned((8, 256, 512), (0, 2, 1), DType.F32, 2)) == "pointwise.transposed"
    assert chosen(turned((8, 256, 512), (0, 1, 2), DType.F32)) == "pointwise.packets"
    assert chosen(turned((8, 3, 50176), (0, 2, 1), DType.F32)) == "pointwise.packets"
    assert chosen(turned((8, 256, 512), (0, 2, 1), DType.F32), replace(ANY_GPU, is_cpu=True)) == "pointwise.packets"


@opencl
def test_squares_by_opencl() -> None:
    for dtype in (DType.F32, DType.F16):
        program = turned((2, 40, 36), (0, 2, 1), dtype)
        check_on_opencl(program, [random_like((2, 40, 36), dtype, 0)], [], F32_ERR, variants=TRANSPOSED)


@opencl
@pytest.mark.parametrize("seed", range(8))
def test_random_expressions(seed: int) -> None:
    made = RandomProgram(seed, rank=(0, 1, 2, 3)[seed % 4], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.pointwise(depth=1 + seed % 3)
    dtypes = [v.dtype for v in made.program.values if v.kind is ValueKind.OUTPUT]
    check_on_opencl(made.program, made.inputs, [], max(STORED_ERR.get(d, 3e-5) for d in dtypes))


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    compile_for_cuda(biased(768))
    compile_for_cuda(turned(("m", "n"), (1, 0), DType.BF16, 2), TRANSPOSED)
    compile_for_cuda(elementwise((64,), lambda x: call("tanh", x), DType.F16, result=DType.F16)[0])


def test_text(golden: Callable[[str, str], None]) -> None:
    [source] = plan_for(biased(768), SM_80).kernels
    golden(source.text, ".cu")
