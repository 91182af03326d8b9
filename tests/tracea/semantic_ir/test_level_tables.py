"""Which chains from a level become tables, and what stands in them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr, axis, call, const, load, walk
from xyntra_ep.tracea.semantic_ir.level_tables import LevelTable, level_tables
from xyntra_ep.tracea.semantic_ir.nodes import Elem

X, Y = load(0, axis(0), dtype=DType.F32), load(1, axis(0), dtype=DType.F32)
BYTE, LONG = load(2, axis(0), dtype=DType.U8), load(3, axis(0), dtype=DType.I64)
SCALE, ZERO = 0.0307, 112.0


def quantised(x: Expr, high: float = 255.0) -> Expr:
    return call("quantise", x, const(SCALE), const(ZERO), const(0.0), const(high))


def stored(x: Expr) -> Expr:
    return call("to_i", quantised(x))


def meant(level: Expr) -> Expr:
    return call("mul", call("sub", level, const(ZERO)), const(SCALE))


def gelu(level: Expr) -> Expr:
    """As it is quantised after each step."""
    x = meant(level)
    e = meant(quantised(call("erf", meant(quantised(call("div", x, const(math.sqrt(2.0))))))))
    return call("mul", x, meant(quantised(call("add", e, const(1.0)))))


def bytes_of(e: Expr) -> tuple[int, int] | None:
    return (0, 255) if e is BYTE else None


def found(*roots: Expr, known: Sequence[Expr] = ()) -> list[LevelTable]:
    return list(level_tables([e for e in walk(*roots) if e not in known], roots, bytes_of))


def test_entries_are_what_each_operation_rounds_to() -> None:
    level = quantised(X)
    [table] = found(stored(gelu(level)))
    assert (table.level, table.low, table.elem, len(table.table)) == (level, 0, Elem.I32, 256)
    f, scale, zero = np.float32, np.float32(SCALE), np.float32(ZERO)

    def again(x: np.ndarray) -> np.ndarray:
        q = np.clip(np.rint(x / scale) + zero, f(0), f(255))
        return (q - zero) * scale

    x = (np.arange(256, dtype=np.float32) - zero) * scale
    erf = again(np.array([math.erf(v) for v in again(x / f(math.sqrt(2.0)))], dtype=np.float32))
    product = x * again(erf + f(1))
    assert list(table.table) == list(np.clip(np.rint(product / scale) + zero, 0, 255))


def test_the_longest_chain_of_each_level_is_looked_up() -> None:
    a, b = quantised(X), quantised(Y)
    chain = call("tanh", meant(a))
    both = call("add", chain, call("exp", meant(b)))
    assert [(t.result, t.level) for t in found(both)] == [(chain, a), (call("exp", meant(b)), b)]
    again = call("sigmoid", meant(quantised(both)))  # what depends on both begins anew where it is quantised
    assert {t.result for t in found(again)} == {chain, call("exp", meant(b)), again}
    assert {t.result for t in found(chain, stored(chain))} == {chain, stored(chain)}  # both are wanted


def test_short_chains_are_computed() -> None:
    level = quantised(X)
    assert found(meant(level)) == found(stored(call("relu", meant(level)))) == []
    assert len(found(stored(call("div", call("relu", meant(level)), const(3.0))))) == 1


@pytest.mark.parametrize(
    "level",
    [
        quantised(X, 256.0),
        quantised(X, 255.5),
        call("quantise", X, Y, const(ZERO), const(0.0), const(255.0)),
        call("to_f", LONG),
    ],
    ids=["too many", "no integer", "scale of a run", "long integers"],
)
def test_what_has_many_values_is_no_level(level: Expr) -> None:
    assert found(call("tanh", meant(level))) == []


def test_bytes_that_are_loaded_are_levels() -> None:
    chain = stored(call("tanh", meant(call("to_f", BYTE))))
    [table] = found(chain)
    assert (table.level, table.low, table.elem) == (BYTE, 0, Elem.I32)
    assert [t.result for t in found(chain, known=[BYTE])] == []


def test_what_does_not_fit_in_words_is_computed() -> None:
    level = quantised(X)
    far = call("mul", call("to_i", call("exp", meant(level))), const(1 << 40))
    assert [t.elem for t in found(far)] == []


def test_special_values_are_entries() -> None:
    level = quantised(X)
    [table] = found(call("log", meant(level)))
    assert table.elem is Elem.F32 and table.table[112] == -math.inf and math.isnan(table.table[0])
