"""Each rule by itself, activations in every order and grouping, what only looks like one, and that no rule comes first."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import pytest

from xyntra_ep.errors import ConfigError
from xyntra_ep.fusion.egraph import Algebra, Rule
from xyntra_ep.fusion.egraph.rule import Special
from xyntra_ep.fusion.egraph.soundness import disagreement
from xyntra_ep.fusion.rules import RULES, built_in
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr

X = E.load(0, E.axis(0), dtype=DType.F32)
Y = E.load(1, E.axis(0), dtype=DType.F32)


def simplify(e: Expr) -> Expr:
    return built_in().simplify(e).expr


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


GELU, GELU_TANH, SILU = (E.call(name, X) for name in ("gelu_erf", "gelu_tanh", "silu"))
ROOT = math.sqrt(2 / math.pi)


class TestEachRule:
    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
    def test_both_sides_are_equal(self, rule: Rule) -> None:
        """With random numbers, and with those that it claims to keep; bit for bit in float32 where it claims that."""
        assert disagreement(rule) == ""

    @pytest.mark.parametrize(
        ("rule", "why"),
        [
            (Rule(name="r", pattern="x * sigmoid(x)", replacement="tanh(x)"), "the pattern is"),
            (Rule(name="r", pattern="x * (y + z)", replacement="x * y + x * z"), "inf"),  # inf * 0 is NaN
            (Rule(name="r", pattern="a / b", replacement="a * (1 / b)", exact=True), "float32 rounds differently"),
            (Rule(name="r", pattern="log(1 + exp(x))", replacement="log(exp(x))"), "the pattern is"),
            (Rule(name="r", pattern="log(-exp(x))", replacement="log(-exp(x))"), "no numbers were found"),
            (Rule(name="r", pattern="abs(x)", replacement="x"), "the pattern is"),
            (Rule(name="r", pattern="row_sum(x + y)", replacement="row_sum(x) + y"), "the pattern is"),
        ],
    )
    def test_a_wrong_one_is_seen(self, rule: Rule, why: str) -> None:
        assert why in disagreement(rule)

    def test_guards_decide_what_is_drawn(self) -> None:
        rule = Rule(name="r", pattern="abs(x)", replacement="x", where=("nonnegative(x)",), keeps=frozenset())
        assert disagreement(rule) == ""

    def test_strict_leaves_out_what_does_not_keep_infinity(self) -> None:
        """x * c * (1 + c2 * x * x) is multiplied out for the pattern of GELU: inf * 0 is NaN."""
        fast = add(c(1.0), mul(c(0.044715), mul(X, X)))
        written = mul(c(0.5), X, add(c(1.0), E.call("tanh", mul(X, c(ROOT), fast))))
        assert built_in().simplify(written).expr is GELU_TANH
        assert built_in(strict=True).simplify(written).expr is written
        assert built_in(strict=True).simplify(mul(X, E.call("sigmoid", X))).expr is SILU
        assert any(Special.INFINITY not in rule.keeps for rule in RULES)


class TestActivations:
    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_gelu_in_any_order_and_grouping(self, order: tuple[int, ...]) -> None:
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
            lambda: add(mul(c(0.5), X), mul(mul(c(0.5), X), E.call("erf", mul(X, c(math.sqrt(0.5)))))),  # multiplied out
            lambda: mul(X, add(c(0.5), mul(c(0.5), E.call("erf", mul(X, c(math.sqrt(0.5))))))),  # x times the normal distribution
        ],
    )
    def test_gelu_as_exporters_write_it(self, written: Callable[[], Expr]) -> None:
        assert simplify(written()) is GELU

    def test_gelu_by_tanh(self) -> None:
        cubic = add(X, mul(c(0.044715), mul(X, mul(X, X))))
        tanh = add(c(1.0), E.call("tanh", mul(c(ROOT), cubic)))
        assert simplify(mul(mul(c(0.5), X), tanh)) is GELU_TANH

    @pytest.mark.parametrize(
        "argument",
        [
            lambda: mul(X, c(ROOT), add(c(1.0), mul(mul(c(0.044715), X), X))),  # Hugging Face: gelu_fast
            lambda: mul(c(ROOT), X, add(c(1.0), mul(c(0.044715), mul(X, X)))),
            lambda: add(mul(c(ROOT), X), mul(c(ROOT * 0.044715), X, X, X)),
            lambda: mul(X, add(c(ROOT), mul(c(ROOT * 0.044715), mul(X, X)))),
        ],
    )
    def test_the_cubic_with_its_factors_taken_out(self, argument: Callable[[], Expr]) -> None:
        assert simplify(mul(c(0.5), X, add(c(1.0), E.call("tanh", argument())))) is GELU_TANH

    @pytest.mark.parametrize(
        "written",
        [
            lambda: mul(X, E.call("sigmoid", X)),
            lambda: mul(E.call("sigmoid", X), X),
            lambda: E.call("div", X, add(c(1.0), E.call("exp", E.call("neg", X)))),
            lambda: E.call("div", X, add(E.call("exp", mul(X, c(-1.0))), c(1.0))),
            lambda: mul(X, E.call("div", c(1.0), add(c(1.0), E.call("exp", E.call("neg", X))))),
            lambda: mul(mul(c(0.5), X), add(c(1.0), E.call("tanh", mul(c(0.5), X)))),
            lambda: add(mul(c(0.5), X), mul(c(0.5), X, E.call("tanh", mul(c(0.5), X)))),
        ],
    )
    def test_silu(self, written: Callable[[], Expr]) -> None:
        assert simplify(written()) is SILU

    @pytest.mark.parametrize(
        "written",
        [
            lambda: E.call("div", c(1.0), add(c(1.0), E.call("exp", E.call("neg", X)))),
            lambda: add(mul(c(0.5), E.call("tanh", mul(c(0.5), X))), c(0.5)),  # JAX: lax.logistic before it had an operator
            lambda: mul(c(0.5), add(E.call("tanh", E.call("div", X, c(2.0))), c(1.0))),
        ],
    )
    def test_sigmoid(self, written: Callable[[], Expr]) -> None:
        assert simplify(written()) is E.call("sigmoid", X)

    def test_quick_gelu_keeps_its_factor(self) -> None:
        """x * sigmoid(1.702 x), written with exp: the number is in exp's argument with its sign."""
        written = E.call("div", X, add(c(1.0), E.call("exp", mul(c(-1.702), X))))
        found = simplify(written)
        assert (
            found in (mul(X, E.call("sigmoid", mul(c(1.702), X))), mul(E.call("sigmoid", mul(c(1.702), X)), X))
            or found is written
        )

    def test_tanh_by_sigmoid(self) -> None:
        two = mul(c(2.0), E.call("sigmoid", mul(c(2.0), X)))
        assert simplify(E.call("sub", two, c(1.0))) is E.call("tanh", X)

    def test_a_gate_stands_between(self) -> None:
        """The product of GEGLU with the gate in the middle of it."""
        found = simplify(mul(X, Y, c(0.5), erf_part()))
        assert found in (mul(GELU, Y), mul(Y, GELU))

    def test_inside_a_larger_expression(self) -> None:
        assert simplify(add(mul(X, E.call("sigmoid", X)), Y)) is add(SILU, Y)

    def test_the_argument_may_be_a_sum_or_a_product(self) -> None:
        """An activation follows a bias or a scale, in the same kernel."""
        for x in (add(X, Y), mul(X, Y), mul(X, c(0.25)), add(add(X, Y), X)):
            inner = mul(add(x, mul(x, x, x, c(0.044715))), c(ROOT))
            assert simplify(mul(mul(c(0.5), x), add(E.call("tanh", inner), c(1.0)))) is E.call("gelu_tanh", x)
            assert simplify(mul(E.call("sigmoid", x), x)) is E.call("silu", x)
            assert simplify(mul(x, erf_part(x), c(0.5))) is E.call("gelu_erf", x)

    @pytest.mark.parametrize(
        "near",
        [
            mul(Y, erf_part(), c(0.5)),  # another x inside
            mul(X, erf_part(), c(0.6)),
            mul(X, erf_part(scale=0.8), c(0.5)),
            mul(X, add(E.call("erf", mul(X, c(1 / math.sqrt(2)))), c(2.0)), c(0.5)),
            mul(X, E.call("sub", E.call("erf", mul(X, c(1 / math.sqrt(2)))), c(1.0)), c(0.5)),
            mul(X, erf_part()),
            mul(X, E.call("sigmoid", Y)),
            mul(X, E.call("sigmoid", mul(X, c(1.702)))),
            E.call("div", X, E.call("sigmoid", X)),
            E.call("div", mul(X, c(0.5)), erf_part()),
            add(X, E.call("sigmoid", X)),
            E.call("div", c(1.0), add(c(2.0), E.call("exp", E.call("neg", X)))),
            E.call("div", c(1.0), add(c(1.0), E.call("exp", X))),
            add(mul(c(0.5), E.call("tanh", mul(c(0.4), X))), c(0.5)),
        ],
    )
    def test_near_misses_stay(self, near: Expr) -> None:
        assert simplify(near) is near

    def test_indices_are_left_alone(self) -> None:
        e = E.load(0, E.call("add", E.axis(0), E.const(1)), dtype=DType.F32)
        assert simplify(mul(e, E.call("sigmoid", e))) is E.call("silu", e)


