"""WGSL: 64-bit integers by words, functions by polynomials, packed elements; run by an adapter of WebGPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.gpu.run import check_on_webgpu
from tests.support.printed import gpu_text
from tests.support.programs.elementwise import elementwise, special_floats
from tests.support.programs.random import RandomProgram
from tests.tracea.emitters.test_gpu import KERNELS
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, Expr, call
from xyntra_ep.tracea.emitters.webgpu import text as webgpu

adapter = pytest.mark.device("webgpu")
SMALL = (0, 1, -1, 2, -3, 7, 10, -10, 255, 1000003)
LARGE = (2**31 - 1, -(2**31), 2**32, 2**32 - 1, -(2**32), 2**40 + 3, 2**62 + 1, -(2**62), 2**63 - 1, -(2**63) + 1)
PAIRS = np.array([(a, b) for a in (*SMALL, *LARGE) for b in (*SMALL, *LARGE)], np.int64)
INTEGERS = ("add", "sub", "mul", "div", "mod", "fmod", "min", "max", "bitand", "bitor", "bitxor")
# Where a function of floats is asked for: it has to be right to 4 units in the last place, relative to the largest.
RANGES = {
    "exp": (-20, 20), "log": (1e-6, 50), "sin": (-300, 300), "cos": (-300, 300), "tan": (-1.5, 1.5), "asin": (-1, 1),
    "acos": (-1, 1), "atan": (-50, 50), "sinh": (-8, 8), "cosh": (-8, 8), "tanh": (-9, 9), "asinh": (-1e3, 1e3),
    "acosh": (1, 1e3), "atanh": (-0.99, 0.99), "erf": (-4, 4), "sigmoid": (-20, 20), "softplus": (-20, 20),
}  # fmt: skip


@adapter
@pytest.mark.parametrize("op", INTEGERS)
def test_integers_are_exact(op: str) -> None:
    a, b = (np.ascontiguousarray(PAIRS[:, i]) for i in (0, 1))
    program, _ = elementwise(a.shape, lambda x, y: call(op, x, y), DType.I64, DType.I64, result=DType.I64)
    with np.errstate(over="ignore"):
        check_on_webgpu(program, [a, b], [], 0.0)


@adapter
@pytest.mark.parametrize("op", ["lt", "le", "eq"])
def test_integers_are_compared(op: str) -> None:
    a, b = (np.ascontiguousarray(PAIRS[:, i]) for i in (0, 1))
    program, _ = elementwise(a.shape, lambda x, y: call(op, x, y), DType.I64, DType.I64, result=DType.BOOL)
    check_on_webgpu(program, [a, b], [], 0.0)


@adapter
@pytest.mark.parametrize(
    "body",
    [
        lambda x: call("neg", x),
        lambda x: call("abs", x),
        lambda x: call("bitnot", x),
        lambda x: call("sign", x),
        lambda x: call("wrap_i8", x),
        lambda x: call("wrap_u16", x),
        lambda x: call("wrap_i32", x),
    ],
    ids=["neg", "abs", "bitnot", "sign", "i8", "u16", "i32"],
)
def test_an_integer_alone(body: Callable[[Expr], Expr]) -> None:
    a = np.ascontiguousarray(PAIRS[:, 0])
    program, _ = elementwise(a.shape, body, DType.I64, result=DType.I64)
    check_on_webgpu(program, [a], [], 0.0)


@adapter
def test_integers_and_floats() -> None:
    """To the nearest float, ties to even; and back towards zero."""
    rng = np.random.default_rng(0)
    a = np.concatenate([PAIRS[:, 0], rng.integers(-(2**63), 2**63 - 1, 500) >> rng.integers(0, 63, 500)])
    near = np.array([2**24 + 1, 2**24 + 3, 2**60 + 2**36, 2**60 + 3 * 2**36, 2**60 + 2**36 + 1, -(2**60) - 2**36], np.int64)
    a = np.concatenate([a, near])
    program, _ = elementwise(a.shape, lambda x: call("to_f", x), DType.I64)
    check_on_webgpu(program, [a], [], 2.0**-24)
    odd = np.array([0.5, -0.5, 1.99, -1.99, 2**31, 2**40 + 2**20], np.float32)
    x = np.concatenate([a.astype(np.float32)[np.abs(a) < 2**62], odd])
    program, _ = elementwise(x.shape, lambda v: call("to_i", v), DType.F32, result=DType.I64)
    check_on_webgpu(program, [x], [], 0.0)


@adapter
@pytest.mark.parametrize("op", RANGES)
def test_functions_of_floats(op: str) -> None:
    low, high = RANGES[op]
    x = np.random.default_rng(0).uniform(low, high, 4000).astype(np.float32)
    program, _ = elementwise(x.shape, lambda v: call(op, v), DType.F32)
    check_on_webgpu(program, [x], [], 1e-6)


@adapter
def test_powers_and_remainders() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(low, high, 3000).astype(np.float32) for low, high in ((0.01, 9), (-6, 6)))
    program, _ = elementwise(x.shape, lambda a, b: call("pow", a, b), DType.F32, DType.F32)
    check_on_webgpu(program, [x, y], [], 1e-6)
    whole = np.round(y)
    check_on_webgpu(program, [-x, whole], [], 1e-6)
    for op in ("fmod", "mod"):
        program, _ = elementwise(x.shape, lambda a, b, op=op: call(op, a, b), DType.F32, DType.F32)
        check_on_webgpu(program, [x * 1000, np.where(y == 0, 1, y).astype(np.float32)], [], 1e-6)


@adapter
@pytest.mark.parametrize(
    "op", sorted(name for name, op in SCALAR_OPS.items() if op.args == "f" and not name.startswith("round_"))
)
def test_special_values(op: str) -> None:
    """NaN and infinities are what they are; what is subnormal may be 0, and a sum that is halved may overflow before."""
    x = special_floats((64,))
    x[np.abs(x) < 1e-30] = 0
    x[np.isfinite(x) & (np.abs(x) > 1e38)] = 1e38
    if op in ("sin", "cos", "tan"):
        x[np.abs(x) > 1e6] = np.nan  # WGSL promises nothing of these
    result = DType.BOOL if SCALAR_OPS[op].result == "b" else DType.F32
    program, _ = elementwise((64,), lambda v: call(op, v), DType.F32, result=result)
    check_on_webgpu(program, [x], [], 3e-6)


@adapter
@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_of_all_types(seed: int) -> None:
    made = RandomProgram(seed, rank=(1, 2, 3, 4)[seed % 4], symbolic=seed % 2 == 1, special=False)
    made.pointwise(depth=1 + seed % 3)
    check_on_webgpu(made.program, made.inputs, [], 8e-3)


def test_text(golden: Callable[[str, str], None]) -> None:
    kernel = KERNELS["transpose"]()
    golden(gpu_text(webgpu.emit, kernel), ".wgsl")
