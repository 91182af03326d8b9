from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.support.evaluate_rows import evaluate_rows
from xyntra_ep.tracea.core_ir.dims import (
    Size,
    both,
    ceildiv,
    either,
    eq,
    evaluate,
    le,
    lt,
    ne,
    select,
    smax,
    smin,
    symbol,
)
from xyntra_ep.tracea.planning.size_table import SizeTable

LEAVES = st.one_of(st.integers(-8, 64), st.sampled_from([symbol("a"), symbol("b")]))
BINARY = [
    lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x // y if y != 0 else 0,
    lambda x, y: x % y if y != 0 else 0,
    ceildiv, smin, smax, eq, ne, lt, le,
    lambda x, y: both(eq(x, 1), lt(y, 3)), lambda x, y: either(ne(x, 1), le(y, 3)),
    lambda x, y: select(lt(x, y), x, y * 2),
]  # fmt: skip
SIZES = st.recursive(LEAVES, lambda s: st.builds(lambda f, x, y: f(x, y), st.sampled_from(BINARY), s, s), max_leaves=8)


@given(SIZES, SIZES, st.integers(0, 40), st.integers(0, 40))
def test_the_table_means_what_the_size_means(x: Size, y: Size, a: int, b: int) -> None:
    table = SizeTable(["a", "b"])
    rows = [table.add(x), table.add(y)]
    values = evaluate_rows(table.rows, (a, b))
    assert [values[r] for r in rows] == [evaluate(s, {"a": a, "b": b}) for s in (x, y)]
    assert all(max(row[1:]) < i for i, row in enumerate(table.rows) if row[0] > 1), "only earlier rows"


def test_equal_parts_are_one_row() -> None:
    a = symbol("a")
    table = SizeTable(["a"])
    first = table.add(a * 12 + ceildiv(a, 8))
    n = len(table.rows)
    assert table.add(a * 12 + ceildiv(a, 8)) == first and len(table.rows) == n
    table.add(ceildiv(a, 8) * 2)
    assert len(table.rows) == n + 2  # the constant 2 and the product
