"""Symbolic sizes: identities of polynomials, and that every simplification agrees with evaluation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir import dims
from xyntra_ep.tracea.core_ir.dims import Dim, Size, evaluate, substitute, symbol, symbols_of

S, T = symbol("s"), symbol("t")


def random_size(rng: np.random.Generator, depth: int) -> Size:
    """Any expression of sizes; divisors are positive, as dimensions are where they divide."""
    if depth == 0:
        leaves: list[Size] = [S, T, int(rng.integers(0, 7)), S * 4, T + 1]
        return leaves[int(rng.integers(5))]
    a, b = random_size(rng, depth - 1), random_size(rng, depth - 1)
    divisor = int(rng.integers(1, 6)) if rng.random() < 0.6 else T + 1
    made: tuple[Callable[[], Size], ...] = (
        lambda: a + b, lambda: a - b, lambda: a * b, lambda: a // divisor, lambda: a % divisor,
        lambda: dims.ceildiv(a, divisor), lambda: dims.smin(a, b), lambda: dims.smax(a, b), lambda: dims.eq(a, b),
        lambda: dims.ne(a, b), lambda: dims.lt(a, b), lambda: dims.le(a, b), lambda: dims.select(dims.lt(a, b), a, b),
        lambda: dims.both(dims.lt(a, b), dims.ne(a, 0)), lambda: dims.either(dims.eq(a, b), dims.le(b, 3)),
    )  # fmt: skip
    return made[int(rng.integers(len(made)))]()


def plainly(rng: np.random.Generator, depth: int, at: dict[str, int]) -> int:
    """The same expression from the same random numbers, computed with plain integers."""
    s, t = at["s"], at["t"]
    if depth == 0:
        k = int(rng.integers(0, 7))
        return [s, t, k, s * 4, t + 1][int(rng.integers(5))]
    a, b = plainly(rng, depth - 1, at), plainly(rng, depth - 1, at)
    divisor = int(rng.integers(1, 6)) if rng.random() < 0.6 else t + 1
    made = (
        a + b, a - b, a * b, a // divisor, a % divisor, -(-a // divisor), min(a, b), max(a, b), int(a == b), int(a != b),
        int(a < b), int(a <= b), a if a < b else b, int(a < b and a != 0), int(a == b or b <= 3),
    )  # fmt: skip
    return made[int(rng.integers(len(made)))]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_simplification_keeps_the_value(depth: int) -> None:
    for seed in range(300):
        made = random_size(np.random.default_rng(seed), depth)
        for at in ({"s": 0, "t": 0}, {"s": 1, "t": 5}, {"s": 12, "t": 3}):
            want = plainly(np.random.default_rng(seed), depth, at)
            assert evaluate(made, at) == want, (seed, made, at)
            assert substitute(made, dict(at)) == want, (seed, made, at)


def test_polynomials_are_canonical() -> None:
    assert (S + 1) * (S + 1) == S * S + 2 * S + 1
    assert S * T - T * S == 0 and isinstance(S * T - T * S, int)
    assert (S * 12 * 64) // 64 == S * 12 and (S * 12 + 5) // 12 == S and (S * 12 + 5) % 12 == 5
    assert (S * T) // S == T and (S * T + T) // T == S + 1
    assert hash(S + T) == hash(T + S) and S + T != S and symbol("s") == S
    assert 3 - S == -(S - 3) and repr(S * 2 + 1) == "2*s + 1"


def test_comparisons_are_decided_where_signs_suffice() -> None:
    assert dims.lt(S, S + 1) == 1 and dims.lt(S + 1, S) == 0 and dims.le(0, S) == 1
    assert dims.eq(S, S) == 1 and dims.eq(S, S + 2) == 0 and dims.ne(S, S) == 0
    assert dims.smax(S, S + 3) == S + 3 and dims.smin(S * 2, S) == S
    assert isinstance(dims.lt(S, T), Dim) and isinstance(dims.eq(S, 4), Dim)
    assert dims.known_nonnegative(S * T + 2) and not dims.known_nonnegative(S - 1)
    assert dims.known_nonnegative(dims.smax(S - 5, 0)) and dims.known_nonnegative(dims.select(dims.eq(S, 1), 0, T))


def test_division_by_nothing_is_nothing() -> None:
    assert evaluate(S // T, {"s": 5, "t": 0}) == 0 and evaluate(S % T, {"s": 5, "t": 0}) == 0
    assert evaluate(dims.ceildiv(S, T), {"s": 5, "t": 0}) == 0 and dims.ceildiv(7, 0) == 0


def test_truncating_division() -> None:
    assert [dims.trunc_div(a, b) for a, b in ((7, 2), (-7, 2), (7, -2), (-7, -2))] == [3, -3, -3, 3]
    quotients = (dims.trunc_div(S - 5, 3), dims.trunc_div(S - 5, -3), dims.trunc_div(S - 5, T - 4), dims.trunc_div(7, T - 4))
    for s, t in itertools.product(range(12), range(9)):
        want = [
            math.trunc((s - 5) / 3),
            math.trunc((s - 5) / -3),
            *(math.trunc(x / (t - 4)) if t != 4 else 0 for x in (s - 5, 7)),
        ]
        assert [evaluate(q, {"s": s, "t": t}) for q in quotients] == want, (s, t)
    assert dims.trunc_div(S, 2) == S // 2  # sizes are not negative


def test_proofs_hold_for_all_sizes_and_find_what_holds() -> None:
    found = [
        (S - 1) // 2 + 1, S - dims.smin(S, 5), S - 2 * (S // 2), S - 2 * ((S - 1) // 2) - 1, dims.smax(S, T) - T,
        dims.smin(S, T) - dims.smin(S, T - 1), dims.ceildiv(S, 4) * 4 - S, S % 3, dims.select(dims.lt(S, T), T - S - 1, S - T),
    ]  # fmt: skip
    assert [dims.known_nonnegative(size) for size in found[:8]] == [True] * 8
    false = [2 * (S // 2) - S, S - 2 * dims.ceildiv(S, 2), dims.smin(S, T) - T, S - dims.smax(S, T)]
    assert not any(dims.known_nonnegative(size) for size in false)
    for seed in range(300):
        size = random_size(np.random.default_rng(seed), 3)
        if dims.known_nonnegative(size):
            assert all(evaluate(size, {"s": s, "t": t}) >= 0 for s in range(9) for t in range(9)), size


def test_symbols_and_substitution() -> None:
    size = dims.select(dims.lt(S, 4), T * 2, dims.ceildiv(S, 3))
    assert symbols_of(size) == {"s", "t"} and symbols_of(5) == frozenset()
    assert substitute(size, {"s": 2}) == T * 2 and substitute(size, {"s": 10}) == 4
    assert substitute(S * T, {"s": T + 1}) == T * T + T
    with pytest.raises(KeyError):
        evaluate(S, {})
