"""pointwise.vector against the interpreter: edges of vectors, every dtype, odd strides, odd indices, special values."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.support.machine import VBMI, WIDEST, runnable
from tests.support.programs.builder import ProgramBuilder
from tests.support.programs.elementwise import elementwise, here, permuted, pointwise, special_floats
from tests.support.programs.random import RandomProgram
from tests.support.run_program import check_program, plan_for
from xyntra_ep.tracea.core_ir.dims import select, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, size
from xyntra_ep.tracea.core_ir.interpreter import random_like
from xyntra_ep.tracea.core_ir.ops import Operand, Program, ValueKind
from xyntra_ep.tracea.kernels.cpu.pointwise.vector import VARIANTS
from xyntra_ep.tracea.kernels.cpu.shared.row_units import BLOCK
from xyntra_ep.tracea.kernels.variant import BuildContext
from xyntra_ep.tracea.semantic_ir.capabilities import AVX2, AVX512, NEON, SCALAR, Capabilities

pytestmark = pytest.mark.compiler("cc")

MACHINES = [pytest.param(caps, id=caps.isa) for caps in (AVX512, AVX2, NEON, SCALAR)]
F32_ERR = 2e-6
STORED_ERR = {DType.F16: 1e-3, DType.BF16: 8e-3}


def check(program: Program, inputs: list[np.ndarray], caps: Capabilities = WIDEST, max_err: float = F32_ERR) -> None:
    check_program(program, inputs, [], caps, max_err, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
def test_edges_of_vectors(caps: Capabilities) -> None:
    n = caps.lanes
    for shape in ((), (1,), (n - 1,), (n,), (n + 1,), (3, 2 * n + 1), (0,), (2, 0, 3), (2, 3, n - 1)):
        program, inputs = elementwise(shape, lambda x, y: call("gelu_erf", call("add", x, y)), DType.F32, DType.F32)
        check(program, inputs, caps, 1e-5)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("dtype", list(DType))
def test_every_dtype_goes_in_and_out(dtype: DType, caps: Capabilities) -> None:
    def body(x: Expr) -> Expr:
        return call("not", x) if dtype is DType.BOOL else call("mul", x, call("abs", x))

    program, inputs = elementwise((5, 37), body, dtype, result=dtype)
    check(program, inputs, caps, STORED_ERR.get(dtype, F32_ERR))


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("known", [True, False], ids=["known", "scales_of_a_run"])
@pytest.mark.parametrize(
    ("scale", "zero"), [(0.0307, 129.0), (0.5, 0.0), (1.0, 3.0), (1.9999999, 255.0), (3e-9, 1.0), (1e-30, 7.0)]
)
def test_levels_are_those_of_a_division(scale: float, zero: float, known: bool, caps: Capabilities) -> None:
    """Everywhere around what lies between two levels: the quotient is rounded as a division rounds it, on every machine."""
    divisor = np.float32(scale)
    middles = ((np.arange(-300, 300) + 0.5) * float(divisor)).astype(np.float32)
    below, above = (np.nextafter(middles, np.float32(end)) for end in (-np.inf, np.inf))
    near = [middles, below, above, np.nextafter(above, np.float32(np.inf))]
    x = np.concatenate([*near, special_floats((40,))])

    def body(v: Expr, s: Expr, z: Expr) -> Expr:
        s, z = (const(float(divisor)), const(zero)) if known else (s, z)
        return call("to_i", call("quantise", v, s, z, const(0.0), const(255.0)))

    program, _ = elementwise(x.shape, body, DType.F32, DType.F32, DType.F32, result=DType.U8)
    check(program, [x, np.full_like(x, divisor), np.full_like(x, zero)], caps, 0)


@pytest.mark.parametrize("caps", [*MACHINES, pytest.param(VBMI, id="vbmi")])
@pytest.mark.parametrize("source", [DType.F32, DType.I8, DType.U8])
def test_what_depends_on_a_level_alone_is_looked_up(source: DType, caps: Capabilities) -> None:
    """In vectors. The result is that of the functions themselves, wherever none lies in the middle of two levels."""
    low = -128.0 if source is DType.I8 else 0.0

    def quantised(x: Expr) -> Expr:
        return call("quantise", x, const(0.0307), const(low + 112), const(low), const(low + 255))

    def body(x: Expr) -> Expr:
        level = quantised(x) if source is DType.F32 else call("to_f", x)
        meant = call("mul", call("sub", level, const(low + 112)), const(0.0307))
        return call("to_i", quantised(call("mul", meant, call("sigmoid", meant))))

    every = np.arange(-160, 160)
    x = np.concatenate([special_floats((40,)), (every * 0.0307).astype(np.float32)]) if source is DType.F32 else None
    x = np.arange(low, low + 256).astype(source.numpy) if x is None else x
    program, _ = elementwise(x.shape, body, source, result=DType.I8 if low else DType.U8)
    check(program, [x], caps, 0)
    [kernel] = plan_for(program, caps).kernels
    assert ("xy_lookup_" in kernel.text) == (caps.lanes > 1)


@pytest.mark.parametrize("dtype", [DType.I64, DType.I32, DType.I8, DType.U8])
def test_integers_wrap_as_they_are_stored(dtype: DType) -> None:
    low, high = (0, 255) if dtype is DType.U8 else (np.iinfo(dtype.numpy).min, np.iinfo(dtype.numpy).max)
    data = np.resize(np.array([low, high, 0, 1, high - 1], dtype=dtype.numpy), 35)
    program, _ = elementwise((35,), lambda x: call("add", x, const(3)), dtype, result=dtype)
    check(program, [data])
    program, _ = elementwise((35,), lambda x, y: call("lt", x, y), dtype, dtype, result=DType.BOOL)
    check(program, [data, data[::-1].copy()])


def _casts() -> dict[str, tuple[Callable[[Expr], Expr], DType, DType]]:
    return {
        "bool_to_f32": (lambda x: call("to_f", x), DType.BOOL, DType.F32),
        "f32_to_i64": (lambda x: call("to_i", call("mul", x, const(100.0))), DType.F32, DType.I64),
        "i64_to_bool": (lambda x: call("to_b", x), DType.I64, DType.BOOL),
        "u8_to_f16": (lambda x: call("to_f", x), DType.U8, DType.F16),
        "i8_to_i64": (lambda x: x, DType.I8, DType.I64),
        "bf16_to_f32": (lambda x: x, DType.BF16, DType.F32),
        "isnan": (lambda x: call("isnan", x), DType.F32, DType.BOOL),
    }


@pytest.mark.parametrize("name", list(_casts()))
def test_casts(name: str) -> None:
    body, source, result = _casts()[name]
    program, inputs = elementwise((3, 21), body, source, result=result)
    for caps in runnable(AVX512, AVX2):
        check(program, inputs, caps, STORED_ERR.get(result, F32_ERR))


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("op", ["min", "max", "relu", "abs", "neg", "tanh", "exp", "sigmoid", "floor", "sqrt", "sign"])
def test_special_values(op: str, caps: Capabilities) -> None:
    binary = op in ("min", "max")
    program, _ = elementwise((50,), lambda *x: call(op, *x), *[DType.F32] * (2 if binary else 1))
    x = special_floats((50,))
    x[np.abs(x) == np.float32(3e38)] = 2.0 if op == "exp" else 3e38
    check(program, [x, special_floats((50,), 1)[::-1].copy()][: 2 if binary else 1], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_bounds_that_are_numbers_need_no_comparison_with_nan(caps: Capabilities) -> None:
    """Wherever they stand; a bound that is NaN makes everything NaN."""
    x = special_floats((50,))

    def clipped(lower: float) -> Program:
        return elementwise((50,), lambda x: call("min", const(6.0), call("max", x, const(lower))), DType.F32)[0]

    check(clipped(-1.0), [x], caps)
    check(clipped(math.nan), [x], caps)
    [kernel] = plan_for(clipped(-1.0), caps).kernels
    assert "select" not in kernel.text


def test_permuted_result_is_written_in_memory_order() -> None:
    p = ProgramBuilder()
    x, bias = p.input(2, 3, 5, 20), p.input(20)
    view = permuted(x, (0, 3, 1, 2))
    body = call("add", here(view, 0), load(1, axis(1), dtype=DType.F32))
    program = pointwise(
        view.shape, [view, bias], body, p, output=lambda p: permuted(p.value(ValueKind.OUTPUT, 2, 3, 5, 20), (0, 3, 1, 2))
    )
    check(program, [random_like((2, 3, 5, 20), DType.F32, 0), random_like((20,), DType.F32, 1)])


@pytest.mark.parametrize("caps", MACHINES)
def test_run_time_broadcast(caps: Capabilities) -> None:
    for columns in (1, 19):
        p = ProgramBuilder()
        x, y = p.input("m", "n"), p.input("k", "c")
        k, c = y.shape
        strides = (select(k - 1, 1, 0) * c, select(c - 1, 1, 0))
        view = Operand(value=y.value, dtype=y.dtype, shape=x.shape, strides=strides)
        program = pointwise(x.shape, [x, view], call("add", here(x, 0), here(view, 1)), p)
        check(program, [random_like((4, 19), DType.F32, 0), random_like((4, columns), DType.F32, 1)], caps)


@pytest.mark.parametrize("caps", MACHINES)
def test_rows_of_an_embedding(caps: Capabilities) -> None:
    """Indices out of range, negative ones too, are clamped: they must not crash, and their value is not defined."""
    p = ProgramBuilder()
    table, ids = p.input(7, "d"), p.input("b", "s", dtype=DType.I64)
    d, (b, s) = table.shape[1], ids.shape
    row = load(1, axis(0), axis(1), dtype=DType.I64)
    program = pointwise((b, s, d), [table, ids], load(0, row, axis(2), dtype=DType.F32), p)
    data, good = random_like((7, 33), DType.F32, 0), np.array([[0, 6, 3], [2, 2, 5]])
    check(program, [data, good], caps)
    bad = np.array([[0, 6, 99], [-4, 2, 2**60]])
    check_program(program, [data, bad], [], caps, max_err=10.0, variants=VARIANTS)


@pytest.mark.parametrize("caps", MACHINES)
@pytest.mark.parametrize("extent", [0, 1, 16, 40])
def test_padding_reads_nothing_outside(extent: int, caps: Capabilities) -> None:
    for before, after in ((0, 0), (3, 2), (17, 40)):
        p = ProgramBuilder()
        x = p.input(2, "n")
        n = x.shape[1]
        index = call("sub", axis(1), const(before))
        inside = call("and", call("le", const(0), index), call("lt", index, size(n)))
        body = call("where", inside, load(0, axis(0), index, dtype=DType.F32), const(-1.0))
        program = pointwise((2, n + before + after), [x], body, p)
        if extent + before + after:
            check(program, [random_like((2, extent), DType.F32, 0)], caps)


def test_concatenation_and_tile() -> None:
    p = ProgramBuilder()
    x, y = p.input("a", 3), p.input("b", 3)
    a, b = x.shape[0], y.shape[0]
    first = call("lt", axis(0), size(a))
    body = call(
        "where",
        first,
        load(0, axis(0), axis(1), dtype=DType.F32),
        load(1, call("sub", axis(0), size(a)), axis(1), dtype=DType.F32),
    )
    program = pointwise((a + b, 3), [x, y], body, p)
    for extents in ((2, 5), (0, 4), (4, 0)):
        check(program, [random_like((e, 3), DType.F32, i) for i, e in enumerate(extents)])
    p = ProgramBuilder()
    x = p.input(5, 3)
    body = load(0, call("mod", axis(0), const(5)), call("mod", axis(1), const(3)), dtype=DType.F32)
    check(pointwise((15, 12), [x], body, p), [random_like((5, 3), DType.F32, 0)])


def test_long_rows_and_long_domains_are_split() -> None:
    for shape in ((70000,), (3, 40001), (2, 50, 700)):
        program, inputs = elementwise(shape, lambda x: call("add", x, const(1.0)), DType.F32)
        check(program, inputs)
        units = plan_for(program, AVX512, VARIANTS).run[0].units
        assert isinstance(units, int)
        assert BLOCK / 2 <= math.prod(shape) / units <= 2 * BLOCK
    p = ProgramBuilder()
    x = p.input("n", 3)
    columns = Operand(value=x.value, dtype=x.dtype, shape=(3, x.shape[0]), strides=(1, 3))
    program = pointwise((3, symbol("n")), [columns], here(columns, 0), p)
    check(program, [random_like((40000, 3), DType.F32, 0)])


@pytest.mark.parametrize("seed", range(24))
def test_random_expressions(seed: int) -> None:
    made = RandomProgram(seed, rank=(0, 1, 2, 3, 4, 8)[seed % 6], symbolic=seed % 2 == 1, special=seed % 3 == 2)
    made.pointwise(depth=1 + seed % 3)
    machines = runnable(AVX512, AVX2, SCALAR)
    caps = machines[seed % len(machines)]
    dtypes = [v.dtype for v in made.program.values if v.kind is ValueKind.OUTPUT]
    err = max(STORED_ERR.get(d, 3e-5) for d in dtypes)
    check_program(made.program, made.inputs, [], caps, err, variants=VARIANTS, seed=seed)


def test_everything_is_admitted_and_text_is_stable(golden: Callable[[str, str], None]) -> None:
    program, _ = elementwise((4, 20), lambda x, y: call("relu", call("add", x, y)), DType.F32, DType.F32)
    context = BuildContext(caps=AVX512, program=program)
    assert VARIANTS[0].admits(program.ops[0], context) is None  # type: ignore[arg-type]  # the op is a Pointwise
    golden(plan_for(program, AVX512, VARIANTS).kernels[0].readable, ".c")
