"""Normalisations and softmax written out become one pass per row; what somebody else needs stays."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.models.alternatives import OneIsland
from tests.support.models.model_text import Array, check, normal, parse
from xyntra_ep.tracea.core_ir.ops import Pointwise, ReduceKind, RowReduce

CONSTANTS = "<int64[1] last = {-1}, int64[1] mid = {1}, int64[2] two = {1, 2}, float two_ = {2.0}, float eps = {0.01}>"
LAYER_NORM = """mean = ReduceMean(x, last) d = Sub(x, mean) sq = Mul(d, d) v = ReduceMean(sq, last) ve = Add(v, eps)
    sd = Sqrt(ve) n = Div(d, sd) s = Mul(n, g) y = Add(s, b)"""


def fused(nodes: str, outputs: str = "float[] y", shape: tuple[int, ...] = (3, 5, 8), **constants: Array) -> OneIsland:
    declared = ",".join(["B", "S", *map(str, shape[2:])][: len(shape)])
    constants = {"g": normal(shape[-1]), "b": normal(shape[-1], seed=1)} | constants
    model = parse(f"(float[{declared}] x) => ({outputs}) {CONSTANTS} {{ {nodes} }}", **constants)
    return check(model, {"x": normal(*shape)})


def one_row(island: OneIsland) -> RowReduce:
    (row,) = island.program.ops
    assert isinstance(row, RowReduce)
    return row


class TestBeforeAndAfter:
    def test_layer_norm(self) -> None:
        row = one_row(fused(LAYER_NORM))
        assert [s.kind for s in row.stages] == [ReduceKind.SUM, ReduceKind.SUM]
        assert len(row.inputs) == 3 and not row.outputs[0].per_row

    def test_layer_norm_by_powers(self) -> None:
        row = one_row(fused(LAYER_NORM.replace("Mul(d, d)", "Pow(d, two_)")))
        assert len(row.stages) == 2

    def test_rms_norm(self) -> None:
        nodes = (
            "sq = Mul(x, x) v = ReduceMean(sq, last) ve = Add(v, eps) r = Sqrt(ve) i = Reciprocal(r) n = Mul(x, i) y = Mul(n, g)"
        )
        assert len(one_row(fused(nodes)).stages) == 1

    def test_softmax(self) -> None:
        nodes = "t = ReduceMax(x, last) d = Sub(x, t) e = Exp(d) s = ReduceSum(e, last) y = Div(e, s)"
        assert [s.kind for s in one_row(fused(nodes)).stages] == [ReduceKind.MAX, ReduceKind.SUM]

    def test_l2_norm(self) -> None:
        assert len(one_row(fused("n = ReduceL2(x, last) m = Max(n, eps) y = Div(x, m)")).stages) == 1

    def test_over_two_axes(self) -> None:
        row = one_row(fused(LAYER_NORM.replace("last", "two"), g=normal(1), b=normal(1)))
        assert len(row.inner) == 2

    def test_over_channels_in_the_middle(self) -> None:
        island = fused(LAYER_NORM.replace("last", "mid"))
        assert len(island.ops(RowReduce)) == 1

    def test_residual_before_and_activation_after(self) -> None:
        nodes = LAYER_NORM.replace("(x", "(r").replace("y =", "z =") + " y = Tanh(z)"
        model = parse(
            f"(float[B,S,8] x, float[B,S,8] q) => (float[] y) {CONSTANTS} {{ r = Add(x, q) {nodes} }}", g=normal(8), b=normal(8)
        )
        island = check(model, {"x": normal(2, 3, 8), "q": normal(2, 3, 8, seed=2)})
        assert len(island.ops(RowReduce)) == 1 and len(island.program.ops) <= 2

    def test_the_operators_own_form_takes_its_neighbours(self) -> None:
        island = fused("n = LayerNormalization(x, g, b) y = Tanh(n)")
        assert len(island.program.ops) == 1


class TestWhatStays:
    def test_a_mean_that_is_an_output(self) -> None:
        island = fused(LAYER_NORM, "float[] y, float[] mean")
        first, *rest = island.program.ops
        assert isinstance(first, RowReduce) and first.outputs[0].per_row
        assert sum(isinstance(op, RowReduce) for op in rest) == 1

    def test_the_centred_values_are_an_output(self) -> None:
        island = fused(LAYER_NORM, "float[] y, float[] d")
        assert len(island.ops(RowReduce)) == 2

    def test_the_deviation_is_read_elsewhere(self) -> None:
        island = fused(LAYER_NORM + " z = Log(sd)", "float[] y, float[] z")
        assert any(o.per_row for row in island.ops(RowReduce) for o in row.outputs)

    def test_a_reduction_used_across_rows(self) -> None:
        """x [4, 4] - (means of columns): the extents fit, the rows do not."""
        model = parse("(float[4,4] x) => (float[] y) <int64[1] first = {0}> { m = ReduceMean(x, first) y = Sub(x, m) }")
        check(model, {"x": normal(4, 4)})

    def test_means_of_columns_laid_on_rows(self) -> None:
        """mean over axis 0, then used as a column: element i of one meets row i of the other."""
        model = parse(
            """(float[4,4] x) => (float[] y) <int64[1] first = {0}, int64[2] c = {4,1}>
            { m = ReduceMean<keepdims = 0>(x, first) r = Reshape(m, c) y = Sub(x, r) }"""
        )
        check(model, {"x": normal(4, 4)})

    def test_both_directions_at_once(self) -> None:
        model = parse(
            """(float[4,4] x) => (float[] y) <int64[1] first = {0}, int64[1] last = {1}>
            { m = ReduceMean(x, first) n = ReduceMax(x, last) a = Sub(x, m) b = Mul(a, n) y = Add(b, n) }"""
        )
        check(model, {"x": normal(4, 4)})

    def test_two_splits_of_one_shape(self) -> None:
        model = parse(
            """(float[2,3,4] x) => (float[] y) <int64[1] last = {-1}, int64[2] two = {1,2}>
            { m = ReduceMean(x, last) n = ReduceMean(x, two) a = Sub(x, m) y = Mul(a, n) }"""
        )
        check(model, {"x": normal(2, 3, 4)})

    def test_a_reduction_of_a_reduction(self) -> None:
        model = parse(
            """(float[B,3,4] x) => (float[] y) <int64[1] last = {-1}, int64[1] mid = {1}>
            { m = ReduceMean(x, last) t = Tanh(m) n = ReduceMax(t, mid) a = Sub(x, n) y = Mul(a, m) }"""
        )
        check(model, {"x": normal(2, 3, 4)})

    def test_without_keepdims_the_result_is_broadcast_otherwise(self) -> None:
        """[4, 4] reduced to [4] meets columns again, not rows."""
        model = parse(
            "(float[4,4] x) => (float[] y) <int64[1] last = {1}> { m = ReduceMean<keepdims = 0>(x, last) y = Sub(x, m) }"
        )
        check(model, {"x": normal(4, 4)})

    def test_indices_are_no_values(self) -> None:
        fused("i = ArgMax<axis = -1>(x) f = Cast<to = 1>(i) y = Mul(x, f)")

    def test_long_chains_are_cut(self) -> None:
        chain = " ".join(f"v{i + 1} = {'Sin' if i % 2 else 'Tanh'}(v{i})" for i in range(150))
        island = fused(f"m = ReduceMean(x, last) v0 = Sub(x, m) {chain} y = Neg(v150)")
        assert 3 <= len(island.program.ops) <= 12
        chain = chain.replace("v0", "x")
        fused(f"{chain} m = ReduceMean(v150, last) y = Sub(v150, m)")


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_rows_of_other_types(dtype: str) -> None:
    op = "ReduceMax" if dtype == "bool" else "ReduceSum"
    opset = 20 if dtype == "bool" else 18
    after = "And" if dtype == "bool" else "Sub"
    model = parse(f"({dtype}[B,4] x) => ({dtype}[] y) <int64[1] last = {{-1}}> {{ m = {op}(x, last) y = {after}(x, m) }}", opset)
    data = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 9, (3, 4)).astype(dtype)
    check(model, {"x": data})


def test_elementwise_work_alone_is_left_alone() -> None:
    island = fused("a = Exp(x) y = Neg(a)")
    assert isinstance(island.program.ops[0], Pointwise)
