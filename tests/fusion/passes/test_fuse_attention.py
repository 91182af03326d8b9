"""Attention in the forms that exporters write, and what must not become attention."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tests.support.models.alternatives import OneIsland, alternatives
from tests.support.models.model_text import Array, check, normal, parse
from xyntra_ep.tracea.core_ir.ops import Attention, NoSoftmax

B, H, S, T, D, E = 2, 3, 4, 5, 8, 6
Q, K, V = normal(B, H, S, D), normal(B, H, T, D, seed=1), normal(B, H, T, E, seed=2)
SCALE = "<float scale = {0.35}, float low = {-10000.0}, float one = {1.0}, float zero = {0.0}>"
PLAIN = "kt = Transpose<perm = [0,1,3,2]>(k) qk = MatMul(q, kt) s = Mul(qk, scale)"
INF = np.asarray(-np.inf, dtype=np.float32)
NAN_FILL = "p0 = Softmax<axis = -1>(w) bad = IsNaN(p0) p = Where(bad, zero, p0)"


def attention(
    nodes: str,
    extra: str = "",
    feeds: Mapping[str, Array] | None = None,
    outputs: str = "float[] y",
    **constants: Array,
) -> OneIsland:
    model = parse(
        f"(float[B,H,S,8] q, float[B,H,T,8] k, float[B,H,T,6] v{extra}) => ({outputs}) {SCALE} {{ {PLAIN} {nodes} }}", **constants
    )
    return check(model, {"q": Q, "k": K, "v": V, **(feeds or {})})


def fused(island: OneIsland) -> Attention:
    (op,) = island.ops(Attention)
    assert isinstance(op, Attention)
    return op


END = "p = Softmax<axis = -1>(w) y = MatMul(p, v)"


class TestMasks:
    def test_none(self) -> None:
        assert len(fused(attention(END.replace("(w)", "(s)"))).inputs) == 3

    def test_added_per_key(self) -> None:
        mask = np.where(np.arange(T) < 3, 0, -1e4).astype(np.float32).reshape(1, 1, 1, T).repeat(B, 0)
        op = fused(attention(f"w = Add(s, m) {END}", ", float[B,1,1,T] m", {"m": mask}))
        assert len(op.inputs) == 4

    def test_added_per_query(self) -> None:
        fused(attention(f"w = Add(s, m) {END}", ", float[B,1,S,T] m", {"m": normal(B, 1, S, T)}))

    def test_of_rank_two(self) -> None:
        fused(attention(f"w = Add(m, s) {END}", ", float[S,T] m", {"m": normal(S, T)}))

    @pytest.mark.parametrize("names", ["B,1,1,T", "B,H,S,T", "1,1,S,T", "S,T"])
    def test_boolean(self, names: str) -> None:
        mask = normal(*({"B": B, "H": H, "S": S, "T": T, "1": 1}[n] for n in names.split(","))) > -0.5
        fused(attention(f"w = Where(m, s, low) {END}", f", bool[{names}] m", {"m": mask}))

    def test_made_of_ones_and_zeros(self) -> None:
        """(1 - mask) * -10000, as BERT has it."""
        mask = (np.arange(T) < 3).astype(np.int64)[None].repeat(B, 0)
        nodes = f"""m4 = Unsqueeze(m, ax) mf = Cast<to = 1>(m4) inv = Sub(one, mf) bias = Mul(inv, low) w = Add(s, bias) {END}"""
        fused(attention(nodes, ", int64[B,T] m", {"m": mask}, ax=np.asarray([1, 2], dtype=np.int64)))

    def test_causal_by_trilu(self) -> None:
        nodes = f"""st = Shape<start = 2>(s) ones = Expand(one, st) tri = Trilu<upper = 0>(ones) keep = Cast<to = 9>(tri)
            w = Where(keep, s, low) {END}"""
        fused(attention(nodes))

    def test_infinity_and_nan_filled_with_zero(self) -> None:
        """Rows without a key: softmax gives NaN, the exporter's Where makes it 0."""
        mask = np.ones((B, 1, S, T), dtype=bool)
        mask[0, 0, 1] = False
        nodes = f"w = Where(m, s, inf) {NAN_FILL} y = MatMul(p, v)"
        op = fused(attention(nodes, ", bool[B,1,S,T] m", {"m": mask}, inf=INF))
        assert op.no_softmax is NoSoftmax.ZERO

    def test_infinity_without_a_fill_stays_nan(self) -> None:
        mask = np.ones((B, 1, S, T), dtype=bool)
        mask[0, 0, 1] = False
        op = fused(attention(f"w = Where(m, s, inf) {END}", ", bool[B,1,S,T] m", {"m": mask}, inf=INF))
        assert op.no_softmax is NoSoftmax.NAN

    def test_two_masks_and_a_bias(self) -> None:
        nodes = f"a = Add(s, bias) w = Where(m, a, low) {END}"
        feeds = {"m": normal(B, 1, 1, T) > 0, "bias": normal(1, H, S, T)}
        assert len(fused(attention(nodes, ", bool[B,1,1,T] m, float[1,H,S,T] bias", feeds)).inputs) == 5

    def test_soft_capping(self) -> None:
        fused(attention(f"c = Tanh(s) w = Mul(c, scale) {END}"))

    def test_bias_of_another_product(self) -> None:
        """Relative positions: only one product is the score, the other is read."""
        nodes = f"rt = Transpose<perm = [0,1,3,2]>(r) qr = MatMul(q, rt) w = Add(s, qr) {END}"
        fused(attention(nodes, ", float[B,H,T,8] r", {"r": normal(B, H, T, D, seed=3)}))


