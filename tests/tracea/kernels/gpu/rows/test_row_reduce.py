"""row_reduce.block and row_reduce.thread against the interpreter by OpenCL, and through NVRTC with exchange between registers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.support.gpu.run import check_on_opencl, check_simulated, compile_for_cuda, plan_for
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import here, permuted, rows, special_floats
from tests.support.programs.random import RandomProgram
from tests.tracea.kernels.cpu.rows.test_row_reduce import layer_norm, reduction, softmax
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import acc, acc_int, axis, call, const, load
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Program, ReduceKind, RowOutput, RowReduce, Stage, ValueKind
from xyntra_ep.tracea.kernels.gpu.rows import row_reduce_block, row_reduce_thread
from xyntra_ep.tracea.kernels.variant import BuildContext, Variant
from xyntra_ep.tracea.semantic_ir.capabilities import SCALAR
from xyntra_ep.tracea.semantic_ir.gpu.capabilities import ANY_GPU, SM_80

opencl = pytest.mark.device("opencl")
[BLOCK], [THREAD] = row_reduce_block.VARIANTS, row_reduce_thread.VARIANTS
BOTH = [pytest.param(v, id=v.name) for v in (BLOCK, THREAD)]
SUM_ERR = 5e-6  # one thread's sum of 800 elements


def normalised(make: Callable[[int | str, int | str], Program], shape: tuple[int, int]) -> list[np.ndarray]:
    return [random_like(shape, DType.F32, 0), *[random_like(shape[1:], DType.F32, 1)] * (make is layer_norm)]


@opencl
@pytest.mark.parametrize("variant", BOTH)
@pytest.mark.parametrize("make", [layer_norm, softmax])
def test_normalisations(make: Callable[[int | str, int | str], Program], variant: Variant[RowReduce]) -> None:
    for n in (1, 31, 130, 768):
        check_on_opencl(make(5, n), normalised(make, (5, n)), [], SUM_ERR, variants=[variant])
    for shape in ((3, 50), (0, 4), (2, 3000)):
        check_on_opencl(make("m", "n"), normalised(make, shape), [], 1e-5, variants=[variant])


@pytest.mark.parametrize("make", [layer_norm, softmax])
def test_rows_that_threads_hold(make: Callable[[int | str, int | str], Program]) -> None:
    """Each has whole packets; all of them, or the last ones only some of the threads."""
    for n, threads in ((256, 32), (192, 32), (264, 64), (8, 32)):
        check_simulated(make(2, n), normalised(make, (2, n)), [], SUM_ERR, variants=[with_threads(threads)])


def with_threads(threads: int) -> Variant[RowReduce]:
    """row_reduce.block with another default."""
    return replace(BLOCK, default=lambda op, context: {"threads": threads})


@opencl
@pytest.mark.parametrize("kind", [ReduceKind.SUM, ReduceKind.MAX, ReduceKind.ARGMAX])
@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16])
def test_packets_of_short_columns(kind: ReduceKind, dtype: DType) -> None:
    """A column is neighbour to the next, as windows of channels are."""
    is_arg = kind is ReduceKind.ARGMAX
    for n, width in ((24, 2 if is_arg else 16 // dtype.bytes), (6, 2), (7, 1)):
        p = ProgramBuilder()
        x = permuted(p.input(2, 5, n, dtype=dtype), (0, 2, 1))
        body = call("add", here(x, 0), load(0, axis(0), axis(1), const(0), dtype=dtype))
        per_row = p.value(ValueKind.OUTPUT, 2, n, dtype=DType.I64 if is_arg else dtype)
        results = [RowOutput(body=acc_int(0) if is_arg else call("mul", acc(0), const(0.5)), operand=per_row, per_row=True)]
        if not is_arg:
            full = permuted(p.value(ValueKind.OUTPUT, 2, 5, n, dtype=dtype), (0, 2, 1))
            results.append(RowOutput(body=call("sub", here(x, 0), acc(0)), operand=full, per_row=False))
        stage = Stage(kind=kind, body=body, dtype=DType.I64 if is_arg else DType.F32)
        p.op(RowReduce(outer=(2, n), inner=(5,), inputs=(x,), stages=(stage,), outputs=tuple(results)))
        max_err = 8e-3 if dtype is DType.BF16 else SUM_ERR
        check_on_opencl(p.program, [random_like((2, 5, n), dtype, 1)], [], max_err, variants=[THREAD])
        word = "ushort" if dtype is DType.BF16 else "float"
        assert (f"{word}{width} packet" in plan_for(p.program, ANY_GPU, [THREAD]).kernels[0].text) == (width > 1)


@opencl
def test_packets_of_windows() -> None:
    """Windows of 3 at every second place, padded, of images whose number a run tells: there may be none."""
    p = ProgramBuilder()
    x = p.input("n", 9, 8)
    at = call("sub", call("add", call("mul", axis(1), const(2)), axis(3)), const(1))
    inside = call("and", call("le", const(0), at), call("lt", at, const(9)))
    body = call("where", inside, load(0, axis(0), at, axis(2), dtype=DType.F32), const(-float("inf")))
    program = rows((x.shape[0], 5, 8), (3,), [x], [Stage(kind=ReduceKind.MAX, body=body)], [(acc(0), True)], p)
    assert "float4 packet" in plan_for(program, ANY_GPU, [THREAD]).kernels[0].text
    for n in (2, 0):
        check_on_opencl(program, [random_like((n, 9, 8), DType.F32, 1)], [], SUM_ERR, variants=[THREAD])


@opencl
@pytest.mark.parametrize("kind", list(ReduceKind))
def test_every_kind(kind: ReduceKind) -> None:
    program = reduction(kind, (4, 83), 1, DType.F32)
    for variant in (THREAD, *[BLOCK] * ("arg" not in kind)):
        check_on_opencl(program, [random_like((4, 83), DType.F32, 1)], [], 1e-5, variants=[variant])


@opencl
@pytest.mark.parametrize("kind", [ReduceKind.MAX, ReduceKind.ANY_NAN_MAX, ReduceKind.MIN, ReduceKind.ARGMAX])
def test_special_values(kind: ReduceKind) -> None:
    x = np.round(special_floats((6, 41)))
    x[1], x[2], x[3], x[4, 7], x[5] = np.nan, -np.inf, np.inf, np.nan, 1.0
    for variant in (THREAD, *[BLOCK] * ("arg" not in kind)):
        check_on_opencl(reduction(kind, x.shape, 1, DType.F32), [x], [], 1e-5, variants=[variant])


@opencl
def test_softmax_of_special_values() -> None:
    x = random_like((6, 40), DType.F32, 0)
    x[0], x[1, 3], x[2, :30], x[3, 4], x[4] = -np.inf, np.nan, -np.inf, np.inf, -1000.0
    check_on_opencl(softmax(6, 40), [x], [], SUM_ERR, variants=[BLOCK])


@opencl
def test_results_per_row_and_per_element_together() -> None:
    p = ProgramBuilder()
    x = p.input("m", 3, 20)
    body = call("sub", here(x, 0), call("div", acc(0), const(60.0)))
    stages = [Stage(kind=ReduceKind.SUM, body=here(x, 0)), Stage(kind=ReduceKind.MAX, body=body)]
    program = rows(x.shape[:1], x.shape[1:], [x], stages, [(acc(1), True), (body, False), (acc(0), True)], p)
    for variant in (BLOCK, THREAD):
        check_on_opencl(program, [random_like((7, 3, 20), DType.F32, 1)], [], SUM_ERR, variants=[variant])


@opencl
@pytest.mark.parametrize("seed", range(6))
def test_random_expressions(seed: int) -> None:
    rank = (2, 1, 3)[seed % 3]
    made = RandomProgram(seed, rank=rank, symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.row_reduce(inner=1 + (rank > 2), depth=seed % 3)
    check_on_opencl(made.program, made.inputs, [], 3e-5)


def test_long_rows_get_blocks_and_short_ones_threads() -> None:
    def chosen(program: Program) -> str:
        return plan_for(program, SM_80).decisions[0][1].chosen.name

    assert chosen(softmax(128, 768)) == "row_reduce.block"
    assert chosen(softmax(100000, 4)) == "row_reduce.thread"
    assert chosen(reduction(ReduceKind.ARGMAX, (4, 500), 1, DType.F32)) == "row_reduce.thread"


def test_threads_follow_the_row() -> None:
    context = BuildContext(caps=SCALAR, program=softmax(4, 768), gpu=ANY_GPU)
    for n, threads in ((20, 32), (300, 128), (768, 256), (5000, 256)):
        [op] = softmax(4, n).ops
        assert isinstance(op, RowReduce)
        assert BLOCK.default(op, context) == {"threads": threads}


@pytest.mark.compiler("nvrtc")
def test_cuda() -> None:
    for program in (layer_norm("m", 768), softmax("m", "n"), reduction(ReduceKind.MAX, (4, 83), 1, DType.F32)):
        compile_for_cuda(program, [BLOCK])
    compile_for_cuda(reduction(ReduceKind.ARGMAX, (4, 83), 1, DType.F32))


def test_text(golden: Callable[[str, str], None]) -> None:
    for suffix, gpu in ((".cu", SM_80), (".cl", ANY_GPU)):
        [source] = plan_for(softmax(128, 768), gpu, [BLOCK]).kernels
        golden(source.text, suffix)
