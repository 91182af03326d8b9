"""Which sums of levels are two fused products, and that they round as the definition does for every pair."""

from __future__ import annotations

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, walk
from xyntra_ep.tracea.semantic_ir.level_sums import LevelSum, level_sums

X, Y = load(0, axis(0), dtype=DType.F32), load(1, axis(0), dtype=DType.F32)
BYTE, LONG = load(2, axis(0), dtype=DType.U8), load(3, axis(0), dtype=DType.I64)
ALL = np.arange(256, dtype=np.float32)


def quantised(x: Expr, scale: float, zero: float = 0.0, high: float = 255.0) -> Expr:
    return call("quantise", x, const(scale), const(zero), const(0.0), const(high))


def meant(level: Expr, scale: float, zero: int) -> Expr:
    if level.dtype is DType.I64:
        level = call("to_f", call("wrap_i32", call("sub", level, const(zero))))
    else:
        level = call("sub", level, const(float(zero)))
    return call("mul", level, const(scale))


def found(root: Expr) -> list[LevelSum]:
    made = list(level_sums(walk(root), lambda e: (0, 255) if e is BYTE else None))
    assert all(e is root for e, _ in made)
    return [of for _, of in made]


def rounded(of: LevelSum, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    inner = (second * np.longdouble(of.b) + np.longdouble(of.constant)).astype(np.float32)
    return np.clip(np.rint((first * np.longdouble(of.a) + inner).astype(np.float32)), of.low, of.high)


@pytest.mark.parametrize("seed", range(20))
def test_all_pairs_round_as_each_operation_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, s = (np.float32(x) for x in rng.uniform(0.01, 0.07, 3))
    za, zb, z = (int(x) for x in rng.integers(0, 200, 3))
    level = quantised(X, 0.5)
    root = quantised(call("add", meant(level, float(a), za), meant(BYTE, float(b), zb)), float(s), float(z))
    [of] = found(root)
    total = (((ALL - za) * a)[:, None] + ((ALL - zb) * b)[None, :]) / s
    wanted = np.clip(np.rint(total) + np.float32(z), 0, 255)
    if of.first is level:
        assert np.array_equal(rounded(of, ALL[:, None], ALL[None, :]), wanted)
    else:
        assert (of.first, of.second) == (BYTE, level)
        assert np.array_equal(rounded(of, ALL[None, :], ALL[:, None]), wanted)


def test_signs_and_factors_beside() -> None:
    a, b = quantised(X, 0.5, high=100.0), quantised(Y, 0.25)
    [of] = found(quantised(call("sub", call("mul", const(0.5), a), call("add", b, const(3.0))), 0.25, 7.0))
    assert {of.first: of.a, of.second: of.b} == {a: 2.0, b: -4.0}
    assert of.constant == pytest.approx(-5.0, abs=1e-4)


def test_what_is_no_sum_of_two_levels() -> None:
    a, b = quantised(X, 0.5), quantised(Y, 0.25)
    for x in (
        call("add", a, X),  # any float
        call("mul", a, b),
        call("add", a, call("mul", a, const(0.3))),  # one level
        call("add", call("add", a, b), meant(BYTE, 0.1, 3)),  # three
        call("add", a, call("to_f", LONG)),
        call("add", a, call("exp", b)),
        call("add", call("mul", a, const(1e30)), b),
    ):
        assert found(quantised(x, 0.1)) == []
    wide = call("quantise", Y, const(0.5), const(0.0), const(-32768.0), const(32767.0))
    assert found(quantised(call("add", a, wide), 0.1)) == []
    unknown = call("quantise", call("add", a, b), X, const(0.0), const(0.0), const(255.0))
    assert found(unknown) == []


def test_ties_that_no_constant_settles() -> None:
    """Halves are rounded to even: sums in the middle go up and down by turns; sums that are a little off do not."""
    a, b = quantised(X, 0.5), quantised(Y, 0.25)
    [exact] = found(quantised(call("add", a, call("mul", b, const(0.5))), 1.0))
    assert (exact.constant, {exact.first: exact.a, exact.second: exact.b}) == (0.0, {a: 1.0, b: 0.5})
    third = float(np.float32(1 / 3))
    assert found(quantised(call("mul", call("add", a, call("mul", b, const(0.5))), const(third)), third, 1.0)) == []
