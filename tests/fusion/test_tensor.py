"""Sizes that meet: what is assumed, what is checked, and what they are called afterwards."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.models.alternatives import alternatives, one_island
from tests.support.models.model_text import check, close, cpu, normal, parse
from xyntra_ep.errors import UnsupportedError
from xyntra_ep.fusion.checks import Checks, broadcast_shapes
from xyntra_ep.fusion.tensor import Leaf, Tensor, from_content
from xyntra_ep.tracea.core_ir.dims import Size, evaluate, smin, symbol
from xyntra_ep.tracea.core_ir.dtypes import DType

A, B, C = symbol("a"), symbol("b"), symbol("c")


def values(checks: Checks, **bound: int) -> dict[str, int]:
    result = dict(bound)
    for name, size in checks.definitions:
        result[name] = evaluate(size, result)
    return result


class TestBroadcast:
    def test_equal_sizes_ask_nothing(self) -> None:
        checks = Checks()
        assert checks.broadcast(A, A, 0) == A
        assert not checks.conditions and not checks.guards

    def test_one_takes_the_other(self) -> None:
        assert Checks().broadcast(1, A, 0) == A
        assert Checks().broadcast(A, 1, 0) == A

    def test_constants_that_differ_decline(self) -> None:
        with pytest.raises(UnsupportedError, match="cannot broadcast 3 with 4"):
            Checks().broadcast(3, 4, 0)

    def test_speculation_is_one_guard_and_one_name(self) -> None:
        checks = Checks(speculate=True)
        first = checks.broadcast(A, B, 0)
        assert checks.broadcast(B, A, 0) == first and checks.broadcast(A, B, 1) == first
        assert len(checks.guards) == 1 and not checks.conditions
        assert evaluate(checks.guards[0], {"a": 3, "b": 3}) and not evaluate(checks.guards[0], {"a": 3, "b": 1})

    def test_what_cannot_be_equal_is_not_assumed_equal(self) -> None:
        checks = Checks(speculate=True)
        assert checks.broadcast(smin(A, 1), 2, 0) == 2
        assert not checks.guards

    def test_a_chain_of_speculations_ends_in_one_name(self) -> None:
        checks = Checks(speculate=True)
        names = {checks.broadcast(A, B, 0), checks.broadcast(B, C, 0), checks.broadcast(A, C, 0)}
        assert checks.same(A, C) and len(checks.guards) == 2
        assert all(checks.same(n, A) for n in names)

    @settings(max_examples=60)
    @given(st.tuples(*[st.sampled_from((0, 1, 2, 5))] * 3), st.permutations([A, B, C, 5]))
    def test_without_speculation_numpys_rule_at_run_time(self, sizes: tuple[int, int, int], order: list[Size]) -> None:
        bound = dict(zip("abc", sizes, strict=True))
        checks = Checks()
        result: Size = 1
        for size in order:
            result = checks.broadcast(result, size, 0)
        symbols = values(checks, **bound)
        holds = all(evaluate(c, symbols) for c, _ in checks.conditions)
        concrete = [(evaluate(s, bound),) for s in order]
        try:
            (want,) = np.broadcast_shapes(*concrete)
        except ValueError:
            assert not holds
            return
        assert holds and evaluate(result, symbols) == want

    def test_a_result_meets_its_own_parts_again_for_nothing(self) -> None:
        checks = Checks()
        ab = checks.broadcast(A, B, 0)
        abc = checks.broadcast(ab, C, 0)
        asked = len(checks.conditions)
        assert all(checks.broadcast(abc, part, 0) == abc for part in (A, ab)) and checks.broadcast(C, abc, 0) == abc
        assert len(checks.conditions) == asked and len(checks.definitions) == 2

    def test_definitions_come_before_what_uses_them(self) -> None:
        checks = Checks()
        shape = broadcast_shapes(checks, (A,), (B,), (C,))
        for a, b, c in itertools.product((1, 4), repeat=3):
            assert evaluate(shape[0], values(checks, a=a, b=b, c=c)) == max(a, b, c)

    def test_required_equality_unites(self) -> None:
        checks = Checks()
        checks.require_equal(A, B, "differ")
        assert checks.broadcast(A, B, 0) in (A, B)
        assert [m for _, m in checks.conditions] == ["differ"]


class TestFrames:
    """Elementwise work moves into the frame of a lazy operand; the result must not."""

    @pytest.mark.parametrize(
        "nodes",
        [
            "t = Transpose <perm = [1, 0]> (r) y = Mul(t, c4)",
            "t = Transpose <perm = [1, 0]> (r) u = Transpose <perm = [1, 0]> (q) s = Mul(t, u) y = Sub(s, t)",
            "t = Reshape(r, flat) y = Add(t, c1)",
            "t = Reshape(r, flat) u = Reshape(q, flat) s = Add(t, u) y = Mul(s, t)",
            "t = Reshape(r, column) y = Add(t, c12)",
            "t = Reshape(r, flat) u = Transpose <perm = [1, 0]> (q) v = Reshape(u, flat) y = Add(t, v)",
        ],
    )
    def test_against_onnxruntime(self, nodes: str) -> None:
        model = parse(
            f"""(float[3,4] a, float[3,4] b) => (float[] y)
            <int64[1] flat = {{-1}}, int64[2] column = {{12,1}}, float c1 = {{2.0}}, float[4,1] c4 = {{1.,2.,3.,4.}},
             float[1,2] c12 = {{1.,-1.}}>
            {{ r = Tanh(a) q = Exp(b) {nodes} }}"""
        )
        check(model, {"a": normal(3, 4), "b": normal(3, 4, seed=1)})

    def test_an_axis_of_one_under_a_name(self) -> None:
        """All four combinations of 1 and n, by either alternative."""
        model = parse("(float[N,M] a, float[N,M] b) => (float[P,Q] y) { t = Transpose(a) u = Transpose(b) y = Div(t, u) }")
        for n, m in itertools.product((1, 3), repeat=2):
            check(model, {"a": normal(3, 4), "b": normal(n, 1 if m == 1 else 4) + 5})
            check(model, {"a": normal(n, 1 if m == 1 else 4), "b": normal(3, 4) + 5})


class TestKnownValues:
    def test_bfloat16_scalars_are_values_not_bits(self) -> None:
        leaf = Leaf(kind="const", name="c", array=np.asarray([0x3FC0], dtype=np.uint16))
        assert Tensor((1,), DType.BF16, leaf).scalar() == 1.5

    def test_contents_become_data(self) -> None:
        t = from_content([A, 2, 3])
        assert t.content is not None and list(t.content) == [A, 2, 3] and t.shape == (3,)

    def test_views_carry_contents(self) -> None:
        t = from_content([[1, 2, 3], [4, 5, 6]])
        turned = t.permute((1, 0)).slice([1, 0], [1, 1], [2, 2]).reshape((4,))
        assert turned.ints("x") == [2, 5, 3, 6]

    def test_shape_arithmetic_is_folded(self) -> None:
        model = parse(
            """(float[N,M] x) => (float[P,Q] y, int64[2] s) <int64[1] zero = {0}, int64[1] minus = {-1}>
            { s = Shape(x) f = Gather(s, zero) p = Concat<axis = 0>(f, minus) e = Exp(x) y = Reshape(e, p) }"""
        )
        island = check(model, {"x": normal(3, 5)})
        assert island.kinds() == ["pointwise", "pointwise"]


def test_alternatives_of_lying_names() -> None:
    """Both inputs say N; one may be 1. The declared alternative steps aside, the plain one is right."""
    model = parse("(float[N] x, float[N] y) => (float[K] z) { z = Mul(x, y) }")
    declared, plain = alternatives(model)
    for n, m in ((4, 4), (1, 4), (4, 1), (1, 1), (0, 1), (0, 0)):
        feeds = {"x": normal(n), "y": normal(m, seed=1)}
        want = cpu(model, feeds)
        assert declared.applies(feeds) == (n == m)
        close(plain.run(feeds), want)
    assert plain.refusals({"x": normal(3), "y": normal(4)}) == ["Mul#0: cannot broadcast: axis 0 has incompatible sizes"]


def test_static_sizes_of_inputs_are_facts() -> None:
    island = one_island(parse("(float[2,3] x, float[3] y) => (float[2,3] z) { z = Mul(x, y) }"), trust=False)
    assert not island.program.guards and not island.program.checks and not island.program.bindings