def masked(nodes: str, batch: int, of_mask: int, columns: int = 4, sizes: str = "M,1,1,T", declared: str = "B") -> OneIsland:
    """Attention of x to itself, that assumes nothing about the sizes of the mask m; run with those given."""
    model = parse(
        f"""(float[{declared},3,S,8] x, float[{sizes}] m) => (float[] y) {SCALE}
        {{ xt = Transpose<perm = [0,1,3,2]>(x) qk = MatMul(x, xt) s = Mul(qk, scale) {nodes}
           p = Softmax<axis = -1>(w) y = MatMul(p, x) }}"""
    )
    check(model, {"x": normal(batch, 3, 4, 8), "m": normal(of_mask, 1, 1, columns, seed=3)})
    return alternatives(model)[-1]


class TestMasksOfSizesThatOnlyARunTells:
    """Scores may turn out to be repeated: q and k are then."""

    @pytest.mark.parametrize(("batch", "of_mask"), [(2, 2), (2, 1), (1, 2)])
    def test_in_the_batch(self, batch: int, of_mask: int) -> None:
        q, k, v, m = fused(masked("w = Add(s, m)", batch, of_mask)).inputs
        assert q.shape[0] == k.shape[0] == v.shape[0] == m.shape[0]

    def test_in_the_columns(self) -> None:
        fused(masked("w = Add(m, s)", 2, 2, columns=1))

    def test_scaled_after_one_mask(self) -> None:
        """What is repeated is a step of one operand."""
        fused(masked("n = Neg(s) w = Add(n, m)", 1, 2))

    def test_known_to_be_repeated(self) -> None:
        """Computed once then, not for every mask."""
        assert not masked("w = Add(s, m)", 1, 2, sizes="2,1,1,S", declared="1").ops(Attention)

    def test_two_operands_before_the_scores_are_repeated(self) -> None:
        """The bias would have to be repeated too."""
        assert not masked("b = Add(s, qk) w = Add(b, m)", 1, 2).ops(Attention)

    def test_positions_before_the_scores_are_repeated(self) -> None:
        """A causal mask is of the rows that there are, not of those that are repeated."""
        nodes = """st = Shape<start = 2>(s) ones = Expand(one, st) tri = Trilu<upper = 0>(ones) keep = Cast<to = 9>(tri)
            c = Where(keep, s, low) w = Add(c, m)"""
        masked(nodes, 1, 2)


