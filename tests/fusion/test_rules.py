"""Activations in every order and grouping; what only looks like one stays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from xyntra_ep.fusion.rules import simplify
from xyntra_ep.fusion.rules._engine import RULES, P, match, op
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

X = E.load(0, E.axis(0), dtype=DType.F32)
Y = E.load(1, E.axis(0), dtype=DType.F32)


def mul(*args: Expr) -> Expr:
    result = args[0]
    for a in args[1:]:
        result = E.call("mul", result, a)
    return result


def add(a: Expr, b: Expr) -> Expr:
    return E.call("add", a, b)


def c(value: float) -> Expr:
    return E.const(value)


def erf_part(x: Expr = X, scale: float = 1 / math.sqrt(2)) -> Expr:
    return add(E.call("erf", E.call("mul", x, c(scale))), c(1.0))


GELU = E.call("gelu_erf", X)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_gelu_in_any_order_and_grouping(order: tuple[int, ...]) -> None:
    factors = [X, erf_part(), c(0.5)]
    a, b, d = (factors[i] for i in order)
    assert simplify(mul(a, b, d)) is GELU
    assert simplify(mul(a, mul(b, d))) is GELU


@pytest.mark.parametrize(
    "written",
    [
        lambda: mul(E.call("div", X, c(2.0)), erf_part()),
        lambda: mul(X, c(0.5), add(c(1.0), E.call("erf", E.call("div", X, c(math.sqrt(2)))))),
        lambda: mul(X, c(0.5), add(c(1.0), E.call("erf", E.call("div", X, c(1.4140625))))),  # rounded to half precision
    ],
)
def test_gelu_as_exporters_write_it(written: Callable[[], Expr]) -> None:
    assert simplify(written()) is GELU


def test_gelu_by_tanh() -> None:
    cubic = add(X, mul(c(0.044715), mul(X, mul(X, X))))
    tanh = add(c(1.0), E.call("tanh", mul(c(math.sqrt(2 / math.pi)), cubic)))
    assert simplify(mul(mul(c(0.5), X), tanh)) is E.call("gelu_tanh", X)


def test_silu_in_either_order() -> None:
    assert simplify(mul(X, E.call("sigmoid", X))) is E.call("silu", X)
    assert simplify(mul(E.call("sigmoid", X), X)) is E.call("silu", X)


def test_inside_a_larger_expression() -> None:
    found = simplify(add(mul(X, E.call("sigmoid", X)), Y))
    assert found is add(E.call("silu", X), Y)


@pytest.mark.parametrize(
    "near",
    [
        mul(Y, erf_part(), c(0.5)),  # another x inside
        mul(X, erf_part(), c(0.6)),
        mul(X, erf_part(scale=0.8), c(0.5)),
        mul(X, add(E.call("erf", mul(X, c(1 / math.sqrt(2)))), c(2.0)), c(0.5)),
        mul(X, E.call("sub", E.call("erf", mul(X, c(1 / math.sqrt(2)))), c(1.0)), c(0.5)),
        mul(X, erf_part()),
        mul(X, X, erf_part(), c(0.5)),
        mul(X, E.call("sigmoid", Y)),
        mul(X, E.call("sigmoid", mul(X, c(1.702)))),
        E.call("div", X, E.call("sigmoid", X)),
        E.call("div", mul(X, c(0.5)), erf_part()),
        add(X, E.call("sigmoid", X)),
    ],
)
def test_near_misses_stay(near: Expr) -> None:
    assert simplify(near) is near


def test_doubling_operands_end_soon() -> None:
    """x*x*..., shared at every level: 2^200 factors when it is written out."""
    e = E.call("sigmoid", X)
    for _ in range(200):
        e = mul(e, e)
    total = e
    for _ in range(200):
        total = add(total, total)
    assert simplify(total) is total


def test_indices_are_left_alone() -> None:
    e = E.load(0, E.call("add", E.axis(0), E.const(1)), dtype=DType.F32)
    assert simplify(mul(e, E.call("sigmoid", e))) is E.call("silu", e)


def test_variables_bind_once() -> None:
    pattern = P("x") * op("tanh", P("y"))
    found = match(pattern, mul(E.call("tanh", Y), X))
    assert found == {"x": X, "y": Y}
    assert match(P("x") + P("x"), add(X, Y)) is None


def test_names_have_a_family_in_the_order() -> None:
    from xyntra_ep.fusion.rules._engine import ORDER

    assert {r.name.split(".")[0] for r in RULES} <= set(ORDER)


def test_the_argument_may_be_a_sum_or_a_product() -> None:
    """An activation follows a bias or a scale, in the same kernel."""
    for x in (add(X, Y), mul(X, Y), mul(X, c(0.25)), add(add(X, Y), X)):
        inner = mul(add(x, mul(x, x, x, c(0.044715))), c(math.sqrt(2 / math.pi)))
        assert simplify(mul(mul(c(0.5), x), add(E.call("tanh", inner), c(1.0)))) is E.call("gelu_tanh", x)
        assert simplify(mul(E.call("sigmoid", x), x)) is E.call("silu", x)
        assert simplify(mul(x, erf_part(x), c(0.5))) is E.call("gelu_erf", x)


def test_a_true_division_in_a_product_is_no_product() -> None:
    x, y, s = (E.load(i, E.axis(0), dtype=DType.F32) for i in range(3))
    pattern = P("x") / op("sqrt", P("y")) * P("s")
    assert match(pattern, E.call("mul", E.call("mul", x, y), s)) is None
    assert match(pattern, E.call("mul", E.call("div", x, E.call("sqrt", y)), s)) == {"x": x, "y": y, "s": s}
