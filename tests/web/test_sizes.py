"""Sizes in JavaScript: the same numbers as Python's and native code's, and temporaries that do not meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.evaluate_rows import evaluate_rows
from tests.support.web.node import evaluated
from xyntra_ep.tracea.core_ir.dims import DimOp
from xyntra_ep.tracea.planning.size_table import Row

LEAST, MOST = -(2**63), 2**63 - 1
OPERANDS = {DimOp.CONST: 1, DimOp.SYMBOL: 1, DimOp.NOT: 1, DimOp.SELECT: 3}
_EVALUATE = """
    const { evaluate } = await import(given.runtime);
    answer(given.cases.map(({ rows, symbols }) => {
      const { values, spoiled } = evaluate(rows, symbols.map(BigInt));
      return { values: values.map(String), spoiled };
    }));
"""


def random_rows(rng: np.random.Generator, count: int, large: bool) -> list[Row]:
    rows: list[Row] = []
    for i in range(count):
        op = int(rng.integers(len(DimOp))) if i > 3 else int(rng.integers(2))
        if op == DimOp.CONST:
            any_size = int(rng.integers(LEAST, MOST)) >> int(rng.integers(64))
            rows.append((op, any_size if large else int(rng.integers(-9, 40)), 0, 0))
        elif op == DimOp.SYMBOL:
            rows.append((op, int(rng.integers(3)), 0, 0))
        else:
            a, b, c = (int(x) for x in rng.integers(0, i, 3))
            rows.append((op, a, b, c))
    return rows


def as_json(rows: list[Row], symbols: list[int]) -> Any:
    """As plan.json has them."""
    return {
        "rows": [[op, *(str(x) if abs(x) >= 2**53 else x for x in args[: OPERANDS.get(DimOp(op), 2)])] for op, *args in rows],
        "symbols": [str(symbol) for symbol in symbols],
    }


def test_sizes_are_pythons() -> None:
    cases = [(random_rows(np.random.default_rng(seed), 14, large=False), [3, 0, 17]) for seed in range(300)]
    found = evaluated(_EVALUATE, {"cases": [as_json(*case) for case in cases]})
    fitting = 0
    for (rows, symbols), answer in zip(cases, found, strict=True):
        want = evaluate_rows(rows, symbols)
        if all(LEAST <= value <= MOST for value in want):
            fitting += 1
            assert (answer["values"], any(answer["spoiled"])) == ([str(value) for value in want], False), rows
    assert fitting > 250


def test_what_does_not_fit_is_the_nearest_number_and_spoiled() -> None:
    symbols = [5, MOST, LEAST]
    cases = [random_rows(np.random.default_rng(seed), 12, large=True) for seed in range(300)]
    found = evaluated(_EVALUATE, {"cases": [as_json(rows, symbols) for rows in cases]})
    spoiled = 0
    for rows, answer in zip(cases, found, strict=True):
        values = [int(value) for value in answer["values"]]
        assert all(LEAST <= value <= MOST for value in values)
        want = evaluate_rows(rows, symbols)
        first = next((i for i, value in enumerate(want) if not LEAST <= value <= MOST), len(rows))
        assert (values[:first], any(answer["spoiled"][:first])) == (want[:first], False)
        if first < len(rows):
            spoiled += 1
            assert answer["spoiled"][first]
            assert values[first] == (MOST if want[first] > 0 and rows[first][0] not in (5, 6) else LEAST)
    assert spoiled > 30


@pytest.mark.parametrize(
    ("rows", "value", "spoiled"),
    [
        ([(0, MOST, 0, 0), (0, 1, 0, 0), (2, 0, 1, 0)], MOST, True),
        ([(0, LEAST, 0, 0), (0, 1, 0, 0), (3, 0, 1, 0)], LEAST, True),
        ([(0, LEAST, 0, 0), (0, -1, 0, 0), (5, 0, 1, 0)], LEAST, True),
        ([(0, LEAST, 0, 0), (0, -1, 0, 0), (6, 0, 1, 0)], LEAST, True),
        ([(0, LEAST, 0, 0), (0, -1, 0, 0), (7, 0, 1, 0)], 0, False),
        ([(0, 7, 0, 0), (0, 0, 0, 0), (6, 0, 1, 0)], 0, False),
        # The number that a SELECT leaves, and a condition that is decided without the other, spoil nothing.
        ([(0, MOST, 0, 0), (4, 0, 0, 0), (0, 1, 0, 0), (17, 2, 0, 1)], MOST, False),
        ([(0, MOST, 0, 0), (4, 0, 0, 0), (0, 0, 0, 0), (14, 1, 2, 0)], 0, False),
        ([(0, MOST, 0, 0), (4, 0, 0, 0), (0, 1, 0, 0), (15, 1, 2, 0)], 1, False),
        ([(0, MOST, 0, 0), (4, 0, 0, 0), (0, 1, 0, 0), (14, 1, 2, 0)], 1, True),
    ],
)
def test_limits_are_those_of_native_code(rows: list[Row], value: int, spoiled: bool) -> None:
    [answer] = evaluated(_EVALUATE, {"cases": [as_json(rows, [])]})
    assert (int(answer["values"][-1]), answer["spoiled"][-1]) == (value, spoiled)


def test_temporaries_alive_together_do_not_meet() -> None:
    rng = np.random.default_rng(3)
    lives = [sorted(int(x) for x in rng.integers(0, 12, 2)) for _ in range(30)]
    sizes = [int(x) for x in rng.integers(0, 5000, 30)]
    plan = {
        "symbols": [], "sizes": [[0, size] for size in sizes], "guards": [], "checks": [], "outputs": [], "init": [], "run": [],
        "buffers": [[4, i, first, last] for i, (first, last) in enumerate(lives)],
    }  # fmt: skip
    script = """
        const { Sizes } = await import(given.runtime);
        const sizes = new Sizes({ kernels: [], inputs: [], ranks: [], outputs: [], alternatives: [given.plan] }, 256);
        answer([sizes.prepare([]), sizes.prepare([]), sizes.at, sizes.room, sizes.arenaBytes]);
    """
    changed, again, at, room, total = evaluated(script, {"plan": plan})
    assert (changed, again) == (True, False)
    assert all(a % 256 == 0 and r >= size + 64 and a + r <= total for a, r, size in zip(at, room, sizes, strict=True))
    for i, (first, last) in enumerate(lives):
        for j in range(i):
            if lives[j][0] <= last and first <= lives[j][1]:
                assert at[i] + room[i] <= at[j] or at[j] + room[j] <= at[i]
    assert total < sum(room), "memory is shared"
