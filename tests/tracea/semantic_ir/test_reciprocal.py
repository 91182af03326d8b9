"""Two products in place of a division: on all floats between two integers, not only where the function looks."""

from __future__ import annotations

import numpy as np
import pytest

from xyntra_ep.tracea.semantic_ir.reciprocal import reciprocal


@pytest.mark.parametrize("divisor", [0.0307, 1.9999999, 1.0000001, 3e-9, 7.3e11, 0.1])
def test_the_same_integer_for_every_float(divisor: float) -> None:
    s = np.float32(divisor)
    factors = reciprocal(float(s), -300, 300)
    assert factors is not None
    high, low = (np.float32(factor) for factor in factors)
    for middle in (-200.5, -3.5, -0.5, 0.5, 1.5, 127.5, 254.5):
        bits = np.float32(middle * float(s)).view(np.int32)
        x = (bits + np.arange(-20_000, 20_000, dtype=np.int32)).view(np.float32)
        rest = (x.astype(float) * float(low)).astype(np.float32)
        product = (x.astype(np.longdouble) * np.longdouble(high) + rest).astype(np.float32)
        np.testing.assert_array_equal(np.rint(product), np.rint(x / s))


@pytest.mark.parametrize("divisor", [0.0, -1.0, 1e-30, 1e30, float("inf"), float("nan"), 1e-42])
def test_divisors_at_the_ends_are_left_to_a_division(divisor: float) -> None:
    assert reciprocal(divisor, -128, 127) is None


def test_so_are_many_results() -> None:
    assert reciprocal(0.5, 0, 1 << 18) is None and reciprocal(0.5, -32768, 32767) == (2.0, 0.0)
