"""Scalar expressions: interning, what is simplified and what must not be, rewriting."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dims import symbol
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import SCALAR_OPS, acc, axis, call, const, load, rewrite, size, walk

F, I, B = DType.F32, DType.I64, DType.BOOL  # noqa: E741
X, K, P = load(0, axis(0), dtype=F), load(1, axis(0), dtype=I), load(2, axis(0), dtype=B)


def test_equal_expressions_are_one_object() -> None:
    assert call("add", X, const(1.0)) is call("add", load(0, axis(0), dtype=F), const(1.0))
    assert const(1) is not const(1.0) and const(0.0) is not const(-0.0) and const(float("nan")) is const(float("nan"))
    assert const(True) is not const(1) and acc(0) is not E.acc_int(0)
    assert size(symbol("s")) is size(symbol("s")) and size(symbol("s") - symbol("s")) is const(0)


def test_unused_expressions_are_forgotten() -> None:
    gc.collect()
    before = len(E._INTERNED)
    made = call("mul", X, const(123456.0))
    assert len(E._INTERNED) == before + 2
    del made
    gc.collect()
    assert len(E._INTERNED) == before


def test_simplifications() -> None:
    s = size(symbol("s"))
    assert call("mul", X, const(1.0)) is X and call("mul", const(1.0), X) is X and call("div", X, const(1.0)) is X
    assert call("add", K, const(0)) is K and call("mul", K, const(0)) is const(0) and call("mul", const(1), K) is K
    assert call("where", const(True), X, const(2.0)) is X and call("where", P, X, X) is X
    assert call("to_f", X) is X and call("to_i", K) is K and call("to_b", P) is P
    assert call("sub", call("add", s, const(3)), s) is const(3)
    assert call("add", const(2.0), const(3.0)) is const(5.0) and call("div", const(-7), const(2)) is const(-3)


def test_choices_of_constants() -> None:
    one_or = call("where", P, const(1.0), const(0.0))
    assert call("to_b", one_or) is P and call("not", call("to_b", one_or)) is call("not", P)
    assert call("sub", const(1.0), one_or) is call("where", P, const(0.0), const(1.0))
    assert call("eq", call("where", P, const(3), const(4)), const(4)) is call("not", P)
    assert call("add", one_or, X) is not call("where", P, call("add", const(1.0), X), X)  # nothing is computed twice
    assert call("where", call("not", P), X, const(2.0)) is call("where", P, const(2.0), X)


def test_what_stands_for_a_float_is_one_already() -> None:
    zero, levels = const(3.0), [const(0.0), const(255.0)]
    level = call("quantise", X, const(0.5), zero, *levels)
    q = call("to_i", level)
    assert call("to_f", q) is level and call("wrap_i32", q) is q and call("to_f", call("wrap_i32", q)) is level
    moved = call("to_f", call("wrap_i32", call("sub", q, const(3))))
    assert moved is call("quantise", X, const(0.5), const(0.0), const(-3.0), const(252.0))
    unknown = call("quantise", X, X, call("to_f", K), *levels)
    assert call("to_f", call("sub", call("to_i", unknown), const(3))) is call("sub", unknown, const(3.0))
    far = call("wrap_i32", call("sub", q, const(1 << 30)))
    assert call("to_f", far).args == (far,)


def test_conditions() -> None:
    yes, no = const(True), const(False)
    assert call("not", call("not", P)) is P and call("not", yes) is no
    assert call("not", call("lt", K, const(3))) is call("le", const(3), K)
    assert call("not", call("le", X, X)).attr == "not"  # NaN is neither
    assert call("and", P, yes) is P and call("and", no, P) is no and call("or", P, no) is P and call("or", yes, P) is yes


def test_what_changes_a_special_value_stays() -> None:
    assert call("add", X, const(0.0)) is not X  # -0
    assert call("mul", X, const(0.0)).kind == "call"  # NaN, infinity
    assert call("sub", X, X).kind == "call"


@pytest.mark.parametrize("name", list(SCALAR_OPS))
def test_every_op_says_its_types(name: str) -> None:
    row = SCALAR_OPS[name]
    leaf = {"f": X, "i": K, "b": P, "n": X, "t": X}
    made = call(name, *(leaf[letter] for letter in row.args))
    want = {"f": F, "i": I, "b": B, "n": F, "t": F}[row.result]
    assert made.dtype is want
    operands = {F: np.array([0.5, 0.75]), I: np.array([3, 4]), B: np.array([True, False])}
    with np.errstate(all="ignore"):
        value = np.asarray(row.reference(*(operands[leaf[letter].dtype] for letter in row.args)))
    assert value.dtype.kind == {F: "f", I: "i", B: "b"}[want] and value.shape == (2,)


def test_operands_of_unlike_types_are_refused() -> None:
    for name, args in (("add", (X, K)), ("and", (X, X)), ("where", (X, X, X)), ("exp", (K,)), ("neg", (X, X))):
        with pytest.raises(AssertionError):
            call(name, *args)


def test_rewriting_and_walking() -> None:
    body = call("exp", call("sub", X, acc(0)))
    shifted = rewrite(body, lambda e: axis(1) if e is axis(0) else None)
    assert shifted is call("exp", call("sub", load(0, axis(1), dtype=F), acc(0)))
    assert rewrite(body, lambda e: None) is body
    folded = rewrite(call("mul", K, const(3)), lambda e: const(2) if e is K else None)
    assert folded is const(6)
    order = walk(body, X)
    assert order[-1] is body and len(order) == len({id(e) for e in order})
    assert all(order.index(a) < order.index(e) for e in order for a in e.args)
    assert repr(body) == "exp(sub(in0[i0], acc0))"
