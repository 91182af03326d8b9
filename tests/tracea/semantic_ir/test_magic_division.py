"""Division by reciprocals is exact for every dividend of 31 bits, and is only made where the divisor is not a constant."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.simulated import SimulatedGpu
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.semantic_ir.gpu.builder import GpuBuilder
from xyntra_ep.tracea.semantic_ir.magic_division import divide, reciprocal, split
from xyntra_ep.tracea.semantic_ir.nodes import INDEX, Convert, Kernel

THREADS = 64
GREATEST = 2**31 - 1
DIVISORS = (1, 2, 3, 5, 7, 64, 641, 3136, 50176, 65535, 65536, 65537, 2**30 - 1, 2**30, 2**30 + 1, GREATEST - 1, GREATEST)


def division(divisor: Size) -> tuple[Kernel, tuple[Size, ...]]:
    """y [blocks, 2, threads] = quotient and remainder of x [blocks, threads]."""
    b = GpuBuilder("divide", THREADS)
    x, y = b.buffer("x", DType.I32), b.buffer("y", DType.I32, writable=True)
    n = b.let("n", Convert(INDEX, b.load(x, b.block * THREADS + b.thread)))
    for i, result in enumerate(divide(b, n, divisor)):
        b.store(y, b.block * (2 * THREADS) + i * THREADS + b.thread, result)
    return b.finish()


@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_and_remainders(divisor: int) -> None:
    rng = np.random.default_rng(divisor)
    multiples = np.arange(1, 20, dtype=np.int64) * divisor
    near = np.concatenate([multiples - 1, multiples, multiples + 1, GREATEST // divisor * divisor + np.arange(-1, 2)])
    some = rng.integers(0, GREATEST, 4 * THREADS - near.size, endpoint=True)
    n = np.clip(np.concatenate([near, some]), 0, GREATEST).astype(np.int32)
    kernel, params = division(symbol("d"))
    y = np.zeros(2 * n.size, np.int32)
    given = [evaluate(p, {"d": divisor}) for p in params]
    SimulatedGpu().launch(kernel, n.size // THREADS, [n.view(np.uint8), y.view(np.uint8)], given)
    quotient, remainder = np.moveaxis(y.reshape(-1, 2, THREADS), 1, 0)
    assert (quotient.reshape(-1) == n // divisor).all()
    assert (remainder.reshape(-1) == n % divisor).all()


def test_constants_are_left_to_the_compiler() -> None:
    assert division(7)[1] == () and len(division(7)[0].body) < len(division(symbol("d"))[0].body)
    d = symbol("d")
    assert division(d)[1] == (d, reciprocal(d))
    assert reciprocal(1) == GREATEST


def test_split() -> None:
    extents: list[Size] = [3, symbol("h"), 7, symbol("w")]
    b = GpuBuilder("split", THREADS)
    y = b.buffer("y", DType.I32, writable=True)
    for i, coordinate in enumerate(split(b, b.block * THREADS + b.thread, extents)):
        b.store(y, (b.block * THREADS + b.thread) * 4 + i, coordinate)
    kernel, params = b.finish()
    shape = (3, 5, 7, 4)
    found = np.zeros((7 * THREADS, 4), np.int32)
    given = [evaluate(p, {"h": 5, "w": 4}) for p in params]
    SimulatedGpu().launch(kernel, 7, [found.reshape(-1).view(np.uint8)], given)
    count = int(np.prod(shape))
    assert (found[:count] == np.stack(np.unravel_index(np.arange(count), shape), axis=1)).all()