class TestWhatStays:
    def test_scores_that_are_an_output(self) -> None:
        island = attention(END.replace("(w)", "(s)"), outputs="float[] y, float[] s")
        assert not island.ops(Attention)

    def test_products_that_are_an_output(self) -> None:
        assert not attention(END.replace("(w)", "(s)"), outputs="float[] y, float[] qk").ops(Attention)

    def test_probabilities_that_are_an_output(self) -> None:
        assert not attention(END.replace("(w)", "(s)"), outputs="float[] y, float[] p").ops(Attention)

    def test_probabilities_that_are_read_twice(self) -> None:
        nodes = END.replace("(w)", "(s)") + " z = ReduceMax(p)"
        assert not attention(nodes, outputs="float[] y, float[] z").ops(Attention)

    def test_scores_that_are_read_twice(self) -> None:
        assert not attention(END.replace("(w)", "(s)") + " z = Neg(s)", outputs="float[] y, float[] z").ops(Attention)

    def test_softmax_over_queries(self) -> None:
        assert not attention("p = Softmax<axis = 2>(s) y = MatMul(p, v)").ops(Attention)

    def test_probabilities_changed_afterwards(self) -> None:
        nodes = "p0 = Softmax<axis = -1>(s) p = Mul(p0, m) y = MatMul(p, v)"
        assert not attention(nodes, ", float[B,1,S,T] m", {"m": normal(B, 1, S, T)}).ops(Attention)

    def test_nan_filled_with_something_else(self) -> None:
        assert not attention(NAN_FILL.replace("zero, p0", "one, p0").replace("(w)", "(s)") + " y = MatMul(p, v)").ops(Attention)

    def test_fill_the_other_way_round(self) -> None:
        assert not attention(NAN_FILL.replace("zero, p0", "p0, zero").replace("(w)", "(s)") + " y = MatMul(p, v)").ops(Attention)

    def test_scores_moved_before_softmax(self) -> None:
        """softmax over the transposed scores: same extents when S = T."""
        model = parse(
            """(float[2,3,4,8] q, float[2,3,4,8] k, float[2,3,4,6] v) => (float[] y)
            { kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) st = Transpose<perm = [0,1,3,2]>(s)
              p = Softmax<axis = -1>(st) y = MatMul(p, v) }"""
        )
        check(model, {"q": normal(2, 3, 4, 8), "k": normal(2, 3, 4, 8, seed=1), "v": normal(2, 3, 4, 6)})

    def test_constant_values_are_a_product(self) -> None:
        """A lookup in a table: rows of constants mixed by a softmax."""
        model = parse(
            """(float[2,3,4,8] q, float[2,3,5,8] k) => (float[] y)
            { kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) p = Softmax(s) y = MatMul(p, v) }""",
            v=normal(5, 6),
        )
        check(model, {"q": normal(2, 3, 4, 8), "k": normal(2, 3, 5, 8)})


