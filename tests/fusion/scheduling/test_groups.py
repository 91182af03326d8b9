"""What disappears into a kernel: epilogues, chains, and what must be stored."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.support.models.model_text import Array, check, normal, parse
from xyntra_ep.tracea.core_ir.dtypes import DType
from xyntra_ep.tracea.core_ir.ops import Conv, Gemm, Pointwise

W, BIAS = normal(8, 6), normal(6)
FEEDS = {"x": normal(5, 8), "r": normal(5, 6)}


def kinds(nodes: str, outputs: str = "float[] y", **constants: Array) -> list[str]:
    model = parse(f"(float[N,8] x, float[N,6] r) => ({outputs}) {{ {nodes} }}", w=W, b=BIAS, **constants)
    return check(model, FEEDS).kinds()


class TestEpilogues:
    def test_bias_gelu_residual(self) -> None:
        """m = x w; y = gelu(m + b) + r  ->  one product that finishes everything."""
        model = parse(
            """(float[N,8] x, float[N,6] r) => (float[] y) <float h = {0.5}, float u = {1.0}, float q = {1.4142135}>
            { m = MatMul(x, w) a = Add(m, b)
              e = Div(a, q) f = Erf(e) g = Add(f, u) i = Mul(a, g) j = Mul(i, h) y = Add(j, r) }""",
            w=W,
            b=BIAS,
        )
        (gemm,) = check(model, FEEDS).ops(Gemm)
        assert len(gemm.inputs) == 4 and "gelu_erf" in repr(gemm.epilogue)

    def test_the_product_is_read_once_more(self) -> None:
        assert kinds("m = MatMul(x, w) y = Relu(m) z = Tanh(m)", "float[] y, float[] z") == ["gemm", "pointwise", "pointwise"]

    def test_both_readers_in_one_chain(self) -> None:
        assert kinds("m = MatMul(x, w) s = Sigmoid(m) y = Mul(m, s)") == ["gemm"]

    def test_a_product_that_is_an_output_is_stored(self) -> None:
        assert kinds("m = MatMul(x, w) y = Relu(m)", "float[] m, float[] y") == ["gemm", "pointwise"]

    def test_two_products_in_one_sum(self) -> None:
        """The later one takes the sum as its epilogue and reads the other."""
        found = kinds("m = MatMul(x, w) t = Tanh(x) n = MatMul(t, w) y = Add(m, n)")
        assert sorted(found) == ["gemm", "gemm", "pointwise"] and found[-1] == "gemm"

    def test_the_other_product_is_stored_as_narrow_as_it_becomes(self) -> None:
        """The earlier one takes what makes bytes of it as its own epilogue."""
        model = parse(
            """(float[N,8] x, float[N,6] r) => (float[] y) <float s = {0.02}, float u = {0.03}, uint8 z = {120}>
            { m = MatMul (x, w)  a = Add (m, b)  q = QuantizeLinear (a, s, z)  d = DequantizeLinear (q, s, z)
              n = MatMul (x, w)  e = QuantizeLinear (n, u, z)  f = DequantizeLinear (e, u, z)  y = Add (d, f) }""",
            w=W,
            b=BIAS,
        )
        first, last = check(model, FEEDS).ops(Gemm)
        assert first.output.dtype is DType.U8 and last.output.dtype is DType.F32
        assert "quantise" in repr(first.epilogue) and len(last.inputs) == 3

    def test_a_slice_of_the_product_is_not_its_epilogue(self) -> None:
        nodes = "m = MatMul(x, w) s = Slice(m, one, far, ax) q = Slice(m, zero, five, ax) y = Mul(s, q)"
        ints = {"one": 1, "far": 2**40, "ax": 1, "zero": 0, "five": 5}
        model = parse(
            f"(float[N,8] x, float[N,6] r) => (float[] y) {{ {nodes} }}",
            w=W,
            **{k: np.asarray([v], dtype=np.int64) for k, v in ints.items()},
        )
        assert check(model, FEEDS).kinds() == ["gemm", "pointwise"]

    def test_a_gather_of_the_product_is_not_its_epilogue(self) -> None:
        """Rows shuffled: every element is read, none in its place."""
        model = parse(
            "(float[6,8] x) => (float[] y) { m = MatMul(x, w) g = Gather<axis = 1>(m, i) y = Tanh(g) }",
            w=W,
            i=np.asarray([5, 4, 3, 2, 1, 0], dtype=np.int64),
        )
        assert check(model, {"x": normal(6, 8)}).kinds() == ["gemm", "pointwise"]

    def test_a_square_product_beside_its_transpose(self) -> None:
        model = parse("(float[6,6] x) => (float[] y) { m = MatMul(x, x) t = Transpose(m) y = Sub(m, t) }")
        assert check(model, {"x": normal(6, 6)}).kinds()[:2] == ["gemm", "pointwise"]

    def test_what_grows_the_product_is_not_its_epilogue(self) -> None:
        model = parse("(float[4,8] x, float[3,4,6] r) => (float[] y) { m = MatMul(x, w) y = Add(m, r) }", w=W)
        assert check(model, {"x": normal(4, 8), "r": normal(3, 4, 6)}).kinds() == ["gemm", "pointwise"]

    def test_convolution(self) -> None:
        model = parse(
            """(float[N,3,8,8] x, float[N,4,8,8] r) => (float[] y)
            { c = Conv<pads = [1,1,1,1]>(x, k, b) s = Add(c, r) y = Relu(s) }""",
            k=normal(4, 3, 3, 3),
            b=normal(4),
        )
        island = check(model, {"x": normal(2, 3, 8, 8), "r": normal(2, 4, 8, 8)})
        assert len(island.ops(Conv)) == 1 and "relu" in repr(island.ops(Conv)[0].epilogue)

    def test_a_transposed_chain_stays_beside_its_product(self) -> None:
        """Relu(Transpose(m)) is Transpose(Relu(m))."""
        assert kinds("m = MatMul(x, w) t = Transpose(m) y = Relu(t)")[0] == "gemm"


class TestChains:
    def test_one_kernel(self) -> None:
        assert kinds("a = Exp(r) b1 = Mul(a, r) c = Tanh(b1) y = Add(c, a)") == ["pointwise"]

    def test_an_inner_output_is_stored_and_read(self) -> None:
        assert kinds("a = Exp(r) y = Tanh(a) z = Neg(y)", "float[] y, float[] z") == ["pointwise", "pointwise"]

    def test_a_value_with_two_kernels_reading_is_stored(self) -> None:
        assert kinds("a = Exp(r) y = Tanh(a) z = Softmax<axis = -1>(a)", "float[] y, float[] z") == [
            "pointwise",
            "pointwise",
            "softmax",
        ]

    def test_work_on_a_smaller_tensor_is_done_once(self) -> None:
        """Exp of a row is not computed again for every row that it is added to."""
        model = parse("(float[6] v, float[N,6] r) => (float[] y) { e = Exp(v) y = Add(r, e) }")
        island = check(model, {"v": normal(6), "r": normal(5, 6)})
        assert island.kinds() == ["pointwise", "pointwise"]

    def test_work_on_constants_is_apart(self) -> None:
        """So that it can be done when the session is created."""
        model = parse("(float[N,6] r) => (float[] y) { e = Exp(b) y = Add(r, e) }", b=BIAS)
        assert check(model, {"r": normal(5, 6)}).kinds() == ["pointwise", "pointwise"]

    def test_parts_of_a_concatenation_are_written_in_place(self) -> None:
        nodes = "a = Exp(r) b1 = Neg(a) c = Tanh(r) d = Abs(c) y = Concat<axis = 1>(b1, d)"
        assert kinds(nodes) == ["pointwise", "pointwise"]

    def test_a_part_that_comes_twice_is_computed_once(self) -> None:
        island = kinds("a = Exp(r) y = Concat<axis = 0>(a, a)")
        assert island == ["pointwise", "copy", "copy"]

    @pytest.mark.parametrize("n", [40, 300])
    def test_long_chains_are_cut(self, n: int) -> None:
        """Python's stack is not endless, and neither is a compiler's patience."""
        names = ["r", *(f"v{i}" for i in range(n - 1)), "y"]
        nodes = " ".join(f"{b} = {'Tanh' if i % 2 else 'Sin'}({a})" for i, (a, b) in enumerate(pairwise(names)))
        found = kinds(nodes)
        assert 2 <= len(found) <= n // 20 and set(found) == {"pointwise"}

    def test_a_wide_sum_is_cut(self) -> None:
        terms = [f"t{i}" for i in range(200)]
        nodes = " ".join(f"e{i} = Sin(r) {t} = Mul(e{i}, r)" for i, t in enumerate(terms))
        assert len(kinds(f"{nodes} y = Sum({', '.join(terms)})")) >= 2


def test_sources_name_every_node() -> None:
    """Each op says which nodes it computes: that is who is declined when its kernel fails."""
    model = parse(
        "(float[N,8] x) => (float[] y) { m = MatMul(x, w) a = Add(m, b) t = Tanh(a) y = Softmax<axis = -1>(t) }", w=W, b=BIAS
    )
    island = check(model, {"x": normal(5, 8)})
    assert sorted(n for s in island.program.sources for n in s) == [0, 1, 2, 3]
    assert not any(isinstance(op, Pointwise) for op in island.program.ops)
