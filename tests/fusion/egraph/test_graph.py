"""Classes, congruence and what is known of them; what comes out of a graph."""

from __future__ import annotations

import math
from itertools import pairwise

from xyntra_ep.fusion.egraph.extract import Extraction
from xyntra_ep.fusion.egraph.formula import parse
from xyntra_ep.fusion.egraph.graph import BY_FORM, BY_RULE, LEAF, WRITTEN, EGraph, Node, Origin
from xyntra_ep.fusion.egraph.rule import GUARDS, Rule, compiled
from xyntra_ep.fusion.egraph.saturate import matches, saturate
from xyntra_ep.tracea.core_ir import expr as E
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.expr import Expr
from xyntra_ep.tracea.core_ir.ops import ReduceKind

X, Y, Z = (E.load(j, E.axis(0), E.axis(1), dtype=DType.F32) for j in range(3))
RULE = Origin(BY_RULE, "a rule")


def call(op: str, *args: Expr) -> Expr:
    return E.call(op, *args)


class TestClasses:
    def test_equal_expressions_are_one_class(self) -> None:
        graph = EGraph()
        assert graph.add_expr(call("add", X, Y)) == graph.add_expr(call("add", X, Y)) != graph.add_expr(call("add", Y, X))

    def test_congruence_follows_upwards(self) -> None:
        """x = y makes exp(x) = exp(y), and that exp(x) + z = exp(y) + z."""
        graph = EGraph()
        a, b = (graph.add_expr(call("add", call("exp", e), Z)) for e in (X, Y))
        assert graph.find(a) != graph.find(b)
        graph.union(graph.add_expr(X), graph.add_expr(Y))
        graph.rebuild()
        assert graph.find(a) == graph.find(b) == graph.add_expr(call("add", call("exp", Y), Z))

    def test_a_chain_of_unions_ends_in_one_class(self) -> None:
        graph = EGraph()
        classes = [graph.add_expr(E.load(j, dtype=DType.F32)) for j in range(50)]
        above = [graph.add_expr(call("tanh", E.load(j, dtype=DType.F32))) for j in range(50)]
        for a, b in pairwise(classes):
            graph.union(b, a)
        graph.rebuild()
        assert len({graph.find(c) for c in classes}) == len({graph.find(c) for c in above}) == 1

    def test_versions_tell_whether_anything_came(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("exp", X))
        before = graph.version
        assert graph.add(Node("exp", (graph.add_expr(X),)), RULE) == c and graph.version == before
        graph.union(c, c)
        assert graph.version == before
        graph.union(c, graph.add_expr(Y))
        assert graph.version > before

    def test_the_least_origin_stays(self) -> None:
        graph = EGraph()
        x = graph.add_expr(X)
        node = Node("exp", (x,))
        c = graph.add(node, Origin(BY_FORM, "f"))
        for origin in (RULE, WRITTEN, RULE):
            graph.add(node, origin)
        assert graph.nodes(c) == {node: WRITTEN}


class TestFacts:
    def test_constants_are_folded_and_stand_alone(self) -> None:
        graph = EGraph()
        c = graph.add_term(parse("a * b"), {"a": graph.add_expr(E.const(2.0)), "b": graph.add_expr(E.const(0.25))}, RULE)
        assert graph.facts(c).constant == 0.5
        assert [node.leaf for node in graph.nodes(c)] == [E.const(0.5)]
        assert graph.find(graph.add_expr(E.const(0.5))) == graph.find(c)

    def test_a_constant_that_is_learnt_goes_upwards(self) -> None:
        graph = EGraph()
        total = graph.add_expr(call("add", X, E.const(1.0)))
        graph.union(graph.add_expr(X), graph.add_expr(E.const(2.0)))
        graph.rebuild()
        assert graph.facts(total).constant == 3.0

    def test_nan_is_never_folded(self) -> None:
        graph = EGraph()
        infinite = graph.add_expr(E.const(math.inf))
        assert graph.facts(graph.add(Node("sub", (infinite, infinite)), RULE)).constant is None

    def test_bounds(self) -> None:
        graph = EGraph()

        def bounds(e: Expr) -> tuple[float, float]:
            facts = graph.facts(graph.add_expr(e))
            return facts.low, facts.high

        s = call("sigmoid", X)
        assert bounds(s) == (0, 1) and bounds(call("neg", s)) == (-1, 0)
        assert bounds(call("add", call("mul", s, E.const(-3.0)), E.const(1.0))) == (-2, 1)
        assert bounds(call("exp", X)) == (0, math.inf) and bounds(X) == (-math.inf, math.inf)

    def test_what_has_one_value_for_a_row(self) -> None:
        graph = EGraph(frozenset({1}))
        x, bias = graph.add_expr(X), graph.add_expr(E.load(1, E.axis(0), dtype=DType.F32))
        top = graph.add_row(ReduceKind.MAX, x)
        assert top is not None
        shifted = graph.add(Node("sub", (x, top)), RULE)
        assert [graph.facts(c).per_row for c in (x, bias, top, shifted)] == [False, True, True, False]

    def test_reductions_without_a_word(self) -> None:
        graph = EGraph()
        assert graph.add_row(ReduceKind.ARGMAX, graph.add_expr(X)) is None

    def test_operands_of_sums_and_products_are_counted(self) -> None:
        graph = EGraph()
        total = call("add", call("add", X, Y), call("sub", Z, call("mul", X, Y)))
        facts = graph.facts(graph.add_expr(total))
        assert (facts.terms, facts.factors) == (4, 1)
        e = X
        for _ in range(300):
            e = call("mul", e, e)
        assert graph.facts(graph.add_expr(e)).factors == 2**300 and not GUARDS["few_factors"](graph.facts(graph.add_expr(e)))


