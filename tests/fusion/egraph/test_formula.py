"""Formulas as text, and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest

from xyntra_ep.fusion.egraph.formula import FormulaError, Term, evaluate, number, parse
from xyntra_ep.tracea.core_ir.dtypes import DType

X = Term("name", name="x")


def test_operations_and_precedence() -> None:
    assert parse("x + 2 * y") == Term("add", (X, Term("mul", (number(2), Term("name", name="y")))))
    assert parse("-x / exp(x)") == Term("div", (Term("neg", (X,)), Term("exp", (X,))))
    assert parse("x**3") == Term("mul", (Term("mul", (X, X)), X))
    assert parse("x > 1") == Term("lt", (number(1), X), dtype=DType.BOOL)


def test_numbers_are_computed_at_once() -> None:
    assert parse("x * sqrt(2 / pi)") == Term("mul", (X, number(math.sqrt(2 / math.pi))))
    assert parse("x + -inf").args[1] == number(-math.inf)


def test_a_name_in_a_condition_is_one() -> None:
    term = parse("where(mask, x, 0)")
    assert [t.dtype for t in term.args[:2]] == [DType.BOOL, DType.F32]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no formula"),
        ("x +", "no formula"),
        ("x; y", "no formula"),
        ("gelu_er(x)", "no operation 'gelu_er'. did you mean 'gelu_erf'?"),
        ("exp(x, y)", "exp takes 1 operands"),
        ("exp(x < 1)", "exp wants a number there"),
        ("where(K, x, y)", "where wants a condition there"),
        ("where(x, x, 0)", "'x' is a number and a condition"),
        ("to_i(x)", "is about integers"),
        ("x ** y", "'x ** y' is nothing that a formula can have"),
        ("x ** 9", "nothing that a formula can have"),
        ("x if y else z", "nothing that a formula can have"),
        ("__import__('os').system('true')", "nothing that a formula can have"),
        ("x.real", "nothing that a formula can have"),
        ("x[0]", "nothing that a formula can have"),
        ("True + x", "nothing that a formula can have"),
        ("a < b < c", "nothing that a formula can have"),
        ("exp(x=1)", "nothing that a formula can have"),
        ("-" * 80 + "x", "nested more than 64 times"),
        ("x + " * 1000 + "x", "at most 2000 characters"),
    ],
)
def test_what_is_none_says_why(text: str, why: str) -> None:
    with pytest.raises(FormulaError) as raised:
        parse(text)
    assert why in str(raised.value)


def test_meaning_over_rows() -> None:
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(evaluate(parse("x - row_max(x)"), {"x": x}, (2, 3)), [[-2, -1, 0]] * 2)
    np.testing.assert_allclose(evaluate(parse("row_sum(row_softmax(x))"), {"x": x}, (2, 3)), 1)
    np.testing.assert_array_equal(evaluate(parse("row_sum(row_max(x))"), {"x": x}, (2, 3))[:, 0], [6, 15])