class TestForms:
    def test_rank_three(self) -> None:
        model = parse(
            """(float[B,S,8] q, float[B,T,8] k, float[B,T,6] v, float[B,1,T] m) => (float[] y)
            { kt = Transpose<perm = [0,2,1]>(k) s = MatMul(q, kt) w = Add(s, m) p = Softmax<axis = -1>(w) y = MatMul(p, v) }"""
        )
        feeds = {"q": normal(2, 4, 8), "k": normal(2, 5, 8, seed=1), "v": normal(2, 5, 6), "m": normal(2, 1, 5)}
        fused(check(model, feeds))

    @pytest.mark.parametrize("end", ["", "y = Identity(o)", "y = Reshape(o, whole)"])
    def test_a_result_that_is_an_output_needs_no_copy(self, end: str) -> None:
        """It is stored head after head, not row after row with the heads beside each other."""
        nodes = END.replace("(w)", "(s)").replace("y =", "o =" if end else "y =") + end
        assert attention(nodes, whole=np.asarray([B, H * S, E], dtype=np.int64)).kinds() == ["attention"]

    def test_heads_that_are_joined_into_an_output_need_no_copy(self) -> None:
        nodes = END.replace("(w)", "(s)").replace("y =", "o =") + " t = Transpose<perm = [0,2,1,3]>(o) y = Reshape(t, joined)"
        assert attention(nodes, joined=np.asarray([B, S, H * E], dtype=np.int64)).kinds() == ["attention"]

    def test_a_result_that_is_an_output_and_joined(self) -> None:
        nodes = END.replace("(w)", "(s)") + " z = Transpose<perm = [0,2,1,3]>(y)"
        assert attention(nodes, outputs="float[] y, float[] z").kinds() == ["attention", "copy"]

    def test_scales_on_either_side(self) -> None:
        """PyTorch multiplies q and k by the square root of the scale."""
        nodes = f"a = Mul(q, half) b = Div(k, two) bt = Transpose<perm = [0,1,3,2]>(b) w = MatMul(a, bt) {END}"
        model = parse(
            f"""(float[B,H,S,8] q, float[B,H,T,8] k, float[B,H,T,6] v) => (float[] y)
            <float half = {{0.5}}, float two = {{2.0}}> {{ {nodes} }}"""
        )
        op = fused(check(model, {"q": Q, "k": K, "v": V}))
        assert "0.25" in repr(op.score)

    def test_a_scaled_query_that_is_read_elsewhere(self) -> None:
        nodes = (
            "a = Mul(q, half) kt = Transpose<perm = [0,1,3,2]>(k) t = MatMul(a, kt) p = Softmax<axis = -1>(t) y = MatMul(p, v)"
        )
        model = parse(
            f"""(float[B,H,S,8] q, float[B,H,T,8] k, float[B,H,T,6] v) => (float[] y, float[] a)
            <float half = {{0.5}}> {{ {nodes} }}"""
        )
        check(model, {"q": Q, "k": K, "v": V})

    @pytest.mark.parametrize("s", [1, 7])
    def test_from_projections_to_the_heads_joined_again(self, s: int) -> None:
        """x Wq, x Wk, x Wv side by side in one product; heads apart and together without a copy of their own."""
        nodes = """
          q0 = MatMul(x, wq) q1 = Add(q0, bq) q2 = Reshape(q1, apart) q = Transpose<perm = [0,2,1,3]>(q2)
          k0 = MatMul(x, wk) k1 = Add(k0, bk) k2 = Reshape(k1, apart) kt = Transpose<perm = [0,2,3,1]>(k2)
          v0 = MatMul(x, wv) v1 = Add(v0, bv) v2 = Reshape(v1, apart) v = Transpose<perm = [0,2,1,3]>(v2)
          s = MatMul(q, kt) w = Add(s, m) p = Softmax<axis = -1>(w) o = MatMul(p, v)
          t = Transpose<perm = [0,2,1,3]>(o) j = Reshape(t, joined) y = MatMul(j, wo)"""
        model = parse(
            f"""(float[B,S,16] x, float[B,1,1,S] m) => (float[] y)
            <int64[4] apart = {{0,0,4,4}}, int64[3] joined = {{0,0,16}}> {{ {nodes} }}""",
            **{f"w{c}": normal(16, 16, seed=i) / 4 for i, c in enumerate("qkvo")},
            **{f"b{c}": normal(16, seed=i) for i, c in enumerate("qkv")},
        )
        island = check(model, {"x": normal(2, s, 16), "m": normal(2, 1, 1, s)})
        kinds = [k for k in island.kinds() if k != "copy"]
        assert kinds.count("attention") == 1 and kinds.count("gemm") == 2

    def test_large_heads_stay(self) -> None:
        model = parse(
            """(float[1,1,2,300] q, float[1,1,2,300] k, float[1,1,2,4] v) => (float[] y)
            { kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) p = Softmax<axis = -1>(s) y = MatMul(p, v) }"""
        )
        feeds = {"q": normal(1, 1, 2, 300) / 10, "k": normal(1, 1, 2, 300, seed=1) / 10, "v": normal(1, 1, 2, 4)}
        assert not check(model, feeds).ops(Attention)

    def test_two_layers(self) -> None:
        """The second one's query is the first one's result."""
        nodes = """kt = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, kt) p = Softmax<axis = -1>(s) o = MatMul(p, v)
          s2 = MatMul(o, kt) p2 = Softmax<axis = -1>(s2) y = MatMul(p2, v)"""
        model = parse(f"(float[B,H,S,8] q, float[B,H,T,8] k, float[B,H,T,8] v) => (float[] y) {{ {nodes} }}")
        island = check(model, {"q": Q, "k": K, "v": normal(B, H, T, D, seed=5)})
        assert len(island.ops(Attention)) == 2