class TestMatches:
    def test_names_stand_for_one_class_each(self) -> None:
        graph = EGraph()
        same, other = graph.add_expr(call("add", X, X)), graph.add_expr(call("add", X, Y))
        pattern = parse("a + a")
        assert list(matches(graph, pattern, same, {}, 0.0)) == [{"a": graph.add_expr(X)}]
        assert list(matches(graph, pattern, other, {}, 0.0)) == []

    def test_numbers_match_within_the_tolerance(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("mul", X, E.const(1.0001)))
        assert len(list(matches(graph, parse("a * 1.0"), c, {}, 2e-4))) == 1
        assert list(matches(graph, parse("a * 1.0"), c, {}, 0.0)) == []

    def test_upper_case_names_stand_for_numbers(self) -> None:
        graph = EGraph()
        assert list(matches(graph, parse("a * K"), graph.add_expr(call("mul", X, Y)), {}, 0.0)) == []
        assert len(list(matches(graph, parse("a * K"), graph.add_expr(call("mul", X, E.const(3.0))), {}, 0.0))) == 1

    def test_integers_are_not_touched(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("add", E.axis(0), E.axis(1)))
        assert list(matches(graph, parse("a + b"), c, {}, 0.0)) == []

    def test_all_ways_through_a_class_are_found(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("add", X, Y))
        graph.union(c, graph.add_expr(call("add", Y, X)))
        graph.rebuild()
        assert len(list(matches(graph, parse("a + b"), graph.find(c), {}, 0.0))) == 2


class TestSaturation:
    def test_it_ends_when_nothing_comes(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("add", X, call("add", Y, Z)))
        rules = [
            compiled(Rule(name="order", pattern="a + b", replacement="b + a", form=True)),
            compiled(Rule(name="grouping", pattern="(a + b) + c", replacement="a + (b + c)", form=True)),
        ]
        assert saturate(graph, rules) == {"order", "grouping"}
        before = graph.version
        assert len(graph.nodes(c)) == 6  # each of three operands, or two of them, on the left
        saturate(graph, rules)
        assert graph.version == before

    def test_it_ends_where_there_is_too_much(self) -> None:
        """Sums without end: each round is as large as all before together."""
        graph = EGraph()
        graph.add_expr(call("add", X, Y))
        saturate(graph, [compiled(Rule(name="more", pattern="a + b", replacement="exp(a + b) + (b + tanh(a))"))])
        assert graph.size < 20_000


class TestExtraction:
    def test_the_cheapest_is_taken(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("mul", X, call("sigmoid", X)))
        graph.union(c, graph.add(Node("silu", (graph.add_expr(X),)), RULE))
        graph.rebuild()
        extraction = Extraction(graph)
        assert extraction.expr(c) is call("silu", X) and extraction.rules == {"a rule"}

    def test_what_is_written_wins_between_equals(self) -> None:
        graph = EGraph()
        c = graph.add_expr(call("add", X, Y))
        graph.union(c, graph.add(Node("add", (graph.add_expr(Y), graph.add_expr(X))), RULE))
        graph.rebuild()
        assert Extraction(graph).expr(c) is call("add", X, Y)

    def test_a_form_is_not_worth_a_few_operations(self) -> None:
        graph = EGraph()
        long = call("add", call("mul", X, Y), call("mul", X, Z))
        c = graph.add_expr(long)
        bound = {name: graph.add_expr(e) for name, e in (("x", X), ("y", Y), ("z", Z))}
        graph.union(c, graph.add_term(parse("x * (y + z)"), bound, Origin(BY_FORM)))
        graph.rebuild()
        assert Extraction(graph).expr(c) is long

    def test_nothing_over_rows_is_an_expression(self) -> None:
        graph = EGraph()
        top = graph.add_row(ReduceKind.SUM, graph.add_expr(X))
        assert top is not None and Extraction(graph).expr(graph.add(Node("exp", (top,)), WRITTEN)) is None

    def test_circles_are_left(self) -> None:
        """x = 1 * x: the class holds a product with itself."""
        graph = EGraph()
        x = graph.add_expr(X)
        graph.union(x, graph.add(Node("mul", (graph.add_expr(E.const(1.0)), x)), Origin(BY_FORM)))
        graph.rebuild()
        assert Extraction(graph).expr(x) is X
        assert {node.op for node in graph.nodes(x)} == {LEAF, "mul"}