class TestTheWhole:
    def test_doubling_operands_end_soon(self) -> None:
        """x*x*..., shared at every level: 2^200 factors when it is written out."""
        e = E.call("sigmoid", X)
        for _ in range(200):
            e = mul(e, e)
        total = e
        for _ in range(200):
            total = add(total, total)
        assert simplify(total) is total

    def test_the_rules_by_which_it_came_about(self) -> None:
        assert built_in().simplify(add(mul(X, E.call("sigmoid", X)), Y)).rules == ("silu.sigmoid",)
        assert built_in().simplify(add(E.call("sigmoid", X), Y)).rules == ()

    def test_what_is_taken_away_is_told_too(self) -> None:
        algebra = Algebra([Rule(name="own.twice", pattern="-(-a)", replacement="a")])
        found = algebra.simplify(E.call("neg", E.call("neg", X)))
        assert found.expr is X and found.rules == ("own.twice",)

    @pytest.mark.parametrize("seed", range(8))
    def test_no_rule_comes_first(self, seed: int) -> None:
        """Rules in another order make the same of everything."""
        rules = list(RULES)
        random.Random(seed).shuffle(rules)
        shuffled = Algebra(rules)
        for e in WRITTEN:
            assert shuffled.simplify(e) == built_in().simplify(e)

    def test_names_come_once(self) -> None:
        rule = Rule(name="own.a", pattern="exp(a)", replacement="exp(a)")
        with pytest.raises(ConfigError, match="there twice"):
            Algebra([rule, rule])


BOTH = add(X, Y)
WRITTEN = [
    mul(X, erf_part(), c(0.5)),
    mul(X, Y, c(0.5), erf_part()),
    add(mul(c(0.5), X), mul(mul(c(0.5), X), E.call("erf", mul(X, c(math.sqrt(0.5)))))),
    mul(c(0.5), X, add(c(1.0), E.call("tanh", mul(X, c(ROOT), add(c(1.0), mul(c(0.044715), X, X)))))),
    mul(c(0.5), BOTH, add(c(1.0), E.call("tanh", mul(c(ROOT), add(BOTH, mul(c(0.044715), BOTH, BOTH, BOTH)))))),
    E.call("div", BOTH, add(c(1.0), E.call("exp", E.call("neg", BOTH)))),
    add(mul(E.call("sigmoid", X), X), mul(X, E.call("sigmoid", X))),
    mul(mul(mul(X, Y), mul(X, Y)), mul(E.call("sigmoid", mul(X, Y)), mul(Y, X))),
    add(add(add(X, Y), add(Y, c(0.5))), E.call("tanh", add(add(X, c(1.0)), add(Y, X)))),
]
